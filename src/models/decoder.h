// The skeleton that decoder-only families share: embed, one layer after the other, norm, head.
// `Layer` is the family's own: it takes (Step&, Tensor x, const Rotation&) and returns the new
// residual stream.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "models/model.h"
#include "nn/basic.h"
#include "nn/rope.h"
#include "ops/draw.h"

namespace banyan {

struct DecoderConfig {
  int64_t vocabulary = 0, hidden = 0, layers = 0;
  float eps = 0;
  bool tied = false;
  std::string_view embedding = "embed_tokens";  // its name below `model`
  RopeConfig rope;
};

template <class Layer>
class DecoderModel final : public Model {
 public:
  // `make_layer(scope, index)` builds each layer under `model.layers.<index>`.
  template <class MakeLayer>
  DecoderModel(Builder b, ModelInfo info, const DecoderConfig& c, MakeLayer make_layer)
      : Model(std::move(info)),
        tokens_(b / "model", c.embedding, b, c.vocabulary, c.hidden, c.tied),
        rope_(b, c.rope),
        norm_(b / "model" / "norm", c.hidden, c.eps) {
    layers_.reserve(static_cast<size_t>(c.layers));
    for (int64_t i = 0; i < c.layers; ++i) {
      layers_.push_back(make_layer(b / "model" / "layers" / i, i));
    }
  }

  Outputs forward(Step& s) const override {
    Outputs outputs;
    for (size_t i = 0; i < s.auxiliary_layers.size(); ++i) {
      outputs.auxiliary.push_back(s.allocate({s.batch.rows(), info().hidden}));
    }
    Rotation rotation = rope_(s);
    // The residual stream crosses each layer in the same place, so a step needs the memory of one
    // layer, not of all.
    Tensor x = tokens_.embed(s, known_tokens(s));
    size_t mark = s.arena.mark();
    for (size_t i = 0; i < layers_.size(); ++i) {
      hand_out(s, static_cast<int>(i), x, outputs);
      s.copy(layers_[i](s, x, rotation), x);
      s.arena.rewind(mark);
    }
    hand_out(s, static_cast<int>(layers_.size()), x, outputs);
    outputs.hidden = norm_(s, x);
    return outputs;
  }

  Tensor logits(Step& s, Tensor hidden) const override { return tokens_.logits(s, hidden); }

 private:
  // Copies x, the residual stream entering layer `index`, if the step asks for it.
  static void hand_out(const Step& s, int index, Tensor x, Outputs& outputs) {
    for (size_t i = 0; i < s.auxiliary_layers.size(); ++i) {
      if (s.auxiliary_layers[i] == index) s.copy(x, outputs.auxiliary[i]);
    }
  }

  TokenEmbedding tokens_;
  Rope rope_;
  std::vector<Layer> layers_;
  RmsNorm norm_;
};

}  // namespace banyan
