#include "nn/layer_inputs.h"

#include <cmath>
#include <numbers>

#include "ops/draw.h"

namespace banyan {

LayerInputs::LayerInputs(Builder b, const LayerInputsConfig& c)
    : width_(c.width),
      table_(b.matrix({"embed_tokens_per_layer", c.vocabulary}, c.layers * c.width,
                      MatrixUse::kLookUp)),
      projection_(b, {{"per_layer_model_projection", c.layers * c.width}}, c.hidden, false),
      norm_(b / "per_layer_projection_norm", c.width, c.eps),
      projection_scale_(1 / std::sqrt(static_cast<float>(c.hidden))),
      table_scale_(std::sqrt(c.width)) {}

Tensor LayerInputs::operator()(Step& s, Tensor embeddings) const {
  constexpr float kMean =
      std::numbers::sqrt2_v<float> / 2;  // keeps unit variance when two inputs are summed
  Tensor y = norm_(s, scale(s, projection_(s, embeddings), projection_scale_));
  Tensor rows = gather_rows(s, table_, known_tokens(s), s.batch.rows());
  return scale(s, add(s, y, scale(s, rows, table_scale_)), kMean);
}

LayerInputBlock::LayerInputBlock(Builder b, const LayerInputsConfig& c)
    : gate_(b, {{"per_layer_input_gate", c.width}}, c.hidden, false),
      projection_(b, {{"per_layer_projection", c.hidden}}, c.width, false),
      norm_(b / "post_per_layer_input_norm", c.hidden, c.eps) {}

Tensor LayerInputBlock::operator()(Step& s, Tensor x, Tensor input) const {
  int64_t width = input.dim(1);
  Tensor both = s.allocate({x.dim(0), 2 * width});
  s.copy(gate_(s, x), both.columns(0, width));
  s.copy(input, both.columns(width, width));
  return norm_(s, projection_(s, silu_mul(s, both, {.form = GluForm::kGeluTanh})));
}

}  // namespace banyan
