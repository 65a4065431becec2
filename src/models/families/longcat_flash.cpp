// LongCat-Flash: each layer has two MLA blocks, two dense MLPs, and an MoE on a shortcut around the
// second pair. Some experts are identities and cost nothing (Meituan LongCat Team 2025,
// arXiv:2509.01322).
#include <cmath>
#include <string>

#include "base/signed.h"
#include "models/config/common.h"
#include "models/config/router.h"
#include "models/layered_decoder.h"
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

// Not a DecoderLayer. The experts read the first dense MLP's input, and their output is added after
// the second MLP, so that the two can overlap. Only the first MLP is therefore written out by hand.
class LongcatLayer {
 public:
  LongcatLayer(Builder b, const LongcatConfig& c)
      : first_attention_(attention_of(b, c, 0)),
        mlp_norm_(b / "post_attention_layernorm" / 0, c.decoder.hidden, c.decoder.eps),
        first_mlp_(mlp_of(b, c, 0)),
        second_attention_(attention_of(b, c, 1)),
        second_mlp_(b, residual_of(c.decoder), {.in = "post_attention_layernorm.1"},
                    mlp_of(b, c, 1)),
        moe_(b / "mlp", c.moe) {}

  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const {
    x = first_attention_(s, x, rotation);
    Tensor normed = mlp_norm_(s, x);
    Tensor shortcut = moe_(s, normed);
    x = add(s, x, first_mlp_(s, normed));
    x = second_mlp_(s, second_attention_(s, x, rotation));
    return add(s, x, shortcut);
  }

 private:
  static Residual<MlaAttention> attention_of(const Builder& b, const LongcatConfig& c, int64_t i) {
    std::string norm = fmt::format("input_layernorm.{}", i);
    return {
        b, residual_of(c.decoder), {.in = norm}, MlaAttention(b / "self_attn" / i, c.attention)};
  }
  static GatedMlp mlp_of(const Builder& b, const LongcatConfig& c, int64_t i) {
    return {b / "mlps" / i, c.decoder.hidden, c.intermediate, false};
  }

  Residual<MlaAttention> first_attention_;
  RmsNorm mlp_norm_;
  GatedMlp first_mlp_;
  Residual<MlaAttention> second_attention_;
  Residual<GatedMlp> second_mlp_;
  Moe moe_;
};

// Restores unit variance after norm and low-rank projection (paper, sections 2.2 and 3).
double scale_correction(const ConfigFile& config, std::string_view flag, int64_t hidden,
                        int64_t rank) {
  if (!config.flag_or(flag, true) || rank == 0) return 1;
  return std::sqrt(static_cast<double>(hidden) / rank);
}

MoeConfig read_shortcut_moe(const ConfigFile& config, int64_t hidden) {
  MoeConfig c = read_moe(config, hidden,
                         {.router = {.normalise = RouterFlag::fixed(false),
                                     .bias = RouterFlag::fixed(true),
                                     .scale = 6,
                                     .identity_experts = true}});
  c.router_name = "router.classifier";
  c.bias_name = "router.e_score_correction_bias";
  config.only("router_bias", {false});
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
  // Some files set this to twice the number of layers; num_layers is the one that counts.
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
  MixerInfo mixer = describe(MixerConfig(a));
  ModelInfo info{
      .architecture = TRY(config.architecture()),
      .vocabulary = c.decoder.vocabulary,
      .hidden = c.decoder.hidden,
      .context_length_tokens = context,
      .attention_flops_per_key = 2 * mixer.flops_per_key * c.decoder.layers,
      .prompt_attention_flops_per_key = 2 * mixer.prompt_flops_per_key * c.decoder.layers};
  info.layers.assign(as_size(c.decoder.layers),
                     {"2 x " + mixer.name, "2 x dense, " + describe(c.moe)});
  auto make_layer = [&c](Builder scope, int64_t) { return LongcatLayer(scope, c); };
  using Prediction = PredictionLayer<DecoderLayer>;
  auto make_prediction = [&]() -> std::optional<Prediction> {
    if (!predicts) return std::nullopt;
    Builder scope = mtp.without_adapters() / "layers" / 0;
    DenseConfig dense{.hidden = c.decoder.hidden, .intermediate = c.intermediate};
    LayerConfig layer{.mixer = a, .ffn = dense, .ffn_scope = "transformer_layer.mlp"};
    return Prediction(scope, mtp / "norm", c.decoder,
                      {.token_norm = "enorm.m", .hidden_norm = "hnorm.m"},
                      DecoderLayer(scope, c.decoder, {}, layer));
  };
  return std::make_unique<DecoderModel<LongcatLayer, Prediction>>(b, std::move(info), c.decoder,
                                                                  make_layer, make_prediction);
}

}  // namespace banyan
