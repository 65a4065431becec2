// The skeleton that decoder-only families share: embed, one layer after the other, norm, head.
// `Layer` is nearly always DecoderLayer (layered_decoder.h): it takes (Step&, Tensor x, const
// Rotation&) and returns the new residual stream. One that takes a fourth, a Tensor, is given its
// part of what `LayerInputs` made of the embeddings.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/signed.h"
#include "models/model.h"
#include "nn/basic.h"
#include "nn/layer_inputs.h"
#include "nn/residual.h"
#include "nn/rope.h"
#include "ops/draw.h"
#include "ops/index.h"

namespace banyan {

struct DecoderConfig {
  int64_t vocabulary = 0, hidden = 0, layers = 0;
  float eps = 0;
  bool tied = false;
  std::string_view scope = "model";             // of all but the head
  std::string_view embedding = "embed_tokens";  // its name in that scope
  std::string_view norm = "norm";               // the last norm's name
  NormWeight norm_weight = NormWeight::kPlain;
  RopeConfig rope;
  std::vector<RopeConfig> other_ropes;   // where layers turn in several ways
  float embedding_scale = 1;             // of what enters the first layer
  float logit_scale = 1, logit_cap = 0;  // of logits, then their soft cap; 0: none
};

// What the blocks of its layers have in common. `scale`: of what a block adds.
inline ResidualConfig residual_of(const DecoderConfig& c, float scale = 1) {
  return {c.hidden, c.eps, c.norm_weight, scale};
}

// Where no layer predicts further tokens.
struct NoPrediction {
  template <class... Arguments>
  Tensor operator()(Arguments&&... /*arguments*/) const {
    return {};
  }
};

template <class Layer, class Prediction = NoPrediction>
class DecoderModel final : public Model {
 public:
  // `make_layer(scope, index)` builds each layer under `<scope>.layers.<index>`.
  // `make_prediction()` builds the layer that predicts a further token, or nothing. `layer_ropes`:
  // of each layer, 0 for `c.rope`, i for the ith of `c.other_ropes`; empty: 0 for all.
  template <class MakeLayer, std::invocable MakePrediction>
  DecoderModel(Builder b, ModelInfo info, const DecoderConfig& c, MakeLayer make_layer,
               MakePrediction make_prediction, std::vector<int> layer_ropes = {})
      : Model(std::move(info)),
        tokens_(b / c.scope, c.embedding, b, c.vocabulary, c.hidden, c.tied),
        ropes_(1, Rope(b, c.rope)),
        layer_ropes_(std::move(layer_ropes)),
        norm_(b / c.scope / c.norm, c.hidden, c.eps, c.norm_weight),
        embedding_scale_(c.embedding_scale),
        logit_scale_(c.logit_scale),
        logit_cap_(c.logit_cap) {
    for (const RopeConfig& rope : c.other_ropes) ropes_.emplace_back(b, rope);
    layer_ropes_.resize(as_size(c.layers));
    layers_.reserve(as_size(c.layers));
    for (int64_t i = 0; i < c.layers; ++i) {
      layers_.push_back(make_layer(b / c.scope / "layers" / i, i));
    }
    prediction_ = make_prediction();
  }
  template <class MakeLayer>
  DecoderModel(Builder b, ModelInfo info, const DecoderConfig& c, MakeLayer make_layer,
               std::vector<int> layer_ropes = {})
      : DecoderModel(
            b, std::move(info), c, make_layer, [] { return std::optional<Prediction>(); },
            std::move(layer_ropes)) {}

  Outputs forward(Step& s) const override {
    Outputs outputs;
    for (size_t i = 0; i < s.auxiliary_layers.size(); ++i) {
      outputs.auxiliary.push_back(s.allocate({s.batch.rows(), info().hidden}));
    }
    std::array<Rotation, kRopesMax> rotations;
    for (size_t i = 0; i < ropes_.size(); ++i) rotations[i] = ropes_[i](s);
    // The residual stream crosses each layer in the same place, so a step needs the memory of one
    // layer, not of all.
    Tensor x = tokens_.embed(s, known_tokens(s));
    if (embedding_scale_ != 1) x = scale(s, x, embedding_scale_);
    int64_t chosen = info().index_top_k;  // room for what an index chooses, over the layers
    if (chosen > 0) s.choice = allocate_choice(s, chosen);
    Tensor inputs = layer_inputs_ ? (*layer_inputs_)(s, x) : Tensor(), input;
    size_t mark = s.arena.mark();
    for (size_t i = 0; i < layers_.size(); ++i) {
      TraceSpan span(s.trace, "layer", "layer", static_cast<int64_t>(i));
      hand_out(s, static_cast<int>(i), x, outputs);
      if (layer_inputs_) input = layer_inputs_->of_layer(inputs, static_cast<int64_t>(i));
      s.copy(run(layers_[i], s, x, at(rotations, layer_ropes_[i]), input), x);
      s.arena.rewind(mark);
    }
    hand_out(s, static_cast<int>(layers_.size()), x, outputs);
    outputs.hidden = norm_(s, x);
    return outputs;
  }

  Tensor logits(Step& s, Tensor hidden) const override {
    Tensor y = tokens_.logits(s, hidden);
    if (logit_cap_ > 0) return soft_cap(s, y, logit_cap_, logit_scale_);
    return logit_scale_ == 1 ? y : scale(s, y, logit_scale_);
  }

  // Where layers take something of the token besides the stream.
  void set_layer_inputs(LayerInputs inputs) { layer_inputs_ = std::move(inputs); }

  bool predicts() const override { return prediction_.has_value(); }
  Tensor predict(Step& s, Tensor hidden) const override {
    if (!prediction_) return Model::predict(s, hidden);
    Rotation rotation = ropes_[0](s);
    if (info().index_top_k > 0) s.choice = allocate_choice(s, info().index_top_k);
    return (*prediction_)(s, tokens_.embed(s, known_tokens(s)), hidden, rotation);
  }

 private:
  static constexpr size_t kRopesMax = 3;

  static Tensor run(const Layer& layer, Step& s, Tensor x, const Rotation& rotation, Tensor input) {
    if constexpr (std::invocable<const Layer&, Step&, Tensor, const Rotation&, Tensor>) {
      return layer(s, x, rotation, input);
    } else {
      return layer(s, x, rotation);
    }
  }

  // Copies x, the residual stream entering layer `index`, if the step asks for it.
  static void hand_out(const Step& s, int index, Tensor x, Outputs& outputs) {
    for (size_t i = 0; i < s.auxiliary_layers.size(); ++i) {
      if (s.auxiliary_layers[i] == index) s.copy(x, outputs.auxiliary[i]);
    }
  }

  TokenEmbedding tokens_;
  std::vector<Rope> ropes_;
  std::vector<int> layer_ropes_;
  std::vector<Layer> layers_;
  std::optional<Prediction> prediction_;
  std::optional<LayerInputs> layer_inputs_;
  RmsNorm norm_;
  float embedding_scale_, logit_scale_, logit_cap_;
};

}  // namespace banyan
