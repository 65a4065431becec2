// What a layer computes of each position by itself: a dense block, with a gate or without, a
// mixture of experts, or both side by side, chosen by its config.
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
  bool gated = true;  // false: the square of what is positive, of which names and glu say nothing
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

// For people: "dense" and "moe, 8 of 256, shared 512".
std::string describe(const FfnConfig& c);

}  // namespace banyan
