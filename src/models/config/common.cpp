#include "models/config/common.h"

#include <algorithm>
#include <array>

#include "base/signed.h"
#include "models/config/rope.h"

namespace banyan {
namespace {

constexpr int64_t kVocabularyMax = 1 << 24;

// Reads a count. The key is required unless there is a fallback (> 0).
int64_t read_count(const ConfigFile& config, std::string_view key, int64_t fallback, int64_t max) {
  return fallback > 0 ? config.integer_or(key, fallback, 1, max) : config.integer(key, 1, max);
}

// Newer transformers releases save the language model of a multimodal checkpoint under this scope.
std::string_view scope_of_language(const Builder& b, const DecoderDefaults& defaults) {
  constexpr std::string_view kScope = "model.language_model";
  return (b / kScope / defaults.embedding).has("weight") ? kScope : defaults.scope;
}

// Whether embedding and output head share one matrix. They do not if the checkpoint has an lm_head;
// if config.json has no such key, the tensors decide. Some tied checkpoints store the matrix only
// as lm_head. Without any head the embedding takes its place.
bool read_tied(const ConfigFile& config, const Builder& b, const DecoderConfig& c,
               bool tied_default) {
  bool has_head = b.has("lm_head.weight");
  bool has_embedding = (b / c.scope / c.embedding).has("weight");
  if (!config.has("tie_word_embeddings")) return (has_embedding || tied_default) && !has_head;
  bool tied = config.flag("tie_word_embeddings") && !(has_head && has_embedding);
  return tied || b.headless();
}

int64_t count_prediction_layers(const ConfigFile& config) {
  std::string_view key = config.name_of({"num_nextn_predict_layers", "num_mtp_layers"});
  return config.integer_or(key, 0, 0, kLayersMax);
}

}  // namespace

DecoderConfig read_decoder(const ConfigFile& config, const Builder& b,
                           const DecoderDefaults& defaults) {
  DecoderConfig c;
  c.vocabulary = read_count(config, "vocab_size", defaults.vocabulary, kVocabularyMax);
  c.hidden = config.integer("hidden_size", 1, kWidthMax);
  c.layers = config.integer(defaults.layers_key, 1, kLayersMax);
  c.eps = config.number_or(defaults.eps_key, defaults.eps, 1e-12, 1);
  c.scope = scope_of_language(b, defaults);
  c.embedding = defaults.embedding;
  c.tied = read_tied(config, b, c, defaults.tied);
  if (defaults.gelu) {
    config.only("hidden_act", {"gelu_pytorch_tanh"});
    config.only("hidden_activation", {"gelu_pytorch_tanh"});
  } else if (defaults.swiglu_oai) {
    config.only("hidden_act", {"swigluoai", "silu"});
  } else {
    config.only("hidden_act", {"silu", "swish"});
  }
  return c;
}

GqaConfig read_gqa(const ConfigFile& config, const DecoderConfig& decoder,
                   const GqaDefaults& defaults) {
  GqaConfig a{.hidden = decoder.hidden, .eps = decoder.eps};
  a.q_heads = read_count(config, "num_attention_heads", defaults.heads, kHeadsMax);
  int64_t kv_default = defaults.kv_heads > 0 ? defaults.kv_heads : a.q_heads;
  a.kv_heads = config.integer_or("num_key_value_heads", kv_default, 1, kHeadsMax);
  config.expect(a.q_heads % a.kv_heads == 0,
                "num_attention_heads {} is not a multiple of num_key_value_heads {}", a.q_heads,
                a.kv_heads);
  int64_t split_dim = a.hidden / a.q_heads;
  config.expect(config.has("head_dim") || defaults.head_dim > 0 || a.hidden % a.q_heads == 0,
                "hidden_size {} is not a multiple of num_attention_heads {}", a.hidden, a.q_heads);
  int64_t dim_default = defaults.head_dim > 0 ? defaults.head_dim : split_dim;
  a.head_dim = config.integer_or("head_dim", dim_default, 1, kHeadDimMax);
  config.expect(a.head_dim % 2 == 0, "head_dim {} is odd; rotary embeddings need an even one",
                a.head_dim);
  return a;
}

int64_t read_rotation(const ConfigFile& config, int64_t rotary_dim,
                      const RotationDefaults& defaults, DecoderConfig& decoder) {
  int64_t context =
      config.integer_or("max_position_embeddings", defaults.context_tokens, 1, kContextMax);
  decoder.rope = read_rope(config, rotary_dim, context, defaults.theta);
  double part = read_partial_rotary_factor(config);
  config.expect(defaults.partial || part == 1,
                "partial_rotary_factor = {} is not supported by this architecture; supported: 1",
                part);
  config.expect(defaults.query_scale || decoder.rope.query_beta == 0,
                "llama_4_scaling_beta = {} is not supported by this architecture",
                decoder.rope.query_beta);
  return std::max(context, stretched_context_tokens(decoder.rope));
}

int64_t read_window(const ConfigFile& config, int64_t absent) {
  constexpr std::string_view kKey = "sliding_window";
  return config.is_null(kKey) ? 0 : config.integer_or(kKey, absent, 1, kContextMax);
}

MlaConfig read_mla(const ConfigFile& config, const Builder& b, const DecoderConfig& decoder) {
  MlaConfig a{.hidden = decoder.hidden};
  a.expanded_prefill = b.expanded_prefill();
  a.heads = config.integer("num_attention_heads", 1, kHeadsMax);
  a.query_rank = config.maybe_integer("q_lora_rank", 1, kWidthMax).value_or(0);
  a.rank = config.integer("kv_lora_rank", 1, kWidthMax);
  a.nope_dim = config.integer("qk_nope_head_dim", 1, kHeadDimMax);
  a.rope_dim = config.integer("qk_rope_head_dim", 2, kHeadDimMax);
  a.value_dim = config.integer("v_head_dim", 1, kHeadDimMax);
  a.score_factor = decoder.rope.score_factor;
  bool interleaved = config.flag_or("rope_interleave", true);
  a.layout = interleaved ? RopeLayout::kInterleaved : RopeLayout::kHalves;
  config.expect(a.rope_dim % 2 == 0,
                "qk_rope_head_dim {} is odd; rotary embeddings need an even one", a.rope_dim);
  a.bias = config.flag_or("attention_bias", false);
  // These keys describe the equivalent uncompressed KV cache.
  config.ignore({"num_key_value_heads", "head_dim", "qk_head_dim"});
  return a;
}

std::vector<bool> layers_of_type(const ConfigFile& config, std::string_view key,
                                 std::string_view type, std::string_view other, int64_t layers) {
  std::vector<std::string> types = config.texts(key);
  config.expect(std::ssize(types) == layers, "{} has {} entries for {} layers", key, types.size(),
                layers);
  types.resize(as_size(layers), std::string(other));
  std::vector<bool> of_type;
  for (const std::string& entry : types) {
    config.expect(entry == type || entry == other, "{}: \"{}\" is not supported", key, entry);
    of_type.push_back(entry == type);
  }
  return of_type;
}

std::vector<bool> read_layer_flags(const ConfigFile& config, std::string_view key, int64_t layers) {
  std::vector<int64_t> flags = config.integers(key, 0, 1);
  config.expect(std::ssize(flags) == layers, "{} has {} entries for {} layers", key, flags.size(),
                layers);
  flags.resize(as_size(layers));
  return {flags.begin(), flags.end()};
}

std::vector<bool> read_moe_layers(const ConfigFile& config, int64_t layers, int64_t dense_default,
                                  int64_t every) {
  int64_t dense = config.integer_or("first_k_dense_replace", dense_default, 0, kLayersMax);
  if (config.has("mlp_layer_types")) {
    return layers_of_type(config, "mlp_layer_types", "sparse", "dense", layers);
  }
  std::vector<bool> moe_layers;
  for (int64_t i = 0; i < layers; ++i) moe_layers.push_back(i >= dense && i % every == 0);
  return moe_layers;
}

std::vector<bool> read_stepped_moe_layers(const ConfigFile& config, int64_t layers) {
  int64_t every = config.integer_or("decoder_sparse_step", 1, 1, kLayersMax);
  std::vector<int64_t> dense = config.integers("mlp_only_layers", 0, kLayersMax);
  std::vector<bool> moe_layers;
  for (int64_t i = 0; i < layers; ++i) {
    moe_layers.push_back((i + 1) % every == 0 && std::ranges::find(dense, i) == dense.end());
  }
  return moe_layers;
}

std::vector<bool> latent_layers_of_types(const ConfigFile& config, int64_t layers) {
  return layers_of_type(config, "layer_types", "full_attention", "linear_attention", layers);
}

void read_prediction_layers(const ConfigFile& config, const Builder& b, int64_t layers) {
  skip_prediction_layers(b / "model" / "layers", layers, count_prediction_layers(config));
}

void skip_prediction_layers(const Builder& layers, int64_t first, int64_t count) {
  constexpr std::array<std::string_view, 11> kParts = {"enorm",
                                                       "hnorm",
                                                       "eh_proj",
                                                       "embed_tokens",
                                                       "shared_head",
                                                       "self_attn",
                                                       "attention",
                                                       "mlp",
                                                       "input_layernorm",
                                                       "final_layernorm",
                                                       "post_attention_layernorm"};
  for (int64_t i = first; i < first + count; ++i) {
    for (std::string_view part : kParts) (layers / i / part).ignore_scope();
  }
}

bool take_prediction_layer(const ConfigFile& config, const Builder& layers, int64_t first) {
  int64_t count = count_prediction_layers(config);
  bool take = layers.prediction() && count > 0;
  skip_prediction_layers(layers, take ? first + 1 : first, take ? count - 1 : count);
  if (take) {
    (layers / first / "embed_tokens").ignore_scope();
    (layers / first / "shared_head" / "head").ignore_scope();
  }
  return take;
}

}  // namespace banyan
