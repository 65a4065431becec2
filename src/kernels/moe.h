// The contract of mixtures of experts: the routing of rows, the order of their choices, and the sum
// of what experts computed. See kernel_table.h for the rules of every table.
#pragma once

#include <cstdint>

#include "kernels/gemm.h"

namespace banyan {

inline constexpr int64_t kExpertsMax = 4096;

enum class RouterScore : uint8_t { kSoftmax, kSigmoid };  // softmax over all experts
enum class GroupScore : uint8_t { kMax, kTopTwoSum };     // over the group's choice scores

// Routes each row to experts with weights. A row's scores are the softmax or sigmoid of its logits;
// its choice scores add `bias`. Of `groups` equal runs of experts the best top_groups are kept, and
// among their experts the top_k by choice score are chosen, best first. Ties go to the lowest
// index; a NaN choice score counts as -infinity. Weights are the scores without bias, divided by
// their sum if `normalise`, times `scale`.
struct RouteArgs {
  Launch launch = {};
  const float* logits = nullptr;  // [rows, experts]
  int64_t logits_row_stride = 0;
  const float* bias = nullptr;               // [experts] or null
  int32_t* ids = nullptr;                    // [rows, top_k]
  float* weights = nullptr;                  // [rows, top_k]
  int64_t rows = 0, experts = 0, top_k = 0;  // experts <= kExpertsMax
  int64_t groups = 1, top_groups = 1;        // top_k experts fit into top_groups groups
  RouterScore score = RouterScore::kSoftmax;
  GroupScore group_score = GroupScore::kTopTwoSum;
  bool normalise = false;
  float scale = 1;
};

// y[r] = sum over j, ascending, of weights[r, j] * e(r, j), plus shared[r] if not null. e(r, j) is
// row places[r, j] of expert_rows, or x[r] if that is negative.
struct CombineExpertsArgs {
  Launch launch = {};
  const float* x = nullptr;  // [rows, dim]
  int64_t x_row_stride = 0;
  const float* expert_rows = nullptr;  // [any, dim] dense
  const int32_t* places = nullptr;     // [rows, top_k]
  const float* weights = nullptr;      // [rows, top_k]
  const float* shared = nullptr;       // [rows, dim] dense, or null
  float* y = nullptr;                  // [rows, dim] dense
  int64_t rows = 0, dim = 0, top_k = 0;
};

// Sorts the choices of all rows by expert. A choice of one of the first `experts` is an assignment;
// assignments are sorted by expert, and keep their order within an expert. Higher ids compute
// nothing.
struct SortExpertsArgs {
  Launch launch = {};
  const int32_t* ids = nullptr;  // [rows, top_k]
  int64_t rows = 0, top_k = 0, experts = 0;
  int32_t* begins = nullptr;   // [experts + 1] first assignment of each expert
  int32_t* places = nullptr;   // [rows, top_k] index of the assignment, -1: none
  int32_t* sources = nullptr;  // [begins[experts]] the row; room for rows * top_k
  int64_t* counts = nullptr;   // incremented per choice of each id; or null
};

}  // namespace banyan
