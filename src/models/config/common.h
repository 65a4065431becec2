// What config.json says in the same words for many families: sizes, and the parts of attention and
// of mixtures of experts. Each family file reads its own differences and says so.
//
// Problems stick to the ConfigFile that is read.
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

// Where families differ. A value that config.json leaves out is the one that transformers takes.
struct DecoderDefaults {
  int64_t vocabulary = 0;  // 0: the key must be there
  std::string_view layers_key = "num_hidden_layers";
  std::string_view scope = "model";             // of all but the head; see language_part.h
  std::string_view embedding = "embed_tokens";  // the table's name in that scope
  std::string_view eps_key = "rms_norm_eps";
  double eps = 1e-6;
  bool gelu = false;  // the activation is gelu's approximation with tanh, not silu
  bool tied = false;  // without the key and a head of its own, whatever else the tensors say
};
// Vocabulary, width, depth, eps and whether the embedding is the head too.
DecoderConfig read_decoder(const ConfigFile& config, const Builder& b,
                           const DecoderDefaults& defaults = {});

// Where families differ on a key that config.json leaves out.
struct GqaDefaults {
  int64_t heads = 0;     // 0: the key must be there
  int64_t kv_heads = 0;  // 0: as many as query heads
  int64_t head_dim = 0;  // 0: hidden_size / num_attention_heads
};
GqaConfig read_gqa(const ConfigFile& config, const DecoderConfig& decoder,
                   const GqaDefaults& defaults);

struct RotationDefaults {
  int64_t context_tokens = 0;
  double theta = 10000;
  bool partial = false;      // the family knows what partial_rotary_factor means to it
  bool query_scale = false;  // and what llama_4_scaling_beta does
};
// max_position_embeddings, or what YaRN stretches it to, and the rotation over `rotary_dim`
// elements of a head.
int64_t read_rotation(const ConfigFile& config, int64_t rotary_dim,
                      const RotationDefaults& defaults, DecoderConfig& decoder);

// `sliding_window`: `absent` where the key is missing, 0 (none) where it is null.
int64_t read_window(const ConfigFile& config, int64_t absent = 4096);

// Multi-head latent attention in DeepSeek's words. The rotation is read before, since YaRN may ask
// for another scale of the scores.
MlaConfig read_mla(const ConfigFile& config, const Builder& b, const DecoderConfig& decoder);

// The layers with experts: by `mlp_layer_types`, or of those after the first few every `every`th.
std::vector<bool> read_moe_layers(const ConfigFile& config, int64_t layers, int64_t dense_default,
                                  int64_t every = 1);

// Of Qwen: every `decoder_sparse_step`th, but for those in `mlp_only_layers`.
std::vector<bool> read_stepped_moe_layers(const ConfigFile& config, int64_t layers);

// Which entries of the list of layer types under `key` are `type`; all others must be `other`.
std::vector<bool> layers_of_type(const ConfigFile& config, std::string_view key,
                                 std::string_view type, std::string_view other, int64_t layers);

// Of the `layer_types` of a hybrid, which are full_attention and not linear_attention.
std::vector<bool> latent_layers_of_types(const ConfigFile& config, int64_t layers);

// Lets the tensors of the `count` layers that predict further tokens, which come after the others,
// be there unused; which tensors these may be is a list in the source.
void skip_prediction_layers(const Builder& layers, int64_t first, int64_t count);
// The same of the `model.layers` of `b`, as many as num_nextn_predict_layers says.
void read_prediction_layers(const ConfigFile& config, const Builder& b, int64_t layers);

// Whether to load the first of `count` layers that predict further tokens; those that are not
// loaded are skipped, and copies of the embedding and the head in the one that is.
bool take_prediction_layer(const Builder& layers, int64_t first, int64_t count);

}  // namespace banyan
