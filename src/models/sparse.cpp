#include "models/sparse.h"

#include <variant>

#include "base/error.h"
#include "base/signed.h"

namespace banyan {

LayerConfig sparse_layer(const SparseConfig& c) {
  return {.ffn = c.moe, .mixer_scope = c.attention, .ffn_scope = c.moe_scope};
}

LayerConfig dense_layer(const SparseConfig& c) {
  DenseConfig dense{.hidden = c.decoder.hidden,
                    .intermediate = c.intermediate,
                    .bias = c.bias,
                    .glu = c.glu,
                    .names = c.names};
  return {.ffn = dense, .mixer_scope = c.attention, .ffn_scope = c.dense_scope};
}

LayerConfig layer_of(const SparseConfig& c, int64_t layer) {
  bool sparse = !c.moe_layers.empty() && at(c.moe_layers, layer);
  return sparse ? sparse_layer(c) : dense_layer(c);
}

Result<std::unique_ptr<Model>> make_sparse(const ConfigFile& config, Builder b,
                                           const SparseConfig& c, const MixerConfig& attention) {
  return make_sparse(config, b, c, std::vector<MixerConfig>(as_size(c.decoder.layers), attention));
}

Result<std::unique_ptr<Model>> make_sparse(const ConfigFile& config, Builder b,
                                           const SparseConfig& c,
                                           const std::vector<MixerConfig>& attentions) {
  TRY(config.finish());  // the per-layer lists below are complete only if nothing failed
  LayeredDecoderConfig all{.decoder = c.decoder, .context_tokens = c.context_tokens};
  for (int64_t i = 0; i < c.decoder.layers; ++i) {
    all.layers.push_back(layer_of(c, i));
    all.layers.back().mixer = at(attentions, i);
  }
  if (c.predicts) {
    all.prediction = sparse_layer(c);
    all.prediction->mixer = attentions.back();
    // It runs alone, so there is no layer whose choice it could take.
    auto* latent = std::get_if<MlaConfig>(&*all.prediction->mixer);
    if (latent != nullptr && latent->index) latent->index->shared = false;
    all.prediction_norm = "shared_head.norm";
  }
  return make_layered_decoder(config, b, all);
}

}  // namespace banyan
