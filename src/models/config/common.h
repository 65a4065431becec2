// Reads the parts of config.json that many families spell the same way: sizes, attention, rotation
// and which layers are MoE. Each family file reads only what is specific to it.
//
// Errors are collected in the ConfigFile passed in; finish() reports them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/decoder.h"
#include "nn/gqa_attention.h"
#include "nn/mla_attention.h"
#include "weights/files/config_file.h"

namespace banyan {

inline constexpr int64_t kWidthMax = 1 << 20;
inline constexpr int64_t kLayersMax = 1 << 10;
inline constexpr int64_t kHeadsMax = 1 << 12;
inline constexpr int64_t kHeadDimMax = 1 << 10;
inline constexpr int64_t kContextMax = int64_t{1} << 30;

// Per-family defaults for keys missing from config.json. The values here follow transformers.
struct DecoderDefaults {
  int64_t vocabulary = 0;  // 0: the key is required
  std::string_view layers_key = "num_hidden_layers";
  std::string_view scope = "model";             // of everything but the head; see language_part.h
  std::string_view embedding = "embed_tokens";  // name of the embedding table in that scope
  std::string_view eps_key = "rms_norm_eps";
  double eps = 1e-6;
  bool gelu = false;        // tanh-approximated GELU instead of SiLU
  bool swiglu_oai = false;  // so it may be named in place of SiLU
  bool tied = false;        // used if config.json has no key and the checkpoint no lm_head
};
// Vocabulary size, hidden size, number of layers, norm eps, and whether embeddings are tied.
DecoderConfig read_decoder(const ConfigFile& config, const Builder& b,
                           const DecoderDefaults& defaults = {});

// Per-family attention defaults for keys missing from config.json.
struct GqaDefaults {
  int64_t heads = 0;     // 0: the key is required
  int64_t kv_heads = 0;  // 0: same as query heads
  int64_t head_dim = 0;  // 0: hidden_size / num_attention_heads
};
GqaConfig read_gqa(const ConfigFile& config, const DecoderConfig& decoder,
                   const GqaDefaults& defaults);

struct RotationDefaults {
  int64_t context_tokens = 0;
  double theta = 10000;
  bool partial = false;      // the family supports partial_rotary_factor
  bool query_scale = false;  // the family supports llama_4_scaling_beta
};
// Reads the rotary embedding for `rotary_dim` elements per head into `decoder`. Returns
// max_position_embeddings, extended by YaRN's factor where there is one.
int64_t read_rotation(const ConfigFile& config, int64_t rotary_dim,
                      const RotationDefaults& defaults, DecoderConfig& decoder);

// `sliding_window`: `absent` if the key is missing, 0 (no window) if it is null.
int64_t read_window(const ConfigFile& config, int64_t absent = 4096);

// Multi-head latent attention with DeepSeek's config keys. Call read_rotation() first: YaRN may
// change the softmax scale.
MlaConfig read_mla(const ConfigFile& config, const Builder& b, const DecoderConfig& decoder);

// Which layers are MoE: from `mlp_layer_types`, or every `every`th layer after the first dense
// ones.
std::vector<bool> read_moe_layers(const ConfigFile& config, int64_t layers, int64_t dense_default,
                                  int64_t every = 1);

// Qwen's rule: every `decoder_sparse_step`th layer, except those in `mlp_only_layers`.
std::vector<bool> read_stepped_moe_layers(const ConfigFile& config, int64_t layers);

// For each entry of the list under `key`: is it `type`? Any entry other than `type` or `other` is
// an error.
std::vector<bool> layers_of_type(const ConfigFile& config, std::string_view key,
                                 std::string_view type, std::string_view other, int64_t layers);

// A list of 0 or 1 for each layer.
std::vector<bool> read_layer_flags(const ConfigFile& config, std::string_view key, int64_t layers);

// For hybrid models: true where `layer_types` says full_attention, false for linear_attention.
std::vector<bool> latent_layers_of_types(const ConfigFile& config, int64_t layers);

// Ignores the tensors of `count` MTP layers, which follow the main layers. common.cpp lists the
// tensor names that such a layer may have.
void skip_prediction_layers(const Builder& layers, int64_t first, int64_t count);
// The same for `model.layers` of `b`, with the count taken from num_nextn_predict_layers.
void read_prediction_layers(const ConfigFile& config, const Builder& b, int64_t layers);

// Returns whether to load the first of the MTP layers, from `first` on. Ignores the tensors of all
// MTP layers that are not loaded, and the copies of embedding and head inside the one that is.
bool take_prediction_layer(const ConfigFile& config, const Builder& layers, int64_t first);

}  // namespace banyan
