// Nemotron-H and Nemotron 3: each layer is a single block: Mamba 2, attention without rotary, an
// ungated MLP, or experts that are ungated MLPs.
#include <limits>
#include <string>

#include "base/signed.h"
#include "models/config/common.h"
#include "models/config/router.h"
#include "models/layered_decoder.h"
#include "models/registry.h"

namespace banyan {
namespace {

struct NemotronConfig {
  DecoderConfig decoder;
  std::string blocks;  // one letter per layer: M, *, - or E
  Mamba2Config mamba;
  GqaConfig attention;
  int64_t intermediate = 0;
  bool mlp_bias = false;
  MoeConfig moe;
};

LayerConfig layer_of(const NemotronConfig& c, char kind) {
  LayerConfig layer{.mixer_scope = "mixer", .ffn_scope = "mixer"};
  if (kind == 'M') layer.mixer = c.mamba;
  if (kind == '*') layer.mixer = c.attention;
  if (kind == 'E') layer.ffn = c.moe;
  if (kind == '-') {
    layer.ffn = DenseConfig{.hidden = c.decoder.hidden,
                            .intermediate = c.intermediate,
                            .bias = c.mlp_bias,
                            .gated = false};
  }
  return layer;
}

std::string read_blocks(const ConfigFile& config, int64_t layers) {
  std::string blocks = config.text_or("hybrid_override_pattern", "");
  std::string_view key = config.name_of({"layers_block_type", "layer_types"});
  for (const std::string& type : config.texts(key)) {
    bool mamba = type == "mamba" || type == "linear_attention";
    bool attention = type == "attention" || type == "full_attention";
    blocks += mamba ? 'M' : attention ? '*' : type == "moe" ? 'E' : type == "mlp" ? '-' : '?';
  }
  config.expect(std::ssize(blocks) == layers, "{} blocks are named for {} layers", blocks.size(),
                layers);
  config.expect(blocks.find_first_not_of("M*E-") == std::string::npos,
                "blocks \"{}\" are not all M (mamba), * (attention), E (experts) or - (mlp)",
                blocks);
  blocks.resize(as_size(layers), '-');
  return blocks;
}

Mamba2Config read_nemotron_mamba(const ConfigFile& config, const DecoderConfig& decoder) {
  Mamba2Config c{.hidden = decoder.hidden, .eps = decoder.eps};
  c.heads = config.integer_or("mamba_num_heads", 128, 1, kHeadsMax);
  c.head_dim = config.integer_or("mamba_head_dim", 64, 1, kHeadDimMax);
  c.groups = config.integer_or("n_groups", 8, 1, kHeadsMax);
  config.expect(c.heads % c.groups == 0, "mamba_num_heads {} is not a multiple of n_groups {}",
                c.heads, c.groups);
  c.groups = c.heads % c.groups == 0 ? c.groups : 1;
  c.state_dim = config.integer_or("ssm_state_size", 128, 1, kHeadDimMax);
  c.taps = config.integer_or("conv_kernel", 4, 2, 64);
  c.conv_bias = config.flag_or("use_conv_bias", true);
  c.proj_bias = config.flag_or("use_bias", false);
  c.step = {static_cast<float>(config.number_or("time_step_min", 0.001, 0, 1e6)),
            std::numeric_limits<float>::infinity()};
  config.only("mamba_hidden_act", {"silu"});
  config.only("mamba_proj_bias", {c.proj_bias});
  // The chunk size does not change the result; the other keys only concern training.
  config.ignore({"chunk_size", "expand", "time_step_floor", "time_step_max", "time_step_limit",
                 "rescale_prenorm_residual", "mamba_ssm_cache_dtype", "use_mamba_kernels"});
  return c;
}

void read_feed_forward(const ConfigFile& config, NemotronConfig& c) {
  c.intermediate = config.integer_or("intermediate_size", 21504, 1, kWidthMax);
  c.mlp_bias = config.flag_or("mlp_bias", false);
  config.only("mlp_hidden_act", {"relu2"});
  if (c.blocks.find('E') == std::string::npos) {
    config.ignore({"n_routed_experts", "n_shared_experts", "moe_intermediate_size",
                   "num_experts_per_tok", "norm_topk_prob", "moe_shared_expert_intermediate_size"});
    return;
  }
  c.moe = read_moe(config, c.decoder.hidden, deepseek_moe({1, 1}, 1, 8, 2));
  c.moe.shared_intermediate =
      config.integer_or("moe_shared_expert_intermediate_size", 7688, 1, kWidthMax);
  c.moe.gated = false;
  config.expect(!c.mlp_bias, "mlp_bias = true is not supported with experts");
  config.expect(!config.has("moe_latent_size"),
                "moe_latent_size = {} is not supported: experts between projections to latents "
                "(Nemotron 3 Super)",
                config.shown("moe_latent_size"));
  config.ignore({"moe_shared_expert_overlap", "moe_latent_size"});
}

}  // namespace

Result<std::unique_ptr<Model>> load_nemotron_h(const ConfigFile& config, Builder b) {
  NemotronConfig c;
  c.decoder = read_decoder(config, b,
                           {.scope = "backbone",
                            .embedding = "embeddings",
                            .eps_key = "layer_norm_epsilon",
                            .eps = 1e-5});
  c.decoder.norm = "norm_f";
  c.blocks = read_blocks(config, c.decoder.layers);
  c.mamba = read_nemotron_mamba(config, c.decoder);
  c.attention = read_gqa(config, c.decoder, {.kv_heads = 8, .head_dim = 128});
  c.attention.rotary = false;
  c.decoder.rope.rotary_dim = 2;  // no layer uses rotary
  read_feed_forward(config, c);
  config.ignore({"norm_eps", "rms_norm_eps", "rope_theta", "partial_rotary_factor",
                 "num_nextn_predict_layers", "mtp_hybrid_override_pattern",
                 "mtp_layers_block_type"});
  (b / "mtp").ignore_scope();
  LayeredDecoderConfig all{.decoder = c.decoder,
                           .style = {.norms = {.mixer = {.in = "norm"}, .ffn = {.in = "norm"}}}};
  all.context_tokens = config.integer_or("max_position_embeddings", 4096, 1, kContextMax);
  for (char kind : c.blocks) all.layers.push_back(layer_of(c, kind));
  return make_layered_decoder(config, b, all);
}

}  // namespace banyan
