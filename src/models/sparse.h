// What the families of sparse decoders have in common: one attention and one feed-forward block in
// each layer, the latter dense in some layers and a mixture of experts in the others.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/config/common.h"
#include "models/prediction.h"

namespace banyan {

struct SparseConfig {
  DecoderConfig decoder;
  int64_t context_tokens = 0;
  int64_t intermediate = 0;  // of the dense layers
  Glu glu = {};              // of these
  GatedMlpNames dense_names = {};
  std::vector<bool> moe_layers;  // per layer
  MoeConfig moe;
  std::string_view attention = "self_attn";  // its name in a layer
  bool predicts = false;  // a layer with experts beyond the last predicts a further token
};

// A feed-forward block of one kind or the other.
class SparseMlp {
 public:
  SparseMlp(Builder b, const SparseConfig& c, int64_t layer) {
    if (c.moe_layers[static_cast<size_t>(layer)]) {
      moe_.emplace(b, c.moe);
    } else {
      dense_.emplace(b, c.decoder.hidden, c.intermediate, false, c.glu, c.dense_names);
    }
  }
  Tensor operator()(Step& s, Tensor x) const { return moe_ ? (*moe_)(s, x) : (*dense_)(s, x); }

 private:
  std::optional<Moe> moe_;
  std::optional<GatedMlp> dense_;
};

template <class Attention>
class SparseLayer {
 public:
  template <class AttentionConfig>
  SparseLayer(Builder b, const SparseConfig& c, const AttentionConfig& attention, int64_t index)
      : attention_norm_(b / "input_layernorm", c.decoder.hidden, c.decoder.eps),
        mlp_norm_(b / "post_attention_layernorm", c.decoder.hidden, c.decoder.eps),
        attention_(b / c.attention, attention),
        mlp_(b / "mlp", c, index) {}

  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const {
    x = add(s, x, attention_(s, attention_norm_(s, x), rotation));
    return add(s, x, mlp_(s, mlp_norm_(s, x)));
  }

 private:
  RmsNorm attention_norm_, mlp_norm_;
  Attention attention_;
  SparseMlp mlp_;
};

// Checks that reading went well and builds the model.
template <class Attention, class AttentionConfig>
Result<std::unique_ptr<Model>> make_sparse(const ConfigFile& config, Builder b,
                                           const SparseConfig& c, const AttentionConfig& attention,
                                           const std::string& mixer, int64_t flops_per_key,
                                           int64_t prompt_flops_per_key = 0) {
  check_router(config, c.moe.router);
  TRY(config.finish());
  ModelInfo info{.architecture = TRY(config.architecture()),
                 .vocabulary = c.decoder.vocabulary,
                 .hidden = c.decoder.hidden,
                 .context_length_tokens = c.context_tokens,
                 .attention_flops_per_key = flops_per_key * c.decoder.layers,
                 .prompt_attention_flops_per_key = prompt_flops_per_key * c.decoder.layers};
  for (bool moe : c.moe_layers) {
    info.layers.push_back({mixer, moe ? describe(c.moe) : std::string("dense")});
  }
  using Layer = SparseLayer<Attention>;
  auto make_layer = [&](Builder scope, int64_t i) { return Layer(scope, c, attention, i); };
  using Prediction = PredictionLayer<Layer>;
  auto make_prediction = [&]() -> std::optional<Prediction> {
    if (!c.predicts) return std::nullopt;
    SparseConfig further = c;
    further.moe_layers.push_back(true);
    Builder scope = b / c.decoder.scope / "layers" / c.decoder.layers;
    return Prediction(scope, scope / "shared_head" / "norm", c.decoder, {},
                      Layer(scope, further, attention, c.decoder.layers));
  };
  return std::make_unique<DecoderModel<Layer, Prediction>>(b, std::move(info), c.decoder,
                                                           make_layer, make_prediction);
}

}  // namespace banyan
