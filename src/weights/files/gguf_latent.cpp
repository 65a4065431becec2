#include "weights/files/gguf_latent.h"

#include <string_view>
#include <vector>

#include "base/signed.h"
#include "weights/files/gguf_config.h"

namespace banyan {
namespace {

// Latents are cached as one key head, which key_length then describes; in older files it describes
// the heads themselves.
void read_latent_attention(GgufConfig& c) {
  int64_t rope = c.integer("rope.dimension_count", 0);
  int64_t key = c.integer("attention.key_length", 0);
  int64_t value = c.integer("attention.value_length", 0);
  c.set("qk_rope_head_dim", rope);
  c.set("qk_nope_head_dim", c.integer("attention.key_length_mla", key) - rope);
  c.set("v_head_dim", c.integer("attention.value_length_mla", value));
  c.copy("attention.kv_lora_rank", "kv_lora_rank");
  c.copy("attention.q_lora_rank", "q_lora_rank");
  c.ignore("attention.head_count_kv");
}

// llama.cpp's defaults for absent values, which differ from config.json's.
void read_grouped_experts(GgufConfig& c) {
  if (!c.has("expert_group_count")) c.set("n_group", 1);
  if (!c.has("expert_group_used_count")) c.set("topk_group", 1);
  if (!c.has("expert_shared_count")) c.set("n_shared_experts", 0);
  if (!c.has("expert_weights_norm")) c.set("norm_topk_prob", false);
  if (!c.has("expert_weights_scale")) c.set("routed_scaling_factor", 1);
  if (!c.has("leading_dense_block_count")) c.set("first_k_dense_replace", 0);
}

void read_layers(GgufConfig& c) {
  read_latent_attention(c);
  c.copy("nextn_predict_layers", "num_nextn_predict_layers");
  read_grouped_experts(c);
}

}  // namespace

// V2 or V3. Files that do not name the function that chooses experts use V2's softmax, or sigmoid
// if they have its bias.
void read_deepseek2(GgufConfig& c) {
  read_layers(c);
  int64_t dense = c.integer("leading_dense_block_count", 0);
  bool biased = c.stores(fmt::format("model.layers.{}.mlp.gate.e_score_correction_bias", dense));
  if (biased || c.integer("expert_gating_func", 1) != 1) return c.expect_gating(2, "sigmoid");
  c.set("architectures", Json::array({"DeepseekV2ForCausalLM"}));
  bool grouped = c.integer("expert_group_count", 1) > 1;
  c.set("topk_method", grouped ? "group_limited_greedy" : "greedy");
}

// In some files layers use what an earlier one has chosen.
void read_token_index(GgufConfig& c) {
  read_layers(c);
  c.expect_gating(2, "sigmoid");
  c.set("index_n_heads", c.required("attention.indexer.head_count"));
  c.set("index_head_dim", c.required("attention.indexer.key_length"));
  c.set("index_topk", c.required("attention.indexer.top_k"));
  constexpr std::string_view kTypes = "attention.indexer.types";
  std::vector<int64_t> full = c.integers(kTypes);
  if (full.empty()) return;
  c.expect(std::ssize(full) >= c.layers(), "{}: {} has {} entries for {} layers",
           c.file().pairs().path(), kTypes, full.size(), c.layers());
  full.resize(as_size(c.layers()));
  Json types = Json::array();
  for (int64_t chooses : full) types.push_back(chooses != 0 ? "full" : "shared");
  c.set("indexer_types", types);
}

void read_mistral4(GgufConfig& c) {
  read_latent_attention(c);
  read_grouped_experts(c);
  c.expect_gating(1, "softmax");
}

}  // namespace banyan
