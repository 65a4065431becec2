#include "models/dense.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "models/rope_config.h"

namespace banyan {
namespace {

constexpr int64_t kWidthMax = 1 << 20;
constexpr int64_t kLayersMax = 1 << 10;
constexpr int64_t kHeadsMax = 1 << 12;
constexpr int64_t kHeadDimMax = 1 << 10;
constexpr int64_t kVocabularyMax = 1 << 24;
constexpr int64_t kContextMax = int64_t{1} << 30;

// Tied unless the checkpoint has a head of its own; without the key, whatever the tensors say.
bool read_tied(const ConfigFile& config, const Builder& b) {
  bool has_head = b.has("lm_head.weight");
  bool has_embedding = b.has("model.embed_tokens.weight");
  if (!config.has("tie_word_embeddings")) return has_embedding && !has_head;
  return config.flag("tie_word_embeddings") && !has_head;
}

// Keys of config.json that the dense families do not compute with.
void ignore_common(const ConfigFile& config) {
  config.ignore({"model_type",
                 "transformers_version",
                 "_name_or_path",
                 "auto_map",
                 "dtype",
                 "torch_dtype",
                 "bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "unk_token_id",
                 "initializer_range",
                 "use_cache",
                 "attention_dropout",
                 "pretraining_tp",
                 "return_dict",
                 "output_hidden_states",
                 "output_attentions",
                 "is_encoder_decoder",
                 "id2label",
                 "label2id",
                 "problem_type",
                 "num_labels",
                 "torchscript",
                 "chunk_size_feed_forward",
                 "task_specific_params",
                 "max_length",
                 "do_sample",
                 "temperature",
                 "top_p",
                 "top_k",
                 "repetition_penalty",
                 "resid_pdrop",
                 "embd_pdrop",
                 "classifier_dropout"});
}

// Keys that change the computation of look-alike families, which none of these computes.
void refuse_variants(const ConfigFile& config) {
  config.only("hidden_act", {"silu", "swish"});
  config.only("partial_rotary_factor", {1});
  config.expect(!config.has("quantization_config"),
                "quantization_config: quantized checkpoints are not supported yet");
  for (const char* key : {"per_layer_config", "logit_scale", "logits_scaling", "scale_emb",
                          "embedding_multiplier", "residual_multiplier", "attention_multiplier",
                          "attn_logit_softcapping", "final_logit_softcapping", "clip_qkv",
                          "query_pre_attn_scalar", "num_experts", "num_local_experts"}) {
    config.expect(!config.has(key), "{} is not supported by this architecture", key);
  }
}

}  // namespace

DenseConfig read_dense(const ConfigFile& config, const Builder& b, const DenseDefaults& defaults) {
  DenseConfig c;
  c.decoder.vocabulary = config.integer("vocab_size", 1, kVocabularyMax);
  c.decoder.hidden = config.integer("hidden_size", 1, kWidthMax);
  c.decoder.layers = config.integer("num_hidden_layers", 1, kLayersMax);
  c.decoder.eps = static_cast<float>(config.number_or("rms_norm_eps", 1e-6, 1e-12, 1));
  c.decoder.tied = read_tied(config, b);
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.context_tokens =
      config.integer_or("max_position_embeddings", defaults.context_tokens, 1, kContextMax);

  GqaConfig& a = c.attention;
  a.hidden = c.decoder.hidden;
  a.eps = c.decoder.eps;
  a.q_heads = config.integer("num_attention_heads", 1, kHeadsMax);
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
  config.expect(a.head_dim % 2 == 0, "head_dim {} is odd, which no rotation pairs up", a.head_dim);

  c.decoder.rope = read_rope(config, a.head_dim, c.context_tokens);
  c.context_tokens = std::max(c.context_tokens, stretched_context_tokens(c.decoder.rope));
  c.window_tokens.assign(static_cast<size_t>(c.decoder.layers), 0);
  refuse_variants(config);
  ignore_common(config);
  return c;
}

std::vector<int64_t> read_qwen_windows(const ConfigFile& config, int64_t layers) {
  std::vector<int64_t> windows(static_cast<size_t>(layers), 0);
  bool sliding = config.flag_or("use_sliding_window", false);
  // Absent means 4096, null means none.
  int64_t window = config.is_null("sliding_window")
                       ? 0
                       : config.integer_or("sliding_window", 4096, 1, kContextMax);
  int64_t first = config.integer_or("max_window_layers", 28, 0, kContextMax);
  std::vector<std::string> types = config.texts("layer_types");
  config.expect(types.empty() || static_cast<int64_t>(types.size()) == layers,
                "layer_types has {} entries for {} layers", types.size(), layers);
  for (size_t i = 0; i < windows.size(); ++i) {
    bool slides = static_cast<int64_t>(i) >= first;
    if (i < types.size()) {
      slides = types[i] == "sliding_attention";
      config.expect(slides || types[i] == "full_attention" || types[i] == "attention",
                    "layer_types: \"{}\" is not supported", types[i]);
      config.expect(!slides || sliding,
                    "layer_types has sliding_attention, but use_sliding_window "
                    "is false");
    }
    if (slides && sliding) windows[i] = window;
  }
  return windows;
}

DenseLayer::DenseLayer(Builder b, const DenseConfig& c, int64_t index)
    : attention_norm_(b / "input_layernorm", c.decoder.hidden, c.decoder.eps),
      mlp_norm_(b / "post_attention_layernorm", c.decoder.hidden, c.decoder.eps),
      attention_(b / "self_attn",
                 [&] {
                   GqaConfig attention = c.attention;
                   attention.window_tokens = c.window_tokens[static_cast<size_t>(index)];
                   return attention;
                 }()),
      mlp_(b / "mlp", c.decoder.hidden, c.intermediate, c.mlp_bias) {
  (b / "self_attn" / "rotary_emb").ignore("inv_freq");  // old Llama 2 files carry it
}

Result<std::unique_ptr<Model>> make_dense(const ConfigFile& config, Builder b,
                                          const DenseConfig& c) {
  TRY(config.finish());
  ModelInfo info{.architecture = TRY(config.architecture()),
                 .vocabulary = c.decoder.vocabulary,
                 .hidden = c.decoder.hidden,
                 .context_length_tokens = c.context_tokens};
  for (int64_t window : c.window_tokens) {
    info.layers.push_back({window > 0 ? fmt::format("gqa, window {}", window) : "gqa", "dense"});
  }
  // A key costs head_dim multiply-adds for its score and as many for its value, in every head.
  info.attention_flops_per_key = 4 * c.attention.q_heads * c.attention.head_dim * c.decoder.layers;
  auto make_layer = [&c](Builder scope, int64_t i) { return DenseLayer(scope, c, i); };
  return std::make_unique<DecoderModel<DenseLayer>>(b, std::move(info), c.decoder, make_layer);
}

}  // namespace banyan
