// Gemma 4: sliding-window and full-attention layers differ in head size and rotary embedding.
// Values may equal keys, and the last layers reuse the KV cache of earlier ones. MoE models run
// experts in parallel with each dense block. Per-layer embeddings are optional.
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/signed.h"
#include "models/config/rope.h"
#include "models/config/router.h"
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {
namespace {

struct Gemma4Config {
  GqaDecoderConfig common;                      // its attention is that of sliding-window layers
  GqaConfig full;                               // full-attention layers
  std::vector<bool> slides;                     // per layer
  std::vector<std::optional<int64_t>> keys_of;  // per layer, see LayerConfig
  int64_t sharing_width = 1;  // width factor of the dense blocks in layers that share keys
  bool experts = false;
};

void read_attention(const ConfigFile& config, Gemma4Config& c) {
  GqaConfig& a = c.common.attention;
  a.scale = 1;
  a.head_norms = a.value_norm = true;
  a.qkv_bias = a.output_bias = config.flag_or("attention_bias", false);
  c.full = a;
  a.window_tokens = config.integer_or("sliding_window", 512, 1, kContextMax);
  c.full.head_dim = config.integer_or("global_head_dim", 512, 2, kHeadDimMax);
  c.full.value_is_key = config.flag_or("attention_k_eq_v", false);
  int64_t kv_heads = config.integer_or("num_global_key_value_heads", a.kv_heads, 1, kHeadsMax);
  if (c.full.value_is_key) c.full.kv_heads = kv_heads;
  config.expect(a.q_heads % kv_heads == 0,
                "num_attention_heads {} is not a multiple of num_global_key_value_heads {}",
                a.q_heads, kv_heads);
  config.expect(c.full.head_dim % 2 == 0,
                "global_head_dim {} is odd; rotary embeddings need an even one", c.full.head_dim);
  DecoderConfig& decoder = c.common.decoder();
  auto context = static_cast<int64_t>(decoder.rope.original_context_tokens);
  decoder.rope = read_rope_of_type(config, "full_attention", c.full.head_dim, context, 1e6);
  if (!config.has("rope_parameters")) {
    decoder.rope.type = RopeType::kProportional;
    decoder.rope.proportion = 0.25;
  }
  c.slides = read_sliding_layers(config, decoder.layers, 6);
  config.expect(!c.slides.back(), "the last entry of layer_types must be full_attention");
  config.only("use_bidirectional_attention", {false, "vision"});  // among image tokens only
}

void read_sharing(const ConfigFile& config, Gemma4Config& c) {
  int64_t layers = c.common.decoder().layers;
  int64_t sharing = config.integer_or("num_kv_shared_layers", 0, 0, kLayersMax);
  std::array<std::optional<int64_t>, 2> last;  // last layer of each kind with its own KV cache
  for (int64_t i = 0; i < layers; ++i) {
    std::optional<int64_t>& own = last[at(c.slides, i)];
    bool shares = i >= layers - sharing;
    config.expect(!shares || own,
                  "num_kv_shared_layers {}: no layer before {} has keys that layer {} could share",
                  sharing, layers - sharing, i);
    c.keys_of.push_back(shares ? own : std::nullopt);
    if (!shares) own = i;
  }
  if (config.flag_or("use_double_wide_mlp", false)) c.sharing_width = 2;
}

void read_experts(const ConfigFile& config, Gemma4Config& c) {
  c.experts = config.flag_or("enable_moe_block", false);
  if (!c.experts) return config.ignore({"num_experts", "top_k_experts", "moe_intermediate_size"});
  MoeConfig& moe = c.common.sparse.moe;
  moe = read_moe(config, c.common.decoder().hidden, {});
  moe.glu = c.common.sparse.glu;
  moe.router_name = "router.proj";
  moe.router_scale_name = "router.scale";
  moe.expert_scale_name = "router.per_expert_scale";
}

Gemma4Config read_gemma4(const ConfigFile& config, const Builder& b) {
  Gemma4Config c;
  c.common = read_gqa_decoder(config, b,
                              {.vocabulary = 262144,
                               .attention = {.heads = 8, .kv_heads = 4, .head_dim = 256},
                               .context_tokens = 131072,
                               .theta = 1e6,
                               .gelu = true,
                               .tied = true,
                               .local_theta_key = "rope_local_base_freq"});
  DecoderConfig& decoder = c.common.decoder();
  decoder.embedding_scale = std::sqrt(decoder.hidden);
  decoder.logit_cap = config.number_or("final_logit_softcapping", 0, 0, 1e6);
  LayerInputsConfig& inputs = c.common.style.inputs;
  inputs = {.vocabulary = config.integer_or("vocab_size_per_layer_input", 262144, 1, 1 << 24),
            .hidden = decoder.hidden,
            .layers = decoder.layers,
            .width = config.integer_or("hidden_size_per_layer_input", 256, 0, kWidthMax),
            .eps = decoder.eps};
  config.expect(inputs.width == 0 || inputs.vocabulary >= decoder.vocabulary,
                "vocab_size_per_layer_input {} is below vocab_size {}", inputs.vocabulary,
                decoder.vocabulary);
  read_attention(config, c);
  read_sharing(config, c);
  read_experts(config, c);
  return c;
}

// A dense block, in MoE models with experts in parallel; both have pre- and post-norms.
FfnConfig ffn_of(const Gemma4Config& c, bool shares) {
  const SparseConfig& sparse = c.common.sparse;
  int64_t width = sparse.intermediate * (shares ? c.sharing_width : 1);
  if (!c.experts) {
    return DenseConfig{.hidden = sparse.decoder.hidden, .intermediate = width, .glu = sparse.glu};
  }
  return ParallelFfnConfig{.intermediate = width,
                           .glu = sparse.glu,
                           .experts = sparse.moe,
                           .eps = sparse.decoder.eps,
                           .dense_in = "pre_feedforward_layernorm",
                           .dense_out = "post_feedforward_layernorm_1",
                           .experts_in = "pre_feedforward_layernorm_2",
                           .experts_out = "post_feedforward_layernorm_2"};
}

}  // namespace

Result<std::unique_ptr<Model>> load_gemma4(const ConfigFile& config, Builder b) {
  Gemma4Config c = read_gemma4(config, b);
  LayeredDecoderConfig all{.decoder = c.common.decoder(),
                           .context_tokens = c.common.sparse.context_tokens,
                           .style = c.common.style};
  all.style.norms = {.mixer = {.in = "input_layernorm", .out = "post_attention_layernorm"},
                     .ffn = {.in = c.experts ? "" : "pre_feedforward_layernorm",
                             .out = "post_feedforward_layernorm"}};
  all.style.scale = "layer_scalar";
  for (size_t i = 0; i < c.slides.size(); ++i) {
    all.layers.push_back({.mixer = c.slides[i] ? c.common.attention : c.full,
                          .ffn = ffn_of(c, c.keys_of[i].has_value()),
                          .ffn_scope = c.experts ? "" : "mlp",
                          .rope = c.slides[i] ? 1 : 0,
                          .keys_of = c.keys_of[i]});
  }
  return make_layered_decoder(config, b, all);
}

}  // namespace banyan
