// Mixtures of experts: choosing experts, multiplying each with the rows that chose it, summing.
//
// The rows of a step are sorted by expert, so that one product over all experts that were chosen
// reads each once. A row's result is summed in the order of its own choices, so it depends neither
// on what else is in the step nor on how it was sorted.
//
// Tensors in, a new tensor out: each op checks shapes, takes its result from the step's arena and
// calls the kernel table. None of them changes its inputs.
//
// Shapes: T is the number of rows in the step, D a feature width.
#pragma once

#include <cstdint>

#include "ops/step.h"
#include "quant/formats.h"

namespace banyan {

struct RouterShape {
  int64_t experts = 0;           // that compute
  int64_t identity_experts = 0;  // after them: they return their input and cost nothing
  int64_t top_k = 0;
  int64_t groups = 1, top_groups = 1;
  RouterScore score = RouterScore::kSoftmax;
  GroupScore group_score = GroupScore::kTopTwoSum;
  bool normalise = false;
  float scale = 1;
  int64_t counts_begin = 0;  // of its experts in Step::expert_counts
};

// Where the rows of a step go. The arrays lie in the arena, where kernels alone read them: how many
// choices are assignments (see SortExpertsArgs) is known to kernels only, so tensors have room for
// all of them, and their last rows may be unwritten.
struct Routing {
  int64_t rows = 0, top_k = 0, experts = 0;
  int64_t assignments_max = 0;       // rows * top_k
  const int32_t* ids = nullptr;      // [rows, top_k] best first
  const float* weights = nullptr;    // [rows, top_k]
  const int32_t* places = nullptr;   // [rows, top_k] number of the assignment, -1: none
  const int32_t* sources = nullptr;  // [assignments_max] the row
  const int32_t* begins = nullptr;   // [experts + 1] the first assignment of each expert
  UnitRange own;                     // the experts that this rank has: all, unless it is changed
};

// By logits [T, experts + identity_experts] and the bias of their choice, if there is one, of as
// many.
Routing route(Step& s, Tensor logits, Tensor bias, const RouterShape& shape);

// For a router that chooses one expert a row and weighs what enters it: x [T, D] times the weights
// of r -> [T, D]. The weights of r become `one` [1], a 1.
Tensor weigh_inputs(Step& s, Tensor x, Routing& r, Tensor one);
// r with each weight times that of `factors` [experts] for its expert.
Routing scale_by_expert(Step& s, Routing r, Tensor factors);
// The rows of x [T, columns] times their experts' weights [rows, columns] -> [assignments_max,
// rows]. `bias` [experts of this rank, rows], or empty.
Tensor linear_of_rows(Step& s, Tensor x, const PackedMatrix& experts, const Routing& r,
                      Tensor bias = {});
// The same for an x [assignments_max, columns] that is sorted already.
Tensor linear_of_sorted(Step& s, Tensor x, const PackedMatrix& experts, const Routing& r,
                        Tensor bias = {});

// Fills in the rows of x [assignments, D] of experts that other ranks have.
void share_expert_rows(Step& s, Tensor x, const Routing& r);

// The weighted sum of what a row's experts made of it, expert_rows [assignments_max, D], an
// identity expert giving the row of x [T, D] itself; plus `shared` [T, D] unless it is empty -> [T,
// D].
Tensor combine_experts(Step& s, Tensor x, Tensor expert_rows, const Routing& r, Tensor shared);

}  // namespace banyan
