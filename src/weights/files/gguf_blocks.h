// GGUF block formats: a row is divided into blocks of 32 or 256 numbers that include their scales.
// The layouts are ggml's block structs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "banyan/status.h"
#include "quant/codes.h"
#include "weights/files/checkpoint.h"

namespace banyan {

struct BlockShape {
  int64_t numbers = 0;  // numbers per block
  int64_t bytes = 0;    // bytes per block
};

BlockShape block_shape(BlockFormat format);
std::string_view block_format_name(BlockFormat format);  // "gguf q4_k"
// The weight format that represents it exactly, in groups of a block.
std::string_view exact_format_of(BlockFormat format);

// Reads rows [begin, end) of `tensor`, one of `source`'s: as codes of the exact format, or as f32.
// kCorrupt if a scale is not finite.
Status read_block_codes(const WeightSource& source, const TensorInfo& tensor, int64_t begin,
                        int64_t end, const QuantisedRows& to);
Status read_block_floats(const WeightSource& source, const TensorInfo& tensor, int64_t begin,
                         int64_t end, float* to);

}  // namespace banyan
