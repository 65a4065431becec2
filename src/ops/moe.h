// Mixtures of experts: routing, multiplying each expert with its rows, and combining.
//
// The rows of a step are sorted by expert, so that one grouped product reads each chosen expert
// once. A row's result is summed in the order of its own choices, so it depends neither on the rest
// of the step nor on the sort.
//
// Ops take tensors and return a new tensor: each checks shapes, allocates its result from the
// step's arena and calls the kernel table. Inputs are never changed.
//
// Shapes: T is the number of rows in the step, D a feature width.
#pragma once

#include <cstdint>

#include "ops/linear.h"
#include "ops/step.h"
#include "quant/formats.h"

namespace banyan {

struct RouterShape {
  int64_t experts = 0;           // experts that compute
  int64_t identity_experts = 0;  // numbered after them; return their input at no cost
  int64_t top_k = 0;
  int64_t groups = 1, top_groups = 1;
  RouterScore score = RouterScore::kSoftmax;
  GroupScore group_score = GroupScore::kTopTwoSum;
  bool normalise = false;
  float scale = 1;
  int64_t counts_begin = 0;  // start of its experts in Step::expert_counts
};

// The routing of a step's rows. The arrays are in the arena, and only kernels read them. The number
// of assignments (see SortExpertsArgs) is known only to kernels, so tensors have room for the
// maximum, and their last rows may be unwritten.
struct Routing {
  int64_t rows = 0, top_k = 0, experts = 0;
  int64_t assignments_max = 0;       // rows * top_k
  const int32_t* ids = nullptr;      // [rows, top_k] best first
  const float* weights = nullptr;    // [rows, top_k]
  const int32_t* places = nullptr;   // [rows, top_k] index of the assignment, -1: none
  const int32_t* sources = nullptr;  // [assignments_max] row of each assignment
  const int32_t* begins = nullptr;   // [experts + 1] first assignment of each expert
  UnitRange own;                     // experts of this rank: by default all
};

// Routes by logits [T, experts + identity_experts], with an optional selection bias of the same
// width.
Routing route(Step& s, Tensor logits, Tensor bias, const RouterShape& shape);

// For a top-1 router that scales the experts' input: x [T, D] times the weights of r -> [T, D]. The
// weights of r are replaced by `one` [1], a 1.
Tensor weigh_inputs(Step& s, Tensor x, Routing& r, Tensor one);
// r with each weight multiplied by the entry of `factors` [experts] for its expert.
Routing scale_by_expert(Step& s, Routing r, Tensor factors);
// The rows of x [T, columns] times their experts' weights [rows, columns] -> [assignments_max,
// rows]. `bias` is [experts of this rank, rows] or empty.
Tensor linear_of_rows(Step& s, Tensor x, const PackedMatrix& experts, const Routing& r,
                      Tensor bias = {});
// The same of gates and ups.
Gates gates_of_rows(Step& s, Tensor x, const PackedMatrix& experts, const Routing& r, Tensor bias,
                    const Glu& glu);
// The same as linear_of_rows() for x [assignments_max, columns] that is already sorted.
Tensor linear_of_sorted(Step& s, Tensor x, const PackedMatrix& experts, const Routing& r,
                        Tensor bias = {});

// Fills in the rows of x [assignments, D] of other ranks' experts.
void share_expert_rows(Step& s, Tensor x, const Routing& r);

// The weighted sum of the results of a row's experts, expert_rows [assignments_max, D], plus
// `shared` [T, D] unless empty -> [T, D]. An identity expert returns the row of x [T, D].
Tensor combine_experts(Step& s, Tensor x, Tensor expert_rows, const Routing& r, Tensor shared);

}  // namespace banyan
