// The feed-forward block of a layer: dense (gated or not), a mixture of experts, or both in
// parallel. Selected by its config.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "nn/mlp.h"
#include "nn/moe.h"
#include "nn/parallel_ffn.h"

namespace banyan {

struct DenseConfig {
  int64_t hidden = 0, intermediate = 0;
  bool bias = false;
  bool gated = true;  // false: squared ReLU without a gate; names and glu are then unused
  Glu glu = {};
  GatedMlpNames names = {};
};

using FfnConfig = std::variant<DenseConfig, MoeConfig, ParallelFfnConfig>;

using AnyFfn = std::variant<GatedMlp, SquareReluMlp, Moe, ParallelFfn>;

class Ffn {
 public:
  Ffn(Builder b, const FfnConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x) const;

 private:
  AnyFfn ffn_;
};

// For display: "dense" or "moe, 8 of 256, shared 512".
std::string describe(const FfnConfig& c);

}  // namespace banyan
