// Per-layer embeddings (Gemma 3n and 4): each layer receives an extra input for each token. It sums
// a lookup in an embedding table with a slice per layer and a projection of the token's main
// embedding. The table is replicated on every rank.
#pragma once

#include "nn/basic.h"
#include "nn/linear.h"

namespace banyan {

struct LayerInputsConfig {
  int64_t vocabulary = 0, hidden = 0, layers = 0;
  int64_t width = 0;  // of one layer's input
  float eps = 0;
};

class LayerInputs {
 public:
  LayerInputs(Builder b, const LayerInputsConfig& c);

  // Embeddings [T, hidden] of the step's rows -> [T, layers * width]
  Tensor operator()(Step& s, Tensor embeddings) const;

  // The slice of layer `index`, [T, width].
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

// Adds a layer's input to the residual stream: norm(projection(gelu(gate(x)) * input)).
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
