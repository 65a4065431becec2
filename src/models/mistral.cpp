// Mistral 7B and NeMo: Llama with a sliding window in every layer, unless it is switched off by
// `sliding_window: null` (Jiang et al., arXiv:2310.06825).
#include "models/dense.h"
#include "models/registry.h"

namespace banyan {
namespace {

// A config.json without the key means this window: only null means none.
constexpr int64_t kWindowDefault = 4096;

}  // namespace

Result<std::unique_ptr<Model>> load_mistral(const ConfigFile& config, Builder b) {
  DenseConfig c = read_dense(config, b, {.attention = {.kv_heads = 8}, .context_tokens = 131072});
  config.only("attention_bias", {false});
  config.only("mlp_bias", {false});
  int64_t window = config.is_null("sliding_window")
                       ? 0
                       : config.integer_or("sliding_window", kWindowDefault, 1, int64_t{1} << 30);
  c.window_tokens.assign(c.window_tokens.size(), window);
  config.ignore({"layer_types", "use_sliding_window"});  // the window is in every layer
  return make_dense(config, b, c);
}

}  // namespace banyan
