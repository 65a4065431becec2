// Decoders whose layers mix positions in two ways: most keep a recurrent state, some attend to all
// positions. Their feed-forward blocks are those of other sparse
// decoders. The families differ in names and numbers, which their files read.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "models/mixer.h"
#include "models/sparse.h"

namespace banyan {

struct HybridConfig {
  SparseConfig sparse;  // all but the mixers
  // Names in a layer: of the norms, of the layers with experts, and of others.
  std::string_view mixer_norm = "input_layernorm", mlp_norm = "post_attention_layernorm";
  std::string_view moe_scope = "mlp", dense_scope = "mlp";
  std::vector<bool> attention_layers;  // per layer: attention, or the recurrence
  MixerConfig attention;
  MixerConfig recurrence;                  // of lightning attention `layer` is filled in for each
  float residual_scale = 1;                // of what a block adds
  std::string_view recurrence_scope = "";  // its name in a layer; empty: that of attention
  // Of SwiGLU in each layer's experts and shared expert; 0, and beyond the ends: none.
  std::vector<double> limits, shared_limits;
};

class HybridLayer {
 public:
  HybridLayer(Builder b, const HybridConfig& c, int64_t index);

  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const {
    x = add(s, x, scaled(s, mixer_(s, mixer_norm_(s, x), rotation)));
    return add(s, x, scaled(s, mlp_(s, mlp_norm_(s, x))));
  }

 private:
  Tensor scaled(Step& s, Tensor x) const {
    return residual_scale_ == 1 ? x : scale(s, x, residual_scale_);
  }

  float residual_scale_;
  RmsNorm mixer_norm_, mlp_norm_;
  Mixer mixer_;
  SparseMlp mlp_;
};

// Checks that reading went well and builds the model.
Result<std::unique_ptr<Model>> make_hybrid(const ConfigFile& config, Builder b,
                                           const HybridConfig& c);

}  // namespace banyan
