#include "weights/files/gguf_recurrent.h"

#include <algorithm>
#include <string>

#include "weights/files/gguf_config.h"

namespace banyan {
namespace {

// Whether layer `i` has the tensor.
bool layer_stores(const GgufConfig& c, int64_t i, std::string_view tensor) {
  return c.stores(fmt::format("{}.layers.{}.{}", c.file().architecture().scope, i, tensor));
}

bool any_layer_stores(const GgufConfig& c, std::string_view tensor) {
  for (int64_t i = 0; i < c.layers(); ++i) {
    if (layer_stores(c, i, tensor)) return true;
  }
  return false;
}

// The width of one of the heads that together have ssm.inner_size.
int64_t inner_head_dim(GgufConfig& c) {
  int64_t heads = c.integer("ssm.time_step_rank", 0), inner = c.integer("ssm.inner_size", 0);
  bool divides = heads > 0 && inner > 0 && inner % heads == 0;
  c.expect(divides, "{}: ssm.inner_size is {} and ssm.time_step_rank {}, which does not divide it",
           c.file().pairs().path(), inner, heads);
  return divides ? inner / heads : 1;
}

// Each layer's type follows from one of its tensors.
void set_layer_types(GgufConfig& c, std::string_view recurrent_tensor,
                     std::string_view recurrence) {
  Json types = Json::array();
  for (int64_t i = 0; i < c.layers(); ++i) {
    types.push_back(layer_stores(c, i, recurrent_tensor) ? recurrence : "full_attention");
  }
  c.set("layer_types", types);
}

// Of latent attention in some layers.
void read_latent_heads(GgufConfig& c) {
  int64_t rope = c.integer("rope.dimension_count", 0);
  c.set("qk_rope_head_dim", rope);
  c.set("qk_nope_head_dim", c.integer("attention.key_length_mla", 0) - rope);
  c.set("v_head_dim", c.integer("attention.value_length_mla", 0));
  for (std::string_view of_cache :
       {"attention.key_length", "attention.value_length", "attention.head_count_kv"}) {
    c.ignore(of_cache);
  }
}

}  // namespace

void read_qwen3_next(GgufConfig& c) {
  c.set("linear_value_head_dim", inner_head_dim(c));
  c.set("attention_bias", any_layer_stores(c, "self_attn.q_proj.bias"));
  c.ignore("attention.recurrent_layers");
  c.copy("nextn_predict_layers", "mtp_num_hidden_layers");
  set_layer_types(c, "linear_attn.A_log", "linear_attention");
  if (c.integer("expert_count", 0) == 0) return;
  c.set("norm_topk_prob", true);
  Json dense = Json::array();
  for (int64_t i = 0; i < c.layers(); ++i) {
    if (!layer_stores(c, i, "mlp.gate.weight")) dense.push_back(i);
  }
  c.set("mlp_only_layers", dense);
}

void read_qwen3_5(GgufConfig& c) {
  read_qwen3_next(c);
  c.ignore("rope.dimension_sections");  // of positions of images
  c.set("tiled_value_heads", true);
}

void read_granite_hybrid(GgufConfig& c) {
  int64_t head_dim = inner_head_dim(c), inner = c.integer("ssm.inner_size", 0);
  c.set("mamba_d_head", head_dim);
  c.expect(inner % c.hidden() == 0, "{}: ssm.inner_size {} is not a multiple of {}",
           c.file().pairs().path(), inner, c.hidden());
  c.set("mamba_expand", inner / c.hidden());
  c.set("mamba_conv_bias", any_layer_stores(c, "mamba.conv1d.bias"));
  c.set("mamba_proj_bias", any_layer_stores(c, "mamba.in_proj.bias"));
  c.set("attention_bias", any_layer_stores(c, "self_attn.q_proj.bias"));
  c.set("num_local_experts", c.integer("expert_count", 0));
  c.ignore("expert_used_count");  // of dense files
  c.copy("expert_shared_feed_forward_length", "shared_intermediate_size");
  c.set("position_embedding_type", c.flag("rope.scaling.finetuned", false) ? "rope" : "nope");
}

// A layer's tensors say which block it is.
void read_nemotron_h(GgufConfig& c) {
  c.erase("layer_types");
  c.ignore("feed_forward_length");
  std::string blocks;
  for (int64_t i = 0; i < c.layers(); ++i) {
    bool mamba = layer_stores(c, i, "mixer.in_proj.weight");
    bool attention = layer_stores(c, i, "mixer.q_proj.weight");
    bool experts = layer_stores(c, i, "mixer.gate.weight");
    blocks += mamba ? 'M' : attention ? '*' : experts ? 'E' : '-';
    if (blocks.back() != '-') continue;
    const TensorInfo* up = c.file().find(fmt::format("backbone.layers.{}.mixer.up_proj.weight", i));
    if (up != nullptr) c.set("intermediate_size", up->shape[0]);
  }
  c.set("hybrid_override_pattern", blocks);
  c.set("mamba_head_dim", inner_head_dim(c));
  c.set("use_conv_bias", any_layer_stores(c, "mixer.conv1d.bias"));
  c.set("use_bias", any_layer_stores(c, "mixer.in_proj.bias"));
  c.copy("nextn_predict_layers", "num_nextn_predict_layers");
}

void read_kimi_linear(GgufConfig& c) {
  read_latent_heads(c);
  c.set("linear_num_heads", c.heads());
  set_layer_types(c, "self_attn.A_log", "linear_attention");
}

// The converter takes full-rank gates of KDA and a gate of each head of MLA alone.
void read_ling3(GgufConfig& c) {
  read_latent_heads(c);
  c.set("gated_attention_proj_granularity_type", "head_wise");
  c.set("expert_swiglu_limit_list", Json(c.numbers("swiglu_clamp_exp")));
  c.set("share_expert_swiglu_limit_list", Json(c.numbers("swiglu_clamp_shexp")));
  set_layer_types(c, "attention.A_log", "linear_attention");
}

}  // namespace banyan
