// Decoders with grouped-query attention: per-layer differences as data, and the config keys that
// all such families share. Each family file reads only what is specific to it.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "models/config/common.h"
#include "models/sparse.h"
#include "weights/files/config_file.h"

namespace banyan {

// Per-family defaults for keys missing from config.json.
struct GqaDecoderDefaults {
  int64_t vocabulary = 0;    // 0: the key is required
  int64_t intermediate = 0;  // 0: the key is required
  GqaDefaults attention = {};
  int64_t context_tokens = 32768;
  double theta = 10000;
  double eps = 1e-6;
  bool gelu = false;            // activation of the MLP, see DecoderDefaults
  bool swiglu_oai = false;      // see DecoderDefaults
  bool tied = false;            // see DecoderDefaults
  double partial = 1;           // rotary fraction of a head; config.json may override it ...
  bool partial_rotary = false;  // ... if this is true or the fraction is not 1
  bool query_scale = false;     // queries may be scaled by position
  // For families whose sliding-window layers use another rotation, DecoderConfig::other_ropes[0]:
  // the key of its theta, and the default.
  std::string_view local_theta_key = "";
  double local_theta = 10000;
};

// The per-layer differences.
struct GqaLayerShape {
  int64_t window_tokens = 0;  // 0: no window
  bool rotary = true;
  bool indexed = true;  // by GqaDecoderConfig::attention's index, if it has one
  int rope = 0;         // 0: DecoderConfig::rope; i: the ith of other_ropes
};

struct GqaDecoderConfig {
  SparseConfig sparse;  // moe_layers is empty in dense models
  GqaConfig attention;
  std::optional<GqaConfig> unturned;  // for layers without rotary, if their attention differs
  std::vector<GqaLayerShape> layers;  // one entry per layer
  LayerStyle style = {};

  DecoderConfig& decoder() { return sparse.decoder; }
};

// Reads the common keys. Errors are collected in `config`.
GqaDecoderConfig read_gqa_decoder(const ConfigFile& config, const Builder& b,
                                  const GqaDecoderDefaults& defaults);

// Sets the window of all layers, or of each one; 0 means none.
void set_window(GqaDecoderConfig& c, int64_t window);
void set_windows(GqaDecoderConfig& c, const std::vector<int64_t>& windows);
// Gives sliding layers the window and, if other_ropes is not empty, its first rotation.
void set_windows(GqaDecoderConfig& c, const std::vector<bool>& sliding, int64_t window);

// Which layers slide, from `layer_types` (full_attention or sliding_attention). Without the key
// every `every`th layer is full and the rest slide; with `every` = 0 no layer slides.
std::vector<bool> read_sliding_layers(const ConfigFile& config, int64_t layers, int64_t every);

// Windows of Qwen2 and Qwen3: none unless use_sliding_window; then by layer_types, or in all layers
// from max_window_layers on.
std::vector<int64_t> read_qwen_windows(const ConfigFile& config, int64_t layers);

// Reports any config errors, else builds the model.
Result<std::unique_ptr<Model>> make_gqa_decoder(const ConfigFile& config, Builder b,
                                                const GqaDecoderConfig& c);

}  // namespace banyan
