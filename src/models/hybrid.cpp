#include "models/hybrid.h"

#include <string>
#include <variant>

#include "base/error.h"

namespace banyan {
namespace {

float limit_of(const std::vector<double>& limits, size_t layer) {
  return layer < limits.size() ? static_cast<float>(limits[layer]) : 0;
}

SparseMlp make_mlp(Builder b, const HybridConfig& c, int64_t index) {
  auto i = static_cast<size_t>(index);
  SparseConfig sparse = c.sparse;
  sparse.moe.glu.limit = limit_of(c.limits, i);
  sparse.moe.shared_glu.limit = limit_of(c.shared_limits, i);
  // transformers saves dense blocks under the name of those with experts.
  bool renamed = !c.moe_scope.empty() && (b / c.moe_scope / "gate_proj").has("weight");
  std::string_view scope = sparse.moe_layers[i] || renamed ? c.moe_scope : c.dense_scope;
  return SparseMlp(scope.empty() ? b : b / scope, sparse, index);
}

MixerConfig mixer_of(const HybridConfig& c, int64_t layer) {
  if (c.attention_layers[static_cast<size_t>(layer)]) return c.attention;
  MixerConfig mixer = c.recurrence;
  if (auto* lightning = std::get_if<LightningConfig>(&mixer)) lightning->layer = layer;
  return mixer;
}

std::string_view scope_of(const HybridConfig& c, int64_t layer) {
  bool attends = c.attention_layers[static_cast<size_t>(layer)] || c.recurrence_scope.empty();
  return attends ? c.sparse.attention : c.recurrence_scope;
}

RmsNorm norm_of(Builder b, const DecoderConfig& c) {
  return RmsNorm(b, c.hidden, c.eps, c.norm_weight);
}

}  // namespace

HybridLayer::HybridLayer(Builder b, const HybridConfig& c, int64_t index)
    : residual_scale_(c.residual_scale),
      mixer_norm_(norm_of(b / c.mixer_norm, c.sparse.decoder)),
      mlp_norm_(norm_of(b / c.mlp_norm, c.sparse.decoder)),
      mixer_(b / scope_of(c, index), mixer_of(c, index)),
      mlp_(make_mlp(b, c, index)) {}

Result<std::unique_ptr<Model>> make_hybrid(const ConfigFile& config, Builder b,
                                           const HybridConfig& c) {
  check_router(config, c.sparse.moe.router);
  TRY(config.finish());
  const DecoderConfig& decoder = c.sparse.decoder;
  ModelInfo info{.architecture = TRY(config.architecture()),
                 .vocabulary = decoder.vocabulary,
                 .hidden = decoder.hidden,
                 .context_length_tokens = c.sparse.context_tokens};
  for (size_t i = 0; i < c.attention_layers.size(); ++i) {
    MixerInfo mixer = describe(mixer_of(c, static_cast<int64_t>(i)));
    info.attention_flops_per_key += mixer.flops_per_key;
    info.prompt_attention_flops_per_key += mixer.prompt_flops_per_key;
    info.layers.push_back({mixer.name, c.sparse.moe_layers[i] ? describe(c.sparse.moe) : "dense"});
  }
  auto make_layer = [&c](Builder scope, int64_t i) { return HybridLayer(scope, c, i); };
  using Prediction = PredictionLayer<HybridLayer>;
  auto make_prediction = [&]() -> std::optional<Prediction> {
    if (!c.sparse.predicts) return std::nullopt;
    HybridConfig further = c;
    further.attention_layers.push_back(true);
    further.sparse.moe_layers.push_back(true);
    Builder scope = b / decoder.scope / "layers" / decoder.layers;
    return Prediction(scope, scope / "final_layernorm", decoder, {},
                      HybridLayer(scope, further, decoder.layers));
  };
  return std::make_unique<DecoderModel<HybridLayer, Prediction>>(b, std::move(info), decoder,
                                                                 make_layer, make_prediction);
}

}  // namespace banyan
