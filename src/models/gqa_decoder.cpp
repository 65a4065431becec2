#include "models/gqa_decoder.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/signed.h"
#include "models/config/rope.h"

namespace banyan {
namespace {

GqaConfig attention_of(const GqaDecoderConfig& c, int64_t layer) {
  const GqaLayerShape& shape = at(c.layers, layer);
  GqaConfig attention = !shape.rotary && c.unturned ? *c.unturned : c.attention;
  attention.window_tokens = shape.window_tokens;
  attention.rotary = shape.rotary;
  if (!shape.indexed) attention.index.reset();
  return attention;
}

// Reads the rotations of full-attention and sliding-window layers.
int64_t read_rotations(const ConfigFile& config, int64_t rotary, const GqaDecoderDefaults& defaults,
                       DecoderConfig& decoder) {
  int64_t context =
      config.integer_or("max_position_embeddings", defaults.context_tokens, 1, kContextMax);
  double theta = config.number_or("rope_theta", defaults.theta, 1.000001, 1e15);
  double local =
      defaults.local_theta_key == "rope_theta"
          ? theta
          : config.number_or(defaults.local_theta_key, defaults.local_theta, 1.000001, 1e15);
  decoder.rope = read_rope_of_type(config, "full_attention", rotary, context, theta);
  decoder.other_ropes = {read_rope_of_type(config, "sliding_attention", rotary, context, local)};
  return std::max(context, stretched_context_tokens(decoder.rope));
}

}  // namespace

GqaDecoderConfig read_gqa_decoder(const ConfigFile& config, const Builder& b,
                                  const GqaDecoderDefaults& defaults) {
  GqaDecoderConfig c;
  c.decoder() = read_decoder(config, b,
                             {.vocabulary = defaults.vocabulary,
                              .eps = defaults.eps,
                              .gelu = defaults.gelu,
                              .swiglu_oai = defaults.swiglu_oai,
                              .tied = defaults.tied});
  if (defaults.gelu) c.sparse.glu.form = GluForm::kGeluTanh;
  constexpr std::string_view kIntermediate = "intermediate_size";
  c.sparse.intermediate =
      defaults.intermediate > 0
          ? config.integer_or(kIntermediate, defaults.intermediate, 1, kWidthMax)
          : config.integer(kIntermediate, 1, kWidthMax);
  c.attention = read_gqa(config, c.decoder(), defaults.attention);
  bool partial = defaults.partial_rotary || defaults.partial != 1;
  double part = partial ? read_partial_rotary_factor(config, defaults.partial) : 1;
  auto rotary = static_cast<int64_t>(c.attention.head_dim * part);
  config.expect(
      rotary >= 2 && rotary % 2 == 0,
      "partial_rotary_factor {} gives a rotary dimension of {}; it must be even, 2 or more", part,
      rotary);
  if (defaults.local_theta_key.empty()) {
    c.sparse.context_tokens = read_rotation(
        config, rotary, {defaults.context_tokens, defaults.theta, partial, defaults.query_scale},
        c.decoder());
  } else {
    c.sparse.context_tokens = read_rotations(config, rotary, defaults, c.decoder());
  }
  double beta = c.decoder().rope.query_beta;
  c.attention.query_scale = {beta, c.decoder().rope.original_context_tokens};
  c.layers.resize(as_size(c.decoder().layers));
  return c;
}

void set_window(GqaDecoderConfig& c, int64_t window) {
  for (GqaLayerShape& layer : c.layers) layer.window_tokens = window;
}

void set_windows(GqaDecoderConfig& c, const std::vector<int64_t>& windows) {
  for (size_t i = 0; i < c.layers.size(); ++i) c.layers[i].window_tokens = windows[i];
}

void set_windows(GqaDecoderConfig& c, const std::vector<bool>& sliding, int64_t window) {
  for (size_t i = 0; i < c.layers.size(); ++i) {
    c.layers[i].window_tokens = sliding[i] ? window : 0;
    c.layers[i].rope = sliding[i] && !c.decoder().other_ropes.empty() ? 1 : 0;
  }
}

std::vector<bool> read_sliding_layers(const ConfigFile& config, int64_t layers, int64_t every) {
  if (config.has("layer_types")) {
    return layers_of_type(config, "layer_types", "sliding_attention", "full_attention", layers);
  }
  std::vector<bool> sliding;
  for (int64_t i = 0; i < layers; ++i) sliding.push_back(every > 0 && (i + 1) % every != 0);
  return sliding;
}

std::vector<int64_t> read_qwen_windows(const ConfigFile& config, int64_t layers) {
  std::vector<int64_t> windows = filled<int64_t>(layers, 0);
  bool sliding = config.flag_or("use_sliding_window", false);
  // Missing means 4096; null means no window.
  int64_t window = read_window(config);
  int64_t first = config.integer_or("max_window_layers", 28, 0, kContextMax);
  std::vector<std::string> types = config.texts("layer_types");
  config.expect(types.empty() || std::ssize(types) == layers,
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

Result<std::unique_ptr<Model>> make_gqa_decoder(const ConfigFile& config, Builder b,
                                                const GqaDecoderConfig& c) {
  TRY(config.finish());  // the per-layer lists below are complete only if nothing failed
  LayeredDecoderConfig all{
      .decoder = c.sparse.decoder, .context_tokens = c.sparse.context_tokens, .style = c.style};
  for (int64_t i = 0; i < all.decoder.layers; ++i) {
    LayerConfig layer = layer_of(c.sparse, i);
    layer.mixer = attention_of(c, i);
    layer.rope = at(c.layers, i).rope;
    all.layers.push_back(layer);
  }
  add_prediction(c.sparse, c.attention, all);
  return make_layered_decoder(config, b, all);
}

}  // namespace banyan
