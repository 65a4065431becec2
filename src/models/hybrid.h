// Decoders whose layers mix positions in two ways: most keep a recurrent state, some attend to all
// positions. Their feed-forward blocks are those of other sparse decoders. The families differ in
// names and numbers, which their files read.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "models/sparse.h"

namespace banyan {

struct HybridConfig {
  SparseConfig sparse;  // all but the mixers
  LayerStyle style = {};
  std::vector<bool> attention_layers;  // per layer: attention, or the recurrence
  MixerConfig attention;
  MixerConfig recurrence;                  // of lightning attention `layer` is filled in for each
  std::string_view recurrence_scope = "";  // its name in a layer; empty: that of attention
  // Of SwiGLU in each layer's experts and shared expert; 0, and beyond the ends: none.
  std::vector<double> limits, shared_limits;
};

// Checks that reading went well and builds the model.
Result<std::unique_ptr<Model>> make_hybrid(const ConfigFile& config, Builder b,
                                           const HybridConfig& c);

}  // namespace banyan
