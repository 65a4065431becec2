// A dense MLP and a mixture of experts in parallel, each with its own norms (Gemma 4):
//
//   dense_out(dense(dense_in(x))) + experts_out(experts(experts_in(x)))
//
// The router's input is x after a weightless norm, divided by sqrt(hidden).
#pragma once

#include <string_view>

#include "nn/basic.h"
#include "nn/mlp.h"
#include "nn/moe.h"

namespace banyan {

struct ParallelFfnConfig {
  int64_t intermediate = 0;  // of the dense MLP
  Glu glu = {};
  MoeConfig experts;
  float eps = 0;  // of all norms; their names in the layer follow
  std::string_view dense_in, dense_out, experts_in, experts_out;
  std::string_view dense_scope = "mlp";
};

class ParallelFfn {
 public:
  // `b` is the layer's scope.
  ParallelFfn(Builder b, const ParallelFfnConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x) const;

 private:
  RmsNorm dense_in_, dense_out_, router_in_, experts_in_, experts_out_;
  GatedMlp dense_;
  Moe experts_;
  float router_scale_;
};

}  // namespace banyan
