#include "models/config/moba.h"

#include <algorithm>

#include "base/divide.h"
#include "base/error.h"
#include "base/signed.h"
#include "models/config/common.h"

namespace banyan {
namespace {

constexpr int64_t kBlockMax = int64_t{1} << 20;
constexpr int64_t kTopMax = int64_t{1} << 12;

std::vector<bool> read_moba_layers(const ConfigFile& config, int64_t layers) {
  constexpr std::string_view kKey = "moba_layer_freq";
  if (config.is_list(kKey)) return read_layer_flags(config, kKey, layers);
  std::vector<bool> sparse;
  int64_t every = config.integer(kKey, 1, kLayersMax);
  for (int64_t i = 0; i < layers; ++i) sparse.push_back((i + 1) % every != 0);
  return sparse;
}

bool selects(const GqaConfig& c) {
  return c.moba && c.moba->block_tokens > 0;
}

// The layer's attention, if it has keys of its own and attends to all positions.
GqaConfig* attention_to_all(LayerConfig& layer) {
  GqaConfig* attention = layer.mixer ? std::get_if<GqaConfig>(&*layer.mixer) : nullptr;
  if (attention == nullptr || layer.keys_of || attention->shared) return nullptr;
  return attention->window_tokens == 0 && attention->chunk_tokens == 0 ? attention : nullptr;
}

std::vector<GqaConfig*> attentions(LayeredDecoderConfig& c) {
  std::vector<GqaConfig*> all;
  auto add = [&](LayerConfig& layer) {
    if (GqaConfig* attention = attention_to_all(layer)) all.push_back(attention);
  };
  for (LayerConfig& layer : c.layers) add(layer);
  if (c.prediction) add(*c.prediction);
  return all;
}

Status check_scores(const GqaConfig& c, int64_t context_tokens) {
  int64_t scores = c.kv_heads * divide_up(context_tokens, c.moba->block_tokens);
  if (scores <= kRowScoresMax) return {};
  return unsupported(
      "blocks of {} tokens: a context of {} has {} of them in {} heads, more than the {} that a "
      "step "
      "has room to score; choose larger blocks",
      c.moba->block_tokens, context_tokens, scores, c.kv_heads, kRowScoresMax);
}

}  // namespace

std::vector<MobaShape> read_moba(const ConfigFile& config, int64_t layers) {
  constexpr std::string_view kKeys[] = {"moba_block_size", "moba_topk", "moba_layer_freq"};
  if (std::ranges::none_of(kKeys, [&](std::string_view key) { return config.has(key); })) return {};
  MobaShape shape = {.block_tokens = config.integer("moba_block_size", 1, kBlockMax),
                     .top_k = config.integer("moba_topk", 1, kTopMax),
                     .decode = config.flag_or("use_moba_decode", false)};
  std::vector<MobaShape> all;
  for (bool sparse : read_moba_layers(config, layers)) all.push_back(sparse ? shape : MobaShape{});
  return all;
}

Status choose_blocks(const Builder& b, LayeredDecoderConfig& c) {
  int64_t block = b.moba_block_tokens(), top_k = b.moba_top_k();
  std::vector<GqaConfig*> all = attentions(c);
  bool own = std::ranges::any_of(
      all, [](const GqaConfig* a) { return selects(*a) || a->index.has_value(); });
  bool asked = block > 0 || top_k > 0;
  if (asked && !own && (block == 0 || top_k == 0)) {
    return invalid_argument(
        "moba_block_tokens is {} and moba_top_k {}: a model that selects no blocks by itself needs "
        "both, --moba-block-size and --moba-topk",
        block, top_k);
  }
  for (GqaConfig* attention : all) {
    if (asked && (selects(*attention) || !own)) {
      MobaShape shape = attention->moba.value_or(MobaShape{});
      if (block > 0) shape.block_tokens = block;
      if (top_k > 0) shape.top_k = top_k;
      shape.by_option = true;
      attention->moba = shape;
    }
    if (!selects(*attention)) continue;
    attention->moba->decode = b.moba_decode().value_or(attention->moba->decode);
    TRY(check_scores(*attention, c.context_tokens));
  }
  return {};
}

}  // namespace banyan
