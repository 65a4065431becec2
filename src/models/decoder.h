// The skeleton of every decoder-only model: embedding, layers in sequence, final norm, output head.
// `Layer` is nearly always DecoderLayer (layered_decoder.h). It is called with (Step&, Tensor x,
// const Rotation&) and returns the updated residual stream. If it takes a fourth argument, a
// Tensor, that is its slice of the per-layer inputs (`LayerInputs`).
//
// Immutable once built, so any thread may read it; only the engine's thread runs it.
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
  std::string_view scope = "model";             // of everything but the head
  std::string_view embedding = "embed_tokens";  // name of the embedding table in that scope
  std::string_view norm = "norm";               // name of the final norm
  NormWeight norm_weight = NormWeight::kPlain;
  RopeConfig rope;
  std::vector<RopeConfig> other_ropes;   // for models whose layers use several rotations
  float embedding_scale = 1;             // factor on the embeddings
  float logit_scale = 1, logit_cap = 0;  // applied in this order; a cap of 0 is none
};

// Residual settings shared by all blocks. `scale` is the factor on each block's output.
inline ResidualConfig residual_of(const DecoderConfig& c, float scale = 1) {
  return {c.hidden, c.eps, c.norm_weight, scale};
}

// For models without an MTP layer.
struct NoPrediction {
  template <class... Arguments>
  Tensor operator()(Arguments&&... /*arguments*/) const {
    return {};
  }
};

template <class Layer, class Prediction = NoPrediction>
class DecoderModel final : public Model {
 public:
  // Calls `make_layer(scope, index)` for each layer, with scope `<scope>.layers.<index>`.
  // `make_prediction()` returns the MTP layer, or nullptr. `layer_ropes` selects each layer's
  // rotation: 0 is `c.rope`, i is the ith of `c.other_ropes`; empty means 0 for all.
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
    if (auto layers = std::ssize(s.auxiliary_layers); layers > 0) {
      outputs.auxiliary = s.allocate({s.batch.rows(), layers * info().hidden});
    }
    std::array<Rotation, kRopesMax> rotations;
    for (size_t i = 0; i < ropes_.size(); ++i) rotations[i] = ropes_[i](s);
    // Each layer's output overwrites its input in the arena, so a step needs the scratch memory of
    // one layer, not of all.
    Tensor x = embed(s);
    if (embedding_scale_ != 1) x = scale(s, x, embedding_scale_);
    int64_t chosen = info().index_top_k;  // room for the chosen keys, reused by the layers
    if (chosen > 0) s.choice = allocate_choice(s, chosen);
    Tensor inputs = layer_inputs_ ? (*layer_inputs_)(s, x) : Tensor(), input;
    size_t mark = s.arena.mark();
    for (int i = 0; i < std::ssize(layers_); ++i) {
      TraceSpan span(s.trace, "layer", "layer", i);
      hand_out(s, i, x, outputs);
      if (layer_inputs_) input = layer_inputs_->of_layer(inputs, i);
      s.copy(run(at(layers_, i), s, x, at(rotations, at(layer_ropes_, i)), input), x);
      s.arena.rewind(mark);
    }
    hand_out(s, static_cast<int>(layers_.size()), x, outputs);
    outputs.features = outputs.hidden = norm_(s, x);
    return outputs;
  }

  Tensor logits(Step& s, Tensor hidden) const override {
    return scaled(s, tokens_.logits(s, hidden));
  }

  // For layers that receive a per-layer input in addition to the residual stream.
  void set_layer_inputs(LayerInputs inputs) { layer_inputs_ = std::move(inputs); }

  Tensor embed(Step& s) const override { return tokens_.embed(s, known_tokens(s)); }

  bool predicts() const override { return prediction_.has_value(); }
  Tensor predict(Step& s, Tensor hidden) const override {
    if (!prediction_) return Model::predict(s, hidden);
    Rotation rotation = ropes_[0](s);
    if (info().index_top_k > 0) s.choice = allocate_choice(s, info().index_top_k);
    return (*prediction_)(s, embed(s), hidden, rotation);
  }
  Tensor predicted_logits(Step& s, Tensor predicted) const override {
    return scaled(s, tokens_.draft_logits(s, predicted));
  }
  int64_t predicted_vocabulary() const override { return tokens_.draft_vocabulary(); }

 private:
  static constexpr size_t kRopesMax = 3;

  static Tensor run(const Layer& layer, Step& s, Tensor x, const Rotation& rotation, Tensor input) {
    if constexpr (std::invocable<const Layer&, Step&, Tensor, const Rotation&, Tensor>) {
      return layer(s, x, rotation, input);
    } else {
      return layer(s, x, rotation);
    }
  }

  Tensor scaled(Step& s, Tensor logits) const {
    if (logit_cap_ > 0) return soft_cap(s, logits, logit_cap_, logit_scale_);
    return logit_scale_ == 1 ? logits : scale(s, logits, logit_scale_);
  }

  // Copies x, the input of layer `index`, to `outputs` if the step requests it.
  static void hand_out(const Step& s, int index, Tensor x, Outputs& outputs) {
    int64_t width = x.dim(1);
    for (int64_t i = 0; i < std::ssize(s.auxiliary_layers); ++i) {
      if (at(s.auxiliary_layers, i) != index) continue;
      s.copy(x, outputs.auxiliary.columns(i * width, width));
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
