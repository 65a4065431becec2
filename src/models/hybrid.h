// Decoders whose layers mix positions in different ways: most keep a recurrent state, some attend
// to all positions over latents (MLA). Their feed-forward blocks are those of other sparse
// decoders. The families differ in names and numbers, which their files read.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "models/sparse.h"
#include "nn/kda_attention.h"
#include "nn/lightning_attention.h"
#include "nn/mla_attention.h"

namespace banyan {

struct HybridConfig {
  SparseConfig sparse;                 // all but the mixers
  std::string_view moe_scope = "mlp";  // of the layers with experts; others have "mlp"
  std::vector<bool> latent_layers;     // per layer: MLA, or the recurrence
  MlaConfig mla;
  std::optional<KdaConfig> kda;              // the recurrence is one of the two
  std::optional<LightningConfig> lightning;  // `layer` is filled in for each
  // Of SwiGLU in each layer's experts and shared expert; 0, and beyond the ends: none.
  std::vector<double> limits, shared_limits;
};

class HybridLayer {
 public:
  HybridLayer(Builder b, const HybridConfig& c, int64_t index);

  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const {
    x = add(s, x, mix(s, mixer_norm_(s, x), rotation));
    return add(s, x, mlp_(s, mlp_norm_(s, x)));
  }

 private:
  Tensor mix(Step& s, Tensor x, const Rotation& rotation) const;

  RmsNorm mixer_norm_, mlp_norm_;
  std::optional<MlaAttention> mla_;
  std::optional<KdaAttention> kda_;
  std::optional<LightningAttention> lightning_;
  SparseMlp mlp_;
};

// Checks that reading went well and builds the model.
Result<std::unique_ptr<Model>> make_hybrid(const ConfigFile& config, Builder b,
                                           const HybridConfig& c);

}  // namespace banyan
