#include "models/sparse.h"

#include <algorithm>
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

void add_prediction(const SparseConfig& c, const MixerConfig& mixer, LayeredDecoderConfig& all) {
  if (!c.predicts) return;
  bool moe = std::ranges::find(c.moe_layers, true) != c.moe_layers.end();
  all.prediction = moe ? sparse_layer(c) : dense_layer(c);
  all.prediction->mixer = mixer;
  all.prediction_names = c.prediction;
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
  MixerConfig attention = attentions.back();
  // The MTP layer has its own index, since no earlier layer has chosen for it.
  auto* latent = std::get_if<MlaConfig>(&attention);
  if (latent != nullptr && latent->index) latent->index->shared = false;
  add_prediction(c, attention, all);
  return make_layered_decoder(config, b, all);
}

}  // namespace banyan
