#include "support/models/hybrid_model.h"

#include <optional>

#include "base/check.h"
#include "engine/assemble.h"
#include "models/decoder.h"
#include "nn/gqa_attention.h"
#include "nn/kda_attention.h"
#include "nn/lightning_attention.h"
#include "nn/mlp.h"
#include "nn/nsa_attention.h"
#include "nn/rope.h"
#include "support/models/made_up_mixers.h"
#include "support/value_or_abort.h"

namespace banyan::test {
namespace {

constexpr const char* kArchitecture = "BanyanHybridForTests";
constexpr float kEps = 1e-6f;

struct HybridConfig {
  DecoderConfig decoder;
  std::vector<std::string> layer_types;
  int64_t window_tokens = 0, chunk_tokens = 0, context_tokens = 0;
};

HybridConfig read_hybrid(const ConfigFile& config) {
  HybridConfig c;
  c.layer_types = config.texts("layer_types");
  c.window_tokens = config.integer("sliding_window", 1, 1 << 20);
  c.chunk_tokens = config.integer("chunk_size", 1, 1 << 10);
  c.context_tokens = config.integer("max_position_embeddings", 1, 1 << 20);
  c.decoder = {.vocabulary = config.integer("vocab_size", 1, 1 << 20),
               .hidden = config.integer("hidden_size", 1, 1 << 20),
               .layers = std::ssize(c.layer_types),
               .eps = kEps,
               .rope = {.rotary_dim = 8}};
  config.ignore({"dtype"});
  return c;
}

class HybridLayer {
 public:
  HybridLayer(Builder b, const HybridConfig& c, int64_t index)
      : mixer_norm_(b / "input_layernorm", c.decoder.hidden, kEps),
        mlp_norm_(b / "post_attention_layernorm", c.decoder.hidden, kEps),
        mlp_(b / "mlp", c.decoder.hidden, 16, false) {
    const std::string& type = c.layer_types[static_cast<size_t>(index)];
    if (type == "linear_attention") {
      lightning_.emplace(b / "attention",
                         LightningConfig{.hidden = c.decoder.hidden,
                                         .heads = 2,
                                         .head_dim = 8,
                                         .layer = index,
                                         .layers = c.decoder.layers,
                                         .norm_groups = 2,
                                         .eps = kEps,
                                         .chunk_tokens = static_cast<int>(c.chunk_tokens)});
    } else if (type == "delta_attention") {
      kda_.emplace(b / "attention", KdaConfig{.hidden = c.decoder.hidden,
                                              .heads = 2,
                                              .head_dim = 8,
                                              .lower_bound = -5,
                                              .eps = kEps,
                                              .chunk_tokens = static_cast<int>(c.chunk_tokens)});
    } else if (type == "block_means") {
      block_means_.emplace(b / "blocks", c.decoder.hidden, 4);
    } else if (type == "nsa") {
      nsa_.emplace(
          b / "nsa",
          NsaConfig{.hidden = c.decoder.hidden,
                    .q_heads = 4,
                    .kv_heads = 2,
                    .head_dim = 8,
                    .shape = {.pool_tokens = 8, .stride = 4, .block_tokens = 8, .top_k = 4},
                    .window_tokens = c.window_tokens});
    } else if (type == "notes") {
      notes_.emplace(b / "notes", c.decoder.hidden);
    } else {
      int64_t window = type == "sliding_attention" ? c.window_tokens : 0;
      if (type == "near_attention") window = c.window_tokens / 2;
      gqa_.emplace(b / "self_attn", GqaConfig{.hidden = c.decoder.hidden,
                                              .q_heads = 4,
                                              .kv_heads = 2,
                                              .head_dim = 8,
                                              .window_tokens = window});
    }
  }

  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const {
    Tensor normed = mixer_norm_(s, x);
    x = add(s, x, mix(s, normed, rotation));
    return add(s, x, mlp_(s, mlp_norm_(s, x)));
  }

 private:
  Tensor mix(Step& s, Tensor x, const Rotation& rotation) const {
    if (gqa_) return (*gqa_)(s, x, rotation);
    if (nsa_) return (*nsa_)(s, x, rotation);
    if (block_means_) return (*block_means_)(s, x);
    if (notes_) return (*notes_)(s, x);
    return lightning_ ? (*lightning_)(s, x, rotation) : (*kda_)(s, x);
  }

  RmsNorm mixer_norm_, mlp_norm_;
  std::optional<GqaAttention> gqa_;
  std::optional<LightningAttention> lightning_;
  std::optional<KdaAttention> kda_;
  std::optional<BlockMeans> block_means_;
  std::optional<Notes> notes_;
  std::optional<NsaAttention> nsa_;
  GatedMlp mlp_;
};

Result<std::unique_ptr<Model>> load_hybrid(const ConfigFile& config, Builder b) {
  HybridConfig c = read_hybrid(config);
  TRY(config.finish());
  ModelInfo info{.architecture = kArchitecture,
                 .vocabulary = c.decoder.vocabulary,
                 .hidden = c.decoder.hidden,
                 .context_length_tokens = c.context_tokens};
  for (const std::string& type : c.layer_types) info.layers.push_back({type, "dense"});
  auto make_layer = [&c](Builder scope, int64_t i) { return HybridLayer(scope, c, i); };
  return std::make_unique<DecoderModel<HybridLayer>>(b, std::move(info), c.decoder, make_layer);
}

constexpr Family kFamilies[] = {{kArchitecture, load_hybrid}};

}  // namespace

std::span<const Family> hybrid_families() {
  return kFamilies;
}

EngineConfig hybrid_config(const TemporaryFolder& folder, const HybridLayers& layers) {
  Json types = Json::array();
  if (layers.full) types.push_back("full_attention");
  if (layers.window) types.push_back("sliding_attention");
  if (layers.lightning) types.push_back("linear_attention");
  if (layers.delta) types.push_back("delta_attention");
  if (layers.near) types.push_back("near_attention");
  if (layers.block_means) types.push_back("block_means");
  if (layers.notes) types.push_back("notes");
  if (layers.nsa) types.push_back("nsa");
  Json config = {{"architectures", {kArchitecture}},
                 {"dtype", "float32"},
                 {"vocab_size", 97},
                 {"hidden_size", 24},
                 {"layer_types", types},
                 {"sliding_window", layers.window_tokens},
                 {"chunk_size", layers.chunk_tokens},
                 {"max_position_embeddings", layers.context_tokens}};
  folder.write("config.json", config.dump());
  return {.model_path = folder.path(), .load_format = "dummy", .threads = 1, .page_size_tokens = 4};
}

std::unique_ptr<Runner> load_hybrid_runner(const EngineConfig& config) {
  return value_or_abort(Runner::load(config, {}, hybrid_families()));
}

std::unique_ptr<Engine> load_hybrid_engine(const EngineConfig& config) {
  return value_or_abort(EngineAssembly::load(config, hybrid_families()));
}

}  // namespace banyan::test
