// Granite 4 hybrid: Mamba 2 in most layers and attention (mostly without rotary) in the rest. Every
// layer has a gated MLP, alone or as the shared expert of an MoE. Granite's scale factors apply.
#include <algorithm>
#include <limits>

#include "base/signed.h"
#include "models/families/granite.h"
#include "models/hybrid.h"
#include "models/registry.h"

namespace banyan {
namespace {

Mamba2Config read_mamba(const ConfigFile& config, const DecoderConfig& decoder) {
  Mamba2Config c{.hidden = decoder.hidden, .eps = decoder.eps};
  c.heads = config.integer_or("mamba_n_heads", 128, 1, kHeadsMax);
  c.groups = config.integer_or("mamba_n_groups", 1, 1, kHeadsMax);
  c.state_dim = config.integer_or("mamba_d_state", 256, 1, kHeadDimMax);
  int64_t inner = config.integer_or("mamba_expand", 2, 1, 64) * c.hidden;
  config.expect(inner % c.heads == 0, "mamba_n_heads {} does not divide the inner size {}", c.heads,
                inner);
  bool automatic = config.holds("mamba_d_head", {"auto"});
  if (automatic) config.ignore({"mamba_d_head"});
  int64_t split = std::max<int64_t>(inner / c.heads, 1);
  c.head_dim = automatic ? split : config.integer_or("mamba_d_head", split, 1, kHeadDimMax);
  config.expect(c.head_dim * c.heads == inner,
                "mamba_d_head {} times {} heads is not the inner size {}", c.head_dim, c.heads,
                inner);
  config.expect(c.heads % c.groups == 0, "mamba_n_heads {} is not a multiple of mamba_n_groups {}",
                c.heads, c.groups);
  c.groups = c.heads % c.groups == 0 ? c.groups : 1;
  c.taps = config.integer_or("mamba_d_conv", 4, 2, 64);
  c.conv_bias = config.flag_or("mamba_conv_bias", true);
  c.proj_bias = config.flag_or("mamba_proj_bias", false);
  c.step.max = std::numeric_limits<float>::infinity();
  if (config.has("time_step_limit")) {
    std::vector<double> limits = config.numbers("time_step_limit", 0, 1e30);
    config.expect(limits.size() == 2 && limits[0] <= limits[1],
                  "time_step_limit must be a [min, max] pair");
    limits.resize(2, 0);
    c.step = {static_cast<float>(limits[0]), static_cast<float>(limits[1])};
  }
  // The chunk size of prefill does not change the result.
  config.ignore({"mamba_chunk_size", "init_method"});
  return c;
}

void read_blocks(const ConfigFile& config, const Builder& b, SparseConfig& sparse) {
  sparse.dense_scope = "shared_mlp";
  sparse.names = granite_block_names(b);
  sparse.intermediate = config.integer_or("shared_intermediate_size", 1024, 1, kWidthMax);
  if (!config.holds("num_local_experts", {0})) return read_granite_experts(config, sparse);
  config.ignore({"num_local_experts", "num_experts_per_tok", "intermediate_size"});
}

}  // namespace

Result<std::unique_ptr<Model>> load_granite_hybrid(const ConfigFile& config, Builder b) {
  HybridConfig c{.recurrence_scope = "mamba"};
  DecoderConfig& decoder = c.sparse.decoder;
  decoder = read_decoder(config, b);
  auto factor = [&config](std::string_view key) { return config.number_or(key, 1, 1e-6, 1e6); };
  decoder.embedding_scale = factor("embedding_multiplier");
  decoder.logit_scale = 1 / factor("logits_scaling");
  c.style.residual_scale = factor("residual_multiplier");

  GqaConfig attention = read_gqa(config, decoder, {});
  attention.qkv_bias = attention.output_bias = config.flag_or("attention_bias", false);
  attention.scale = factor("attention_multiplier");
  std::string positions = config.text_or("position_embedding_type", "nope");
  config.expect(positions == "rope" || positions == "nope",
                "position_embedding_type \"{}\" is not supported; supported: rope, nope",
                positions);
  attention.rotary = positions == "rope";
  c.sparse.context_tokens = read_rotation(config, attention.head_dim, {2048}, decoder);
  c.attention = attention;
  c.recurrence = read_mamba(config, decoder);
  std::string_view types = config.name_of({"layer_types", "layers_block_type"});
  c.attention_layers = filled(decoder.layers, false);
  if (config.has(types)) {
    std::vector<std::string> names = config.texts(types);
    config.expect(std::ssize(names) == decoder.layers, "{} has {} entries for {} layers", types,
                  names.size(), decoder.layers);
    names.resize(as_size(decoder.layers));
    for (size_t i = 0; i < names.size(); ++i) {
      bool attends = names[i] == "attention" || names[i] == "full_attention";
      config.expect(attends || names[i] == "mamba" || names[i] == "linear_attention",
                    "{}: \"{}\" is not supported", types, names[i]);
      c.attention_layers[i] = attends;
    }
  }
  read_blocks(config, b, c.sparse);
  config.only("normalization_function", {"rmsnorm"});
  return make_hybrid(config, b, c);
}

}  // namespace banyan
