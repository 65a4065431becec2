#include "models/hybrid.h"

#include <variant>

#include "base/error.h"
#include "base/signed.h"

namespace banyan {
namespace {

float limit_of(const std::vector<double>& limits, int64_t layer) {
  return layer < std::ssize(limits) ? at(limits, layer) : 0;
}

MixerConfig recurrence_of(const HybridConfig& c, int64_t layer) {
  MixerConfig mixer = c.recurrence;
  if (auto* lightning = std::get_if<LightningConfig>(&mixer)) lightning->layer = layer;
  return mixer;
}

LayerConfig layer_of(const HybridConfig& c, const Builder& scope, int64_t index) {
  bool attends = at(c.attention_layers, index);
  LayerConfig layer = layer_of(c.sparse, index);
  if (auto* moe = std::get_if<MoeConfig>(&*layer.ffn)) {
    moe->glu.limit = limit_of(c.limits, index);
    moe->shared_glu.limit = limit_of(c.shared_limits, index);
  } else if (!c.sparse.moe_scope.empty()) {
    // transformers saves dense MLPs under the MoE's name.
    bool renamed = (scope / c.sparse.moe_scope / "gate_proj").has("weight");
    if (renamed) layer.ffn_scope = c.sparse.moe_scope;
  }
  layer.mixer = attends ? c.attention : recurrence_of(c, index);
  if (!attends && !c.recurrence_scope.empty()) layer.mixer_scope = c.recurrence_scope;
  return layer;
}

}  // namespace

Result<std::unique_ptr<Model>> make_hybrid(const ConfigFile& config, Builder b,
                                           const HybridConfig& c) {
  TRY(config.finish());  // the per-layer lists below are complete only if nothing failed
  LayeredDecoderConfig all{
      .decoder = c.sparse.decoder, .context_tokens = c.sparse.context_tokens, .style = c.style};
  Builder layers = b / all.decoder.scope / "layers";
  for (int64_t i = 0; i < all.decoder.layers; ++i) {
    all.layers.push_back(layer_of(c, layers / i, i));
  }
  add_prediction(c.sparse, c.attention, all);
  return make_layered_decoder(config, b, all);
}

}  // namespace banyan
