// A mixture of experts: a router in f32 chooses some experts for each row, the experts are gated
// feed-forward blocks, and one that all rows share may be added. Ranks divide the experts,
// whole ones, and hand each other the rows that theirs computed: a row's sum is made of them in the
// same order on every rank, so it has the bits of one rank that has all.
//
// Routers of all families are one class with other numbers: how logits become scores, whether a
// bias helps to choose, groups, what is done to the weights, experts that return their input.
#pragma once

#include <optional>
#include <string_view>

#include "nn/mlp.h"
#include "ops/moe.h"

namespace banyan {

struct MoeConfig {
  int64_t hidden = 0;
  int64_t intermediate = 0;         // of each expert
  int64_t shared_intermediate = 0;  // 0: no shared expert
  RouterShape router;
  bool selection_bias = false;
  bool router_bias = false;  // of the router's logits
  bool expert_bias = false;
  bool weighs_inputs = false;  // weights are of what enters an expert; top_k is 1 (Llama 4)
  bool gated = true;           // false: experts, and the shared one, are blocks without a gate
  Glu glu, shared_glu;
  // Of checkpoints that have the matrices of all experts in one tensor, `experts.gate_up_proj`:
  // gates and ups in turns, and [experts, columns, rows].
  bool interleaved = false, transposed = false;
  // Names below the scope: the router's matrix, its bias, a projection of `experts.<i>`.
  std::string_view router_name = "gate";
  std::string_view bias_name = "gate.e_score_correction_bias";
  GatedMlpNames expert_names = {};
  std::string_view shared_name = "shared_experts";
  GatedMlpNames shared_names = {};
  // The scope of experts, and below it the tensors that hold the matrices of all of them.
  std::string_view experts_name = "experts";
  std::string_view gate_up_stack = "gate_up_proj", down_stack = "down_proj";
  std::string_view shared_gate_name = "";  // of what the shared expert's output is gated by
  // Of what the columns of a row are multiplied by before the router, and of a factor on the
  // weight of each expert; "": none (Gemma 4).
  std::string_view router_scale_name = "", expert_scale_name = "";
};

class Moe {
 public:
  Moe(Builder b, const MoeConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x) const { return (*this)(s, x, x); }
  // With another row for the router to choose by.
  Tensor operator()(Step& s, Tensor x, Tensor router_x) const;

 private:
  RouterShape shape_;
  bool gated_;
  Glu glu_;
  PackedMatrix router_;
  Tensor router_bias_;
  Tensor bias_;                  // of the choice
  Tensor one_;                   // [1] where weights are of inputs
  Tensor expert_scale_;          // [experts], or none
  UnitRange own_;                // the experts that this rank has
  PackedMatrix gate_up_, down_;  // of each of them; without gates its ups
  Tensor gate_up_bias_, down_bias_;
  std::optional<GatedMlp> shared_;
  std::optional<SquareReluMlp> ungated_shared_;
  PackedMatrix shared_gate_;  // [1, hidden], or none
};

}  // namespace banyan
