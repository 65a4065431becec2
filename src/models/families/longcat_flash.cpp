// LongCat-Flash: two latent attentions and two dense blocks in each layer, and a mixture of experts
// that takes a short cut past the second of each; some of its experts return their input and cost
// nothing (Meituan LongCat Team 2025, arXiv:2509.01322).
#include <cmath>

#include "models/config/common.h"
#include "models/prediction.h"
#include "models/registry.h"

namespace banyan {
namespace {

struct LongcatConfig {
  DecoderConfig decoder;
  MlaConfig attention;
  MoeConfig moe;
  int64_t intermediate = 0;
};

class LongcatLayer {
 public:
  LongcatLayer(Builder b, const LongcatConfig& c)
      : halves_{Half(b, c, 0), Half(b, c, 1)}, moe_(b / "mlp", c.moe) {}

  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const {
    const auto& [first, second] = halves_;
    x = add(s, x, first.attention(s, first.attention_norm(s, x), rotation));
    Tensor normed = first.mlp_norm(s, x);
    Tensor shortcut = moe_(s, normed);
    x = add(s, x, first.mlp(s, normed));
    x = add(s, x, second.attention(s, second.attention_norm(s, x), rotation));
    x = add(s, x, second.mlp(s, second.mlp_norm(s, x)));
    return add(s, x, shortcut);
  }

 private:
  struct Half {
    Half(Builder b, const LongcatConfig& c, int64_t i)
        : attention_norm(b / "input_layernorm" / i, c.decoder.hidden, c.decoder.eps),
          mlp_norm(b / "post_attention_layernorm" / i, c.decoder.hidden, c.decoder.eps),
          attention(b / "self_attn" / i, c.attention),
          mlp(b / "mlps" / i, c.decoder.hidden, c.intermediate, false) {}
    RmsNorm attention_norm, mlp_norm;
    MlaAttention attention;
    GatedMlp mlp;
  };

  std::pair<Half, Half> halves_;
  Moe moe_;
};

// The one that predicts a further token: one attention and one dense block.
class LongcatFurtherLayer {
 public:
  LongcatFurtherLayer(Builder b, const LongcatConfig& c)
      : attention_norm_(b / "input_layernorm", c.decoder.hidden, c.decoder.eps),
        mlp_norm_(b / "post_attention_layernorm", c.decoder.hidden, c.decoder.eps),
        attention_(b / "self_attn", c.attention),
        mlp_(b / "transformer_layer" / "mlp", c.decoder.hidden, c.intermediate, false) {}

  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const {
    x = add(s, x, attention_(s, attention_norm_(s, x), rotation));
    return add(s, x, mlp_(s, mlp_norm_(s, x)));
  }

 private:
  RmsNorm attention_norm_, mlp_norm_;
  MlaAttention attention_;
  GatedMlp mlp_;
};

// The product of norm and projection has the variance of its input again: sections 2.2 and 3.
double scale_correction(const ConfigFile& config, std::string_view flag, int64_t hidden,
                        int64_t rank) {
  if (!config.flag_or(flag, true) || rank == 0) return 1;
  return std::sqrt(static_cast<double>(hidden) / static_cast<double>(rank));
}

MoeConfig read_shortcut_moe(const ConfigFile& config, int64_t hidden) {
  MoeConfig c{.hidden = hidden,
              .selection_bias = true,
              .router_name = "router.classifier",
              .bias_name = "router.e_score_correction_bias"};
  c.intermediate = config.integer(
      config.name_of({"expert_ffn_hidden_size", "moe_intermediate_size"}), 1, kWidthMax);
  c.router.experts =
      config.integer(config.name_of({"n_routed_experts", "num_local_experts"}), 1, kExpertsMax);
  c.router.identity_experts = config.integer_or("zero_expert_num", 0, 0, kExpertsMax);
  c.router.top_k =
      config.integer(config.name_of({"moe_topk", "num_experts_per_tok"}), 1, kExpertsMax);
  c.router.scale = static_cast<float>(config.number_or("routed_scaling_factor", 6, 1e-6, 1e6));
  config.only("zero_expert_type", {"identity"});
  config.only("router_bias", {false});
  config.only("norm_topk_prob", {false});
  config.only("router_dtype", {"float32", "fp32"});
  check_router(config, c.router);
  return c;
}

}  // namespace

Result<std::unique_ptr<Model>> load_longcat_flash(const ConfigFile& config, Builder b) {
  LongcatConfig c{.decoder = read_decoder(config, b, {.layers_key = "num_layers", .eps = 1e-5})};
  int64_t rope_dim = config.integer("qk_rope_head_dim", 2, kHeadDimMax);
  int64_t context = read_rotation(config, rope_dim, {131072, 1e7}, c.decoder);
  c.attention = read_mla(config, b, c.decoder);
  MlaConfig& a = c.attention;
  a.query_factor = scale_correction(config, "mla_scale_q_lora", a.hidden, a.query_rank);
  a.latent_factor = scale_correction(config, "mla_scale_kv_lora", a.hidden, a.rank);
  config.only("attention_method", {"MLA"});
  c.intermediate =
      config.integer(config.name_of({"ffn_hidden_size", "intermediate_size"}), 1, kWidthMax);
  c.moe = read_shortcut_moe(config, c.decoder.hidden);
  // Twice the layers in some files, and of the layer that predicts a further token.
  config.ignore({"num_hidden_layers"});
  int64_t further = config.integer_or("num_nextn_predict_layers", 1, 0, kLayersMax);
  config.only("nextn_use_scmoe", {false});
  bool predicts = b.prediction() && further > 0;
  Builder mtp = b / "model" / "mtp";
  mtp.operator/("embed_tokens").ignore_scope();
  for (const char* part : {"layers", "norm"}) {
    if (!predicts) (mtp / part).ignore_scope();
  }
  TRY(config.finish());
  ModelInfo info{
      .architecture = TRY(config.architecture()),
      .vocabulary = c.decoder.vocabulary,
      .hidden = c.decoder.hidden,
      .context_length_tokens = context,
      .attention_flops_per_key = 2 * mla_flops_per_key(a) * c.decoder.layers,
      .prompt_attention_flops_per_key = 2 * mla_prompt_flops_per_key(a) * c.decoder.layers};
  info.layers.assign(static_cast<size_t>(c.decoder.layers),
                     {"2 x " + describe(a), "2 x dense, " + describe(c.moe)});
  auto make_layer = [&c](Builder scope, int64_t) { return LongcatLayer(scope, c); };
  using Prediction = PredictionLayer<LongcatFurtherLayer>;
  auto make_prediction = [&]() -> std::optional<Prediction> {
    if (!predicts) return std::nullopt;
    Builder scope = mtp / "layers" / 0;
    return Prediction(scope, mtp / "norm", c.decoder,
                      {.token_norm = "enorm.m", .hidden_norm = "hnorm.m"},
                      LongcatFurtherLayer(scope, c));
  };
  return std::make_unique<DecoderModel<LongcatLayer, Prediction>>(b, std::move(info), c.decoder,
                                                                  make_layer, make_prediction);
}

}  // namespace banyan
