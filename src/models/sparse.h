// What the families of sparse decoders have in common: a feed-forward block in each layer that is
// dense in some layers and a mixture of experts in the others.
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
  int64_t intermediate = 0;  // of the dense layers
  bool bias = false;         // of these
  Glu glu = {};
  GatedMlpNames names = {};
  std::vector<bool> moe_layers;  // per layer; empty: all are dense
  MoeConfig moe;
  // Names in a layer.
  std::string_view attention = "self_attn", moe_scope = "mlp", dense_scope = "mlp";
  bool predicts = false;  // a layer with experts beyond the last predicts a further token
};

// A layer of one kind and of the other, and the one of that number, all without a mixer.
LayerConfig sparse_layer(const SparseConfig& c);
LayerConfig dense_layer(const SparseConfig& c);
LayerConfig layer_of(const SparseConfig& c, int64_t layer);

// Checks that reading went well and builds the model, whose layers attend each as `attentions`
// says.
Result<std::unique_ptr<Model>> make_sparse(const ConfigFile& config, Builder b,
                                           const SparseConfig& c,
                                           const std::vector<MixerConfig>& attentions);
// All in the same way.
Result<std::unique_ptr<Model>> make_sparse(const ConfigFile& config, Builder b,
                                           const SparseConfig& c, const MixerConfig& attention);

}  // namespace banyan
