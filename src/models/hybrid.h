// Hybrid decoders: most layers have a recurrent mixer, some have attention. MLPs are dense or MoE
// as in other sparse decoders. Family files supply only names and numbers.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "models/sparse.h"

namespace banyan {

struct HybridConfig {
  SparseConfig sparse;  // everything but the mixers
  LayerStyle style = {};
  std::vector<bool> attention_layers;  // per layer; false: recurrent
  MixerConfig attention;
  MixerConfig recurrence;                  // lightning attention's `layer` is filled in per layer
  std::string_view recurrence_scope = "";  // scope in the layer; "": same as attention
  // Clamp of SwiGLU in each layer's routed and shared experts; 0 or past the end: none.
  std::vector<double> limits, shared_limits;
};

// Reports any config errors, else builds the model.
Result<std::unique_ptr<Model>> make_hybrid(const ConfigFile& config, Builder b,
                                           const HybridConfig& c);

}  // namespace banyan
