// What decoders with grouped-query attention have in common: how layers differ from each other, and
// the config keys that mean the same in all of them. Each family file reads its own differences and
// says so.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "models/config/common.h"
#include "models/sparse.h"
#include "weights/files/config_file.h"

namespace banyan {

// Where families differ on a key that config.json leaves out.
struct GqaDecoderDefaults {
  int64_t vocabulary = 0;  // 0: the key must be there
  GqaDefaults attention = {};
  int64_t context_tokens = 32768;
  double theta = 10000;
  double eps = 1e-6;
  bool gelu = false;            // of the gates, see DecoderDefaults
  bool tied = false;            // the same
  double partial = 1;           // the part of a head that turns; another than 1: the config ...
  bool partial_rotary = false;  // ... may say it, as it may here
  bool query_scale = false;     // queries may grow with the position
  // Where layers with windows turn in their own way, DecoderConfig::other_ropes[0]: the key of its
  // theta and what that is without the key.
  std::string_view local_theta_key = "";
  double local_theta = 10000;
};

// How layers differ from each other.
struct GqaLayerShape {
  int64_t window_tokens = 0;  // 0: no window
  bool rotary = true;
  int rope = 0;  // 0: DecoderConfig::rope, i: the ith of other_ropes
};

struct GqaDecoderConfig {
  SparseConfig sparse;  // moe_layers is empty in dense models
  GqaConfig attention;
  std::optional<GqaConfig> unturned;  // in layers without rotation, where it differs
  std::vector<GqaLayerShape> layers;  // one for each
  LayerStyle style = {};

  DecoderConfig& decoder() { return sparse.decoder; }
};

// The common keys. Problems stick to `config`.
GqaDecoderConfig read_gqa_decoder(const ConfigFile& config, const Builder& b,
                                  const GqaDecoderDefaults& defaults);

// Of each layer, 0 for none.
void set_window(GqaDecoderConfig& c, int64_t window);
void set_windows(GqaDecoderConfig& c, const std::vector<int64_t>& windows);
// The same window in each layer that slides, which then turns as other_ropes say, if they do.
void set_windows(GqaDecoderConfig& c, const std::vector<bool>& sliding, int64_t window);

// Which layers slide: by `layer_types`, of which every entry is full_attention or
// sliding_attention; without the key every `every`th is full, none where `every` is 0.
std::vector<bool> read_sliding_layers(const ConfigFile& config, int64_t layers, int64_t every);

// The windows of Qwen2 and Qwen3: off unless use_sliding_window, then by layer_types, or from
// max_window_layers on.
std::vector<int64_t> read_qwen_windows(const ConfigFile& config, int64_t layers);

// Checks that reading went well and builds the model.
Result<std::unique_ptr<Model>> make_gqa_decoder(const ConfigFile& config, Builder b,
                                                const GqaDecoderConfig& c);

}  // namespace banyan
