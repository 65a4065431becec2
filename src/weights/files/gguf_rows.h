// How llama.cpp's converter rearranges a tensor of the original checkpoint: it swaps rows, and
// replaces the values of some vectors by what its kernels want.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "banyan/status.h"
#include "base/gguf.h"
#include "weights/files/checkpoint.h"
#include "weights/files/gguf_architectures.h"

namespace banyan {

// From row `first` on, every outer * inner * rows rows are [outer, inner, rows] originally and
// [inner, outer, rows] in the file.
struct RowSwap {
  int64_t first = 0, outer = 1, inner = 1, rows = 1;

  bool none() const { return outer == 1 || inner == 1; }
  // The row of the file that is row `row` of the original.
  int64_t stored(int64_t row) const;
};

// The swap of `tensor`, whose name is already Hugging Face's. kCorrupt if its rows do not fit the
// metadata.
Result<RowSwap> row_swap_of(const GgufArchitecture& architecture, const GgufPairs& pairs,
                            const TensorInfo& tensor);

enum class ValueChange : uint8_t {
  kNone,
  kPlusOne,  // of Gemma's and Qwen's norms
  kExp,      // exp(x) or -exp(x), of the logarithms of rates
};

ValueChange value_change_of(const GgufArchitecture& architecture, std::string_view name);
void undo_change(ValueChange change, std::span<float> values);

}  // namespace banyan
