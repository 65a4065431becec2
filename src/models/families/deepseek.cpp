// DeepSeek-V2: latent attention and softmax routing (DeepSeek-AI 2024, arXiv:2405.04434).
// DeepSeek-V3, R1, V3.1, Kimi K2 (text) and GLM-4.7-Flash: MLA, and grouped sigmoid routing with a
// selection bias (DeepSeek-AI 2024, arXiv:2412.19437). In DeepSeek-V3.2 and GLM-5 an index chooses
// the tokens that a row attends to (DeepSeek-AI 2025, arXiv:2512.02556); in GLM-5 layers may use
// the choice of an earlier one.
#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "base/signed.h"
#include "models/config/router.h"
#include "models/registry.h"
#include "models/sparse.h"

namespace banyan {
namespace {

struct IndexDefaults {
  int64_t heads = 64;
  bool interleaved = false;  // its rotation
  bool shares = false;       // layers may share what one chose
};

struct Defaults {
  double eps = 1e-6;
  int64_t context_tokens = 4096;
  int64_t dense_layers = 3;
  MoeDefaults moe = deepseek_moe({8, 4}, 2.5);
  std::optional<IndexDefaults> index;
};

TokenIndexConfig read_index(const ConfigFile& config, const Builder& b,
                            const IndexDefaults& defaults, const MlaConfig& attention,
                            int64_t context_tokens) {
  TokenIndexConfig index{.context_tokens = context_tokens};
  index.heads = config.integer_or("index_n_heads", defaults.heads, 1, kHeadsMax);
  index.dim = config.integer_or("index_head_dim", 128, 1, kHeadDimMax);
  index.top_k = config.integer_or("index_topk", 2048, 1, kContextMax);
  config.expect(index.dim >= attention.rope_dim,
                "index_head_dim {} is less than qk_rope_head_dim {}, of which it turns all",
                index.dim, attention.rope_dim);
  config.expect(std::has_single_bit(static_cast<uint64_t>(index.dim)),
                "index_head_dim {} is not a power of two", index.dim);
  config.expect(attention.query_rank > 0, "q_lora_rank is missing: an index is made of it");
  index.key_bytes = state_row_bytes(b.index_dtype(), {.width = index.dim});
  bool interleaved = config.flag_or("indexer_rope_interleave", defaults.interleaved);
  index.layout = interleaved ? RopeLayout::kInterleaved : RopeLayout::kHalves;
  return index;
}

// Which layers use the choice of an earlier one: from `indexer_types`, a pattern of F (full) and S
// (shared), or a frequency of full layers.
std::vector<bool> read_shared_layers(const ConfigFile& config, int64_t layers) {
  std::vector<bool> shared;
  int64_t every = config.integer_or("index_topk_freq", 1, 1, kLayersMax);
  int64_t offset = config.integer_or("index_skip_topk_offset", 2, 0, kLayersMax);
  std::string pattern = config.text_or("index_topk_pattern", "");
  if (config.has("indexer_types")) {
    shared = layers_of_type(config, "indexer_types", "shared", "full", layers);
  } else if (!pattern.empty()) {
    config.expect(
        std::ssize(pattern) == layers && pattern.find_first_not_of("FS") == std::string::npos,
        "index_topk_pattern \"{}\" does not have an F or S for each of {} layers", pattern, layers);
    for (int64_t i = 0; i < layers; ++i) {
      shared.push_back(i < std::ssize(pattern) && pattern[as_size(i)] == 'S');
    }
  } else {
    for (int64_t i = 0; i < layers; ++i) {
      shared.push_back(std::max<int64_t>(i - offset + 1, 0) % every != 0);
    }
  }
  config.expect(layers == 0 || !shared.front(), "the first layer has no index to share");
  return shared;
}

Result<std::unique_ptr<Model>> load(const ConfigFile& config, Builder b, const Defaults& defaults) {
  SparseConfig c{.decoder = read_decoder(config, b, {.eps = defaults.eps})};
  int64_t rope_dim = config.integer("qk_rope_head_dim", 2, kHeadDimMax);
  c.context_tokens = read_rotation(config, rope_dim, {defaults.context_tokens}, c.decoder);
  MlaConfig attention = read_mla(config, b, c.decoder);
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.moe = read_moe(config, c.decoder.hidden, defaults.moe);
  int64_t every = config.integer_or("moe_layer_freq", 1, 1, kLayersMax);
  c.moe_layers = read_moe_layers(config, c.decoder.layers, defaults.dense_layers, every);
  c.predicts = take_prediction_layer(config, b / c.decoder.scope / "layers", c.decoder.layers);
  std::vector<bool> shared(as_size(c.decoder.layers));
  if (defaults.index) {
    attention.index = read_index(config, b, *defaults.index, attention, c.context_tokens);
    if (config.has("layer_types")) {
      constexpr std::string_view kType = "indexed_attention";
      layers_of_type(config, "layer_types", kType, kType, c.decoder.layers);
    }
    config.ignore({"index_share_for_mtp_iteration"});  // the MTP layer has its own index
    if (defaults.index->shares) shared = read_shared_layers(config, c.decoder.layers);
  }
  std::vector<MixerConfig> attentions;
  for (bool shares : shared) {
    MlaConfig own = attention;
    if (shares) own.index->shared = true;
    attentions.emplace_back(own);
  }
  return make_sparse(config, b, c, attentions);
}

}  // namespace

// The authors' code leaves the scaling factor out where norm_topk_prob is true, and transformers
// ignores that key. Published checkpoints have false, so true is refused.
Result<std::unique_ptr<Model>> load_deepseek_v2(const ConfigFile& config, Builder b) {
  return load(config, b, {.context_tokens = 2048, .dense_layers = 0, .moe = deepseek_v2_moe()});
}

Result<std::unique_ptr<Model>> load_deepseek_v3(const ConfigFile& config, Builder b) {
  return load(config, b, {});
}

Result<std::unique_ptr<Model>> load_deepseek_v32(const ConfigFile& config, Builder b) {
  return load(config, b, {.context_tokens = 163840, .index = IndexDefaults{}});
}

Result<std::unique_ptr<Model>> load_glm_moe_dsa(const ConfigFile& config, Builder b) {
  return load(config, b,
              {.eps = 1e-5,
               .context_tokens = 202752,
               .moe = deepseek_moe({1, 1}, 2.5, 256, 8),
               .index = IndexDefaults{.heads = 32, .interleaved = true, .shares = true}});
}

Result<std::unique_ptr<Model>> load_glm4_moe_lite(const ConfigFile& config, Builder b) {
  return load(config, b,
              {.eps = 1e-5,
               .context_tokens = 202752,
               .dense_layers = 1,
               .moe = deepseek_moe({1, 1}, 1.8, 64, 4)});
}

}  // namespace banyan
