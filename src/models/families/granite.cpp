// Granite 3: Llama with scale factors on embeddings, attention scores, residuals and logits, dense
// or with experts in every layer.
#include "models/families/granite.h"

#include "base/signed.h"
#include "models/config/router.h"
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {
namespace {

GqaDecoderConfig read_granite(const ConfigFile& config, const Builder& b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b, {.context_tokens = 2048});
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", false);
  auto factor = [&config](std::string_view key) { return config.number_or(key, 1, 1e-6, 1e6); };
  c.attention.scale = factor("attention_multiplier");
  c.style.residual_scale = factor("residual_multiplier");
  c.decoder().embedding_scale = factor("embedding_multiplier");
  c.decoder().logit_scale = 1 / factor("logits_scaling");
  return c;
}

}  // namespace

GatedMlpNames granite_block_names(const Builder& b) {
  // GGUF files have the two halves of input_linear.
  bool halves = (b / "model" / "layers" / 0 / "shared_mlp" / "gate_proj").has("weight");
  return {.down = "output_linear", .gate_up = halves ? "" : "input_linear"};
}

void read_granite_experts(const ConfigFile& config, SparseConfig& sparse) {
  int64_t intermediate = config.integer_or("intermediate_size", 11008, 1, kWidthMax);
  MoeDefaults defaults{.router = {.experts = 8, .top_k = 2},
                       .intermediate = ExpertWidth::fixed(intermediate)};
  if (sparse.intermediate > 0) {
    defaults.shared_intermediate = ExpertWidth::fixed(sparse.intermediate);
  }
  sparse.moe = read_moe(config, sparse.decoder.hidden, defaults);
  sparse.moe.shared_names = sparse.names;
  sparse.moe.shared_name = "shared_mlp";
  sparse.moe.router_name = "block_sparse_moe.router.layer";
  sparse.moe.experts_name = "block_sparse_moe";
  sparse.moe.gate_up_stack = "input_linear.weight";
  sparse.moe.down_stack = "output_linear.weight";
  sparse.moe_scope = "";
  sparse.moe_layers = filled(sparse.decoder.layers, true);
}

Result<std::unique_ptr<Model>> load_granite(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_granite(config, b);
  c.sparse.bias = config.flag_or("mlp_bias", false);
  return make_gqa_decoder(config, b, c);
}

Result<std::unique_ptr<Model>> load_granite_moe(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_granite(config, b);
  c.sparse.names = granite_block_names(b);
  c.sparse.intermediate = config.integer_or("shared_intermediate_size", 0, 0, kWidthMax);
  read_granite_experts(config, c.sparse);
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
