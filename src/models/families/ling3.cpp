// Ling 3: Kimi Delta Attention with full-rank gates, gated MLA, grouped experts. Accepts the
// authors' config (BailingMoeV3) and the one transformers writes (BailingHybrid). In the latter
// head_dim has another meaning and the per-head gate is implied.
#include "models/families/ling.h"
#include "models/registry.h"

namespace banyan {
namespace {

MlaGate read_gate(const ConfigFile& config, std::string_view fallback) {
  constexpr std::string_view kKey = "gated_attention_proj_granularity_type";
  std::string granularity = config.text_or(kKey, fallback);
  config.expect(granularity.empty() || granularity == "head_wise" || granularity == "element_wise",
                "{} \"{}\" is not supported", kKey, granularity);
  if (granularity.empty()) return MlaGate::kNone;
  return granularity == "head_wise" ? MlaGate::kHeads : MlaGate::kElements;
}

KdaConfig read_kda(const ConfigFile& config, const HybridConfig& c) {
  // transformers stores MLA's rotary dimension as head_dim, and KDA's sizes under linear_*.
  bool rewritten = config.has("linear_head_dim");
  KdaConfig kda{.hidden = c.sparse.decoder.hidden, .eps = c.sparse.decoder.eps};
  kda.heads =
      config.integer_or("linear_num_heads", std::get<MlaConfig>(c.attention).heads, 1, kHeadsMax);
  kda.head_dim = config.integer(rewritten ? "linear_head_dim" : "head_dim", 1, kHeadDimMax);
  kda.taps = config.integer_or(config.name_of({"short_conv_kernel_size", "linear_conv_kernel_dim"}),
                               4, 2, 64);
  kda.low_rank_gates = !config.flag_or("no_kda_lora", true);
  double bound = config.number_or("kda_lower_bound", -5, -1e3, -1e-6);
  if (config.flag_or("kda_safe_gate", true)) kda.lower_bound = bound;
  // KDA always has SiLU after the convolution, L2-normalised keys and a norm per head.
  config.ignore({"linear_silu", "group_norm_size"});
  config.only("use_qk_norm", {true});
  config.only("mtp_use_kda", {false});
  return kda;
}

Result<std::unique_ptr<Model>> load(const ConfigFile& config, Builder b,
                                    const LingDefaults& defaults, std::string_view gate) {
  HybridConfig c = read_ling_hybrid(config, b, defaults);
  std::get<MlaConfig>(c.attention).gate = read_gate(config, gate);
  c.recurrence = read_kda(config, c);
  return make_hybrid(config, b, c);
}

}  // namespace

Result<std::unique_ptr<Model>> load_ling3(const ConfigFile& config, Builder b) {
  return load(config, b, {.theta = 6e6}, "");
}

Result<std::unique_ptr<Model>> load_ling3_saved(const ConfigFile& config, Builder b) {
  constexpr LingMoeDefaults kMoe = {
      .groups = {8, 4}, .scale = 2.5, .dense_layers = 2, .normalises_one = true};
  return load(config, b, {.theta = 6e6, .moe = kMoe}, "head_wise");
}

}  // namespace banyan
