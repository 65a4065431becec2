// What a token gives each layer besides the residual stream (per-layer embeddings of Gemma 3n and
// 4): a table of embeddings with a part for each layer, and a projection of the stream's own
// embedding. Every rank has the whole table.
#pragma once

#include "nn/basic.h"
#include "nn/linear.h"

namespace banyan {

struct LayerInputsConfig {
  int64_t vocabulary = 0, hidden = 0, layers = 0;
  int64_t width = 0;  // of what one layer gets
  float eps = 0;
};

class LayerInputs {
 public:
  LayerInputs(Builder b, const LayerInputsConfig& c);

  // The embeddings [T, hidden] of the step's rows -> [T, layers * width]
  Tensor operator()(Step& s, Tensor embeddings) const;

  // Of these, what layer `index` gets, [T, width].
  Tensor of_layer(Tensor inputs, int64_t index) const {
    return inputs.columns(index * width_, width_);
  }

 private:
  int64_t width_;
  PackedMatrix table_;
  Linear projection_;
  RmsNorm norm_;
  float projection_scale_, table_scale_;
};

// What a layer adds to the stream of it: norm(projection(gelu(gate(x)) * input)).
class LayerInputBlock {
 public:
  LayerInputBlock(Builder b, const LayerInputsConfig& c);

  // x [T, hidden], input [T, width] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x, Tensor input) const;

 private:
  Linear gate_, projection_;
  RmsNorm norm_;
};

}  // namespace banyan
