// The formats of GGUF (kernels/block_forms.h), which only files provide.
#include "quant/codes.h"

namespace banyan {

void dequantise_blocks(const BlockForm& form, const QuantisedRows& from, const RowsShape& shape,
                       float* x) {
  for (int64_t i = 0; i < shape.rows * shape.columns; i += kLevelColumns) {
    int64_t group = i / shape.group, level = i / kLevelColumns;
    float scale = from.scales[group], min = form.mins ? from.mins[group] : 0;
    if (shape.group == kLevelledGroup) {
      scale *= from.levels[level];
      if (form.mins) min *= from.min_levels[level];
    }
    for (int64_t c = i; c < i + kLevelColumns; ++c) {
      x[c] = scale * block_value(form, from.codes[c]) - min;
    }
  }
}

}  // namespace banyan
