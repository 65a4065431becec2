// Decoders whose feed-forward blocks are dense in some layers and MoE in others.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "models/config/common.h"
#include "models/layered_decoder.h"

namespace banyan {

struct SparseConfig {
  DecoderConfig decoder;
  int64_t context_tokens = 0;
  int64_t intermediate = 0;  // of dense layers
  bool bias = false;         // of dense layers
  Glu glu = {};
  GatedMlpNames names = {};
  std::vector<bool> moe_layers;  // per layer; empty: all dense
  MoeConfig moe;
  // Scopes within a layer.
  std::string_view attention = "self_attn", moe_scope = "mlp", dense_scope = "mlp";
  bool predicts = false;  // there is an MTP layer, MoE if any layer is
  PredictionNames prediction = {};
};

// An MoE layer, a dense one, and the one at `layer`, all without a mixer.
LayerConfig sparse_layer(const SparseConfig& c);
LayerConfig dense_layer(const SparseConfig& c);
LayerConfig layer_of(const SparseConfig& c, int64_t layer);
// Adds the MTP layer, if there is one, with `mixer`.
void add_prediction(const SparseConfig& c, const MixerConfig& mixer, LayeredDecoderConfig& all);

// Reports any config errors, else builds the model; layer i attends by attentions[i].
Result<std::unique_ptr<Model>> make_sparse(const ConfigFile& config, Builder b,
                                           const SparseConfig& c,
                                           const std::vector<MixerConfig>& attentions);
// The same, with one attention for all layers.
Result<std::unique_ptr<Model>> make_sparse(const ConfigFile& config, Builder b,
                                           const SparseConfig& c, const MixerConfig& attention);

}  // namespace banyan
