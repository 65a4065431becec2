#include "models/hybrid.h"

#include <string>

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
  bool renamed = (b / c.moe_scope / "gate_proj").has("weight");
  return SparseMlp(b / (sparse.moe_layers[i] || renamed ? c.moe_scope : "mlp"), sparse, index);
}

}  // namespace

HybridLayer::HybridLayer(Builder b, const HybridConfig& c, int64_t index)
    : mixer_norm_(b / "input_layernorm", c.sparse.decoder.hidden, c.sparse.decoder.eps),
      mlp_norm_(b / "post_attention_layernorm", c.sparse.decoder.hidden, c.sparse.decoder.eps),
      mlp_(make_mlp(b, c, index)) {
  Builder scope = b / c.sparse.attention;
  if (c.latent_layers[static_cast<size_t>(index)]) {
    mla_.emplace(scope, c.mla);
  } else if (c.kda) {
    kda_.emplace(scope, *c.kda);
  } else {
    LightningConfig lightning = *c.lightning;
    lightning.layer = index;
    lightning_.emplace(scope, lightning);
  }
}

Tensor HybridLayer::mix(Step& s, Tensor x, const Rotation& rotation) const {
  if (mla_) return (*mla_)(s, x, rotation);
  return kda_ ? (*kda_)(s, x) : (*lightning_)(s, x, rotation);
}

Result<std::unique_ptr<Model>> make_hybrid(const ConfigFile& config, Builder b,
                                           const HybridConfig& c) {
  check_router(config, c.sparse.moe.router);
  TRY(config.finish());
  const DecoderConfig& decoder = c.sparse.decoder;
  ModelInfo info{.architecture = TRY(config.architecture()),
                 .vocabulary = decoder.vocabulary,
                 .hidden = decoder.hidden,
                 .context_length_tokens = c.sparse.context_tokens};
  for (size_t i = 0; i < c.latent_layers.size(); ++i) {
    bool latent = c.latent_layers[i];
    if (latent) {
      info.attention_flops_per_key += mla_flops_per_key(c.mla);
      info.prompt_attention_flops_per_key += mla_prompt_flops_per_key(c.mla);
    }
    const char* mla = c.mla.expanded_prefill ? "mla, expanded prefill" : "mla";
    info.layers.push_back({latent  ? mla
                           : c.kda ? "kda"
                                   : "lightning",
                           c.sparse.moe_layers[i] ? describe(c.sparse.moe) : "dense"});
  }
  auto make_layer = [&c](Builder scope, int64_t i) { return HybridLayer(scope, c, i); };
  return std::make_unique<DecoderModel<HybridLayer>>(b, std::move(info), decoder, make_layer);
}

}  // namespace banyan
