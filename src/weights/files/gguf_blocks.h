// The block formats of GGUF: numbers along a row in blocks of 32 or 256, with their scales inside.
// The layouts are those of ggml's block structs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "banyan/status.h"
#include "quant/codes.h"
#include "weights/files/checkpoint.h"

namespace banyan {

struct BlockShape {
  int64_t numbers = 0;  // in a block
  int64_t bytes = 0;    // of a block
};

BlockShape block_shape(BlockFormat format);
std::string_view block_format_name(BlockFormat format);  // "gguf q4_k"
// The weight format that holds it as it is, with groups of 32; empty if none does.
std::string_view exact_format_of(BlockFormat format);

// Rows [begin, end) of `tensor`, one of `source`'s: as codes with a scale for every 32 columns,
// where there is an exact format, or as f32. kCorrupt when a scale is not finite.
Status read_block_codes(const WeightSource& source, const TensorInfo& tensor, int64_t begin,
                        int64_t end, const QuantisedRows& to);
Status read_block_floats(const WeightSource& source, const TensorInfo& tensor, int64_t begin,
                         int64_t end, float* to);

}  // namespace banyan
