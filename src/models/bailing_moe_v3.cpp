// Ling 3: Kimi Delta Attention with gates of full rank, MLA with a gate behind it, experts in
// groups. The config is the authors', or the one that transformers writes, where head_dim is
// another.
#include "models/ling.h"
#include "models/registry.h"

namespace banyan {
namespace {

MlaGate read_gate(const ConfigFile& config) {
  constexpr std::string_view kKey = "gated_attention_proj_granularity_type";
  std::string granularity = config.text_or(kKey, "");
  config.expect(granularity.empty() || granularity == "head_wise" || granularity == "element_wise",
                "{} \"{}\" is not supported", kKey, granularity);
  if (granularity.empty()) return MlaGate::kNone;
  return granularity == "head_wise" ? MlaGate::kHeads : MlaGate::kElements;
}

KdaConfig read_kda(const ConfigFile& config, const HybridConfig& c) {
  // transformers writes MLA's rotary width as head_dim, and KDA's numbers beside it.
  bool rewritten = config.has("linear_head_dim");
  KdaConfig kda{.hidden = c.sparse.decoder.hidden, .eps = c.sparse.decoder.eps};
  kda.heads = config.integer_or("linear_num_heads", c.mla.heads, 1, kHeadsMax);
  kda.head_dim = config.integer(rewritten ? "linear_head_dim" : "head_dim", 1, kHeadDimMax);
  kda.taps = config.integer_or("short_conv_kernel_size", 4, 2, 64);
  kda.low_rank_gates = !config.flag_or("no_kda_lora", true);
  double bound = config.number_or("kda_lower_bound", -5, -1e3, -1e-6);
  if (config.flag_or("kda_safe_gate", true)) kda.lower_bound = static_cast<float>(bound);
  // The convolutions' SiLU, keys of length 1, a norm for each head: KDA has them always.
  config.ignore({"linear_silu", "use_qk_norm", "group_norm_size", "linear_conv_kernel_dim"});
  config.only("mtp_use_kda", {false});
  return kda;
}

}  // namespace

Result<std::unique_ptr<Model>> load_bailing_v3(const ConfigFile& config, Builder b) {
  HybridConfig c = read_ling_hybrid(config, b);
  c.mla.gate = read_gate(config);
  c.kda = read_kda(config, c);
  return make_hybrid(config, b, c);
}

}  // namespace banyan
