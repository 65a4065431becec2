// A dense block and a mixture of experts side by side, each with norms of its own (Gemma 4):
//
//   dense_out(dense(dense_in(x))) + experts_out(experts(experts_in(x)))
//
// where the router chooses by x normed without weights and over sqrt(hidden).
#pragma once

#include <string_view>

#include "nn/basic.h"
#include "nn/mlp.h"
#include "nn/moe.h"

namespace banyan {

struct ParallelFfnConfig {
  int64_t intermediate = 0;  // of the dense block
  Glu glu = {};
  MoeConfig experts;
  float eps = 0;  // of the norms, whose names in the layer are these
  std::string_view dense_in, dense_out, experts_in, experts_out;
  std::string_view dense_scope = "mlp";
};

class ParallelFfn {
 public:
  // `b` is the scope of the layer.
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
