// MiniMax-M3 (text): an index chooses the blocks of keys that a row attends to. Norms per head with
// weights stored minus one, rotary on half of each head, clamped SwiGLU, sigmoid routing with a
// selection bias, and a shared expert. Follows transformers, minimax_m3_vl.
#include <algorithm>

#include "base/divide.h"
#include "base/signed.h"
#include "models/config/router.h"
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {
namespace {

// Published configs have an object for the index; transformers saves its keys next to the others.
struct IndexKeys {
  std::string_view heads, dim, block, top_k, local;
};
constexpr std::string_view kPublished = "sparse_attention_config";
constexpr IndexKeys kPublishedKeys = {"sparse_num_index_heads", "sparse_index_dim",
                                      "sparse_block_size", "sparse_topk_blocks",
                                      "sparse_local_block"};
constexpr IndexKeys kSavedKeys = {"index_n_heads", "index_head_dim", "index_block_size",
                                  "index_topk_blocks", "index_local_blocks"};

BlockIndexConfig read_index(const ConfigFile& config, const Builder& b, const IndexKeys& keys,
                            const GqaConfig& attention, int64_t rotary) {
  constexpr int64_t kBlockMax = int64_t{1} << 20, kTopMax = int64_t{1} << 12;
  BlockIndexConfig index;
  int64_t heads = config.integer_or(keys.heads, 4, 1, kHeadsMax);
  config.expect(heads == attention.kv_heads,
                "{} {} differs from num_key_value_heads {}, of which each has an index head",
                keys.heads, heads, attention.kv_heads);
  index.dim = config.integer_or(keys.dim, 128, 1, kHeadDimMax);
  config.expect(index.dim >= rotary, "{} {} is less than rotary_dim {}, of which it turns all",
                keys.dim, index.dim, rotary);
  index.block_tokens = config.integer_or(keys.block, 128, 1, kBlockMax);
  index.top_k = config.integer_or(keys.top_k, 16, 1, kTopMax);
  index.local_blocks = config.integer_or(keys.local, 1, 1, kTopMax);
  config.expect(index.local_blocks <= index.top_k, "{} {} exceeds {} {}", keys.local,
                index.local_blocks, keys.top_k, index.top_k);
  index.key_bytes = state_row_bytes(b.index_dtype(), {.width = index.dim});
  return index;
}

// Which layers have an index.
std::vector<bool> read_indexed_layers(const ConfigFile& config, int64_t layers) {
  if (!config.has(kPublished)) {
    return layers_of_type(config, "layer_types", "minimax_m3_sparse", "full_attention", layers);
  }
  ConfigFile index = config.object(kPublished);
  index.only("use_sparse_attention", {true});
  index.only("sparse_score_type", {"max"});
  index.only("sparse_init_block", {0});
  std::vector<bool> indexed = read_layer_flags(index, "sparse_attention_freq", layers);
  constexpr std::string_view kWithoutValues = "sparse_disable_index_value";
  if (index.has(kWithoutValues)) {
    std::vector<bool> without = read_layer_flags(index, kWithoutValues, layers);
    for (int64_t i = 0; i < layers; ++i) {
      index.expect(!at(indexed, i) || at(without, i),
                   "{}: 0 in layer {}, whose index would have values; supported: 1", kWithoutValues,
                   i);
    }
  }
  return indexed;
}

std::vector<bool> read_experts_layers(const ConfigFile& config, int64_t layers) {
  constexpr std::string_view kKey = "moe_layer_freq";
  if (config.has(kKey)) return read_layer_flags(config, kKey, layers);
  return read_moe_layers(config, layers, 0);
}

void read_clamped_experts(const ConfigFile& config, GqaDecoderConfig& c) {
  SparseConfig& sparse = c.sparse;
  Glu glu = {GluForm::kSwigluOai,
             static_cast<float>(config.number_or("swiglu_limit", 7, 1e-3, 1e6))};
  config.only("swiglu_alpha", {1.702});
  config.only("swiglu_beta", {1.0});
  sparse.moe = read_moe(config, c.decoder().hidden,
                        {.router = {.experts = 128,
                                    .top_k = 4,
                                    .score = RouterScore::kSigmoid,
                                    .bias = RouterFlag::fixed(true),
                                    .scale = 2.0},
                         .intermediate = ExpertWidth::fixed(sparse.intermediate),
                         .shared = 1,
                         .shared_intermediate = ExpertWidth::unless_said(3072)});
  sparse.moe.bias_name = "e_score_correction_bias";
  sparse.moe.expert_names = {"w1", "w3", "w2"};
  sparse.moe.glu = sparse.moe.shared_glu = sparse.glu = glu;
  sparse.moe_scope = "block_sparse_moe";
  sparse.moe_layers = read_experts_layers(config, c.decoder().layers);
  sparse.intermediate = config.integer_or("dense_intermediate_size", 12288, 1, kWidthMax);
}

}  // namespace

Result<std::unique_ptr<Model>> load_minimax_m3(const ConfigFile& config, Builder b) {
  int64_t head_dim = config.integer_or("head_dim", 128, 2, kHeadDimMax);
  int64_t rotary = config.integer_or("rotary_dim", head_dim / 2, 2, head_dim);
  double partial = static_cast<double>(rotary) / head_dim;
  GqaDecoderConfig c = read_gqa_decoder(config, b,
                                        {.attention = {.kv_heads = 4, .head_dim = 128},
                                         .context_tokens = 524288,
                                         .theta = 5e6,
                                         .swiglu_oai = true,
                                         .partial = partial,
                                         .partial_rotary = true});
  config.expect(c.decoder().rope.rotary_dim == rotary,
                "rotary_dim {} is not partial_rotary_factor of head_dim {}", rotary, head_dim);
  c.attention.head_norms = true;
  c.attention.norm_weight = c.decoder().norm_weight = NormWeight::kLessOne;
  config.only("use_gemma_norm", {true});
  config.only("use_qk_norm", {true});
  config.only("qk_norm_type", {"per_head"});
  config.only("attention_output_gate", {false});
  bool published = config.has(kPublished);
  BlockIndexConfig index = read_index(published ? config.object(kPublished) : config, b,
                                      published ? kPublishedKeys : kSavedKeys, c.attention, rotary);
  int64_t scores = c.attention.kv_heads * divide_up(c.sparse.context_tokens, index.block_tokens);
  config.expect(scores <= kRowScoresMax,
                "blocks of {} tokens: a context of {} has {} of them in all heads, more than the "
                "{} that a step has room to score",
                index.block_tokens, c.sparse.context_tokens, scores, kRowScoresMax);
  std::vector<bool> indexed = read_indexed_layers(config, c.decoder().layers);
  c.attention.index = index;
  for (int64_t i = 0; i < c.decoder().layers; ++i) at(c.layers, i).indexed = at(indexed, i);
  read_clamped_experts(config, c);
  // The checkpoints have no MTP tensors, so these keys have no effect.
  config.ignore({"num_mtp_modules", "num_nextn_predict_layers"});
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
