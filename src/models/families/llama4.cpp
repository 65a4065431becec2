// Llama 4. Three of four layers attend within fixed chunks, with rotary followed by a weightless QK
// norm. The fourth attends to all positions without rotary, and its queries are scaled by position
// (Nakanishi, arXiv:2501.19399). The router picks one expert and scales its input; a shared expert
// is added. In the 128-expert models every other layer is dense.
#include <algorithm>

#include "base/signed.h"
#include "models/config/router.h"
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {
namespace {

// Which layers use rotary. Despite the name, 1 in no_rope_layers means that the layer does.
std::vector<bool> read_turning_layers(const ConfigFile& config, int64_t layers) {
  int64_t every = config.integer_or("no_rope_layer_interval", 4, 1, kLayersMax);
  std::vector<int64_t> given = config.integers("no_rope_layers", 0, 1);
  config.expect(given.empty() || std::ssize(given) >= layers,
                "no_rope_layers has {} entries for {} layers", given.size(), layers);
  bool stated = std::ssize(given) >= layers;
  std::vector<bool> turning;
  for (int64_t i = 0; i < layers; ++i) {
    turning.push_back(stated ? at(given, i) == 1 : (i + 1) % every != 0);
  }
  if (config.has("layer_types")) {
    config.expect(layers_of_type(config, "layer_types", "chunked_attention", "full_attention",
                                 layers) == turning,
                  "layer_types differs from no_rope_layers: chunked_attention layers must be the "
                  "rotary ones");
  }
  return turning;
}

void read_attention(const ConfigFile& config, GqaDecoderConfig& c) {
  GqaConfig& a = c.attention;
  a.layout = RopeLayout::kInterleaved;
  a.qkv_bias = a.output_bias = config.flag_or("attention_bias", false);
  c.unturned = a;
  a.head_norms = a.norm_after_rope = config.flag_or("use_qk_norm", true);
  a.norm_weight = NormWeight::kNone;
  a.chunk_tokens = config.is_null("attention_chunk_size")
                       ? 0
                       : config.integer_or("attention_chunk_size", 8192, 1, kContextMax);
  config.only("attn_temperature_tuning", {true, false, 4});  // 4 means true in the first configs
  bool tuned = !config.has("attn_temperature_tuning") || !config.is_off("attn_temperature_tuning");
  double beta = config.number_or("attn_scale", 0.1, 0, 1e6);
  double period = config.number_or("floor_scale", 8192, 1, 1e9);
  if (tuned) c.unturned->query_scale = {.beta = beta, .period = period, .offset = 1};
  std::vector<bool> turning = read_turning_layers(config, c.decoder().layers);
  for (size_t i = 0; i < c.layers.size(); ++i) c.layers[i].rotary = turning[i];
}

void read_experts(const ConfigFile& config, GqaDecoderConfig& c) {
  MoeConfig& moe = c.sparse.moe;
  moe = read_moe(config, c.decoder().hidden,
                 {.router = {.experts = 16,
                             .top_k = 1,
                             .score = RouterScore::kSigmoid,
                             .normalise = RouterFlag::fixed(false)},
                  .intermediate = ExpertWidth::fixed(c.sparse.intermediate),
                  .shared_intermediate = ExpertWidth::fixed(c.sparse.intermediate)});
  c.sparse.intermediate = config.integer_or("intermediate_size_mlp", 16384, 1, kWidthMax);
  config.only("num_experts_per_tok", {1});
  moe.weighs_inputs = moe.transposed = true;
  moe.router_name = "router";
  moe.shared_name = "shared_expert";
  c.sparse.moe_scope = c.sparse.dense_scope = "feed_forward";
  int64_t every = config.integer_or("interleave_moe_layer_step", 1, 1, kLayersMax);
  std::vector<int64_t> given = config.integers("moe_layers", 0, kLayersMax);
  for (int64_t i = 0; i < c.decoder().layers; ++i) {
    bool sparse = (i + 1) % every == 0;
    if (config.has("moe_layers")) sparse = std::ranges::find(given, i) != given.end();
    c.sparse.moe_layers.push_back(sparse);
  }
}

}  // namespace

Result<std::unique_ptr<Model>> load_llama4(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b,
                                        {.vocabulary = 202048,
                                         .attention = {.heads = 40, .kv_heads = 8, .head_dim = 128},
                                         .context_tokens = 131072,
                                         .theta = 500000,
                                         .eps = 1e-5});
  read_attention(config, c);
  read_experts(config, c);
  config.ignore({"for_llm_compressor"});
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
