// A mixture of experts: an f32 router picks top-k experts per row; experts are MLPs, and a shared
// expert may be added. Under expert parallelism each rank has whole experts, and ranks exchange the
// rows that theirs computed. Every rank then sums a row in the same order, so the result equals
// that of a single rank bit for bit.
//
// One router class serves all families: score function, selection bias, groups, weight
// normalisation and identity experts are settings.
#pragma once

#include <optional>
#include <string_view>

#include "nn/mlp.h"
#include "ops/moe.h"

namespace banyan {

struct MoeConfig {
  int64_t hidden = 0;
  int64_t intermediate = 0;         // per expert
  int64_t shared_intermediate = 0;  // 0: no shared expert
  RouterShape router;
  bool selection_bias = false;
  bool router_bias = false;  // added to the router's logits
  bool expert_bias = false;
  bool weighs_inputs =
      false;          // routing weights scale the experts' inputs; requires top_k 1 (Llama 4)
  bool gated = true;  // false: routed and shared experts are ungated
  Glu glu, shared_glu;
  // For checkpoints that stack all experts in one tensor, `experts.gate_up_proj`: whether gate and
  // up rows alternate, and whether it is [experts, columns, rows].
  bool interleaved = false, transposed = false;
  // Names within the scope: router matrix, selection bias, projections of `experts.<i>`.
  std::string_view router_name = "gate";
  std::string_view bias_name = "gate.e_score_correction_bias";
  GatedMlpNames expert_names = {};
  std::string_view shared_name = "shared_experts";
  GatedMlpNames shared_names = {};
  // The scope of the experts, and the names of stacked tensors in it.
  std::string_view experts_name = "experts";
  std::string_view gate_up_stack = "gate_up_proj", down_stack = "down_proj";
  std::string_view shared_gate_name = "";  // gate on the shared expert's output; "": none
  // Names of a scale on the columns of the router's input, and of a factor per expert on the
  // routing weights; "": none (Gemma 4).
  std::string_view router_scale_name = "", expert_scale_name = "";
};

class Moe {
 public:
  Moe(Builder b, const MoeConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x) const { return (*this)(s, x, x); }
  // Routes by `router_x` instead of x.
  Tensor operator()(Step& s, Tensor x, Tensor router_x) const;

 private:
  RouterShape shape_;
  bool gated_;
  Glu glu_;
  PackedMatrix router_;
  Tensor router_bias_;
  Tensor bias_;                  // selection bias
  Tensor one_;                   // [1], if routing weights scale inputs
  Tensor expert_scale_;          // [experts], or empty
  UnitRange own_;                // the experts on this rank
  PackedMatrix gate_up_, down_;  // of these experts; ungated ones only have up
  Tensor gate_up_bias_, down_bias_;
  std::optional<GatedMlp> shared_;
  std::optional<SquareReluMlp> ungated_shared_;
  PackedMatrix shared_gate_;  // [1, hidden], or empty
};

}  // namespace banyan
