#include "models/dense.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace banyan {

DenseConfig read_dense(const ConfigFile& config, const Builder& b, const DenseDefaults& defaults) {
  DenseConfig c{.decoder = read_decoder(config, b)};
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.attention = read_gqa(config, c.decoder, defaults.attention);
  c.context_tokens =
      read_rotation(config, c.attention.head_dim, {defaults.context_tokens}, c.decoder);
  c.window_tokens.assign(static_cast<size_t>(c.decoder.layers), 0);
  return c;
}

std::vector<int64_t> read_qwen_windows(const ConfigFile& config, int64_t layers) {
  std::vector<int64_t> windows(static_cast<size_t>(layers), 0);
  bool sliding = config.flag_or("use_sliding_window", false);
  // Absent means 4096, null means none.
  int64_t window = config.is_null("sliding_window")
                       ? 0
                       : config.integer_or("sliding_window", 4096, 1, kContextMax);
  int64_t first = config.integer_or("max_window_layers", 28, 0, kContextMax);
  std::vector<std::string> types = config.texts("layer_types");
  config.expect(types.empty() || static_cast<int64_t>(types.size()) == layers,
                "layer_types has {} entries for {} layers", types.size(), layers);
  for (size_t i = 0; i < windows.size(); ++i) {
    bool slides = static_cast<int64_t>(i) >= first;
    if (i < types.size()) {
      slides = types[i] == "sliding_attention";
      config.expect(slides || types[i] == "full_attention" || types[i] == "attention",
                    "layer_types: \"{}\" is not supported", types[i]);
      config.expect(!slides || sliding,
                    "layer_types has sliding_attention, but use_sliding_window "
                    "is false");
    }
    if (slides && sliding) windows[i] = window;
  }
  return windows;
}

DenseLayer::DenseLayer(Builder b, const DenseConfig& c, int64_t index)
    : attention_norm_(b / "input_layernorm", c.decoder.hidden, c.decoder.eps),
      mlp_norm_(b / "post_attention_layernorm", c.decoder.hidden, c.decoder.eps),
      attention_(b / "self_attn",
                 [&] {
                   GqaConfig attention = c.attention;
                   attention.window_tokens = c.window_tokens[static_cast<size_t>(index)];
                   return attention;
                 }()),
      mlp_(b / "mlp", c.decoder.hidden, c.intermediate, c.mlp_bias) {
  (b / "self_attn" / "rotary_emb").ignore("inv_freq");  // old Llama 2 files carry it
}

Result<std::unique_ptr<Model>> make_dense(const ConfigFile& config, Builder b,
                                          const DenseConfig& c) {
  TRY(config.finish());
  ModelInfo info{.architecture = TRY(config.architecture()),
                 .vocabulary = c.decoder.vocabulary,
                 .hidden = c.decoder.hidden,
                 .context_length_tokens = c.context_tokens};
  for (int64_t window : c.window_tokens) {
    info.layers.push_back({window > 0 ? fmt::format("gqa, window {}", window) : "gqa", "dense"});
  }
  // A key costs head_dim multiply-adds for its score and as many for its value, in every head.
  info.attention_flops_per_key = 4 * c.attention.q_heads * c.attention.head_dim * c.decoder.layers;
  auto make_layer = [&c](Builder scope, int64_t i) { return DenseLayer(scope, c, i); };
  return std::make_unique<DecoderModel<DenseLayer>>(b, std::move(info), c.decoder, make_layer);
}

}  // namespace banyan
