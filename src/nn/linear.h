// A linear layer: a weight matrix with an optional bias, and what adapters add. If ranks shard the
// columns (row parallel), each computes a partial sum and the result is all-reduced.
#pragma once

#include <initializer_list>
#include <vector>

#include "ops/adapters.h"
#include "ops/linear.h"
#include "ops/ranks.h"
#include "weights/builder.h"

namespace banyan {

class Linear {
 public:
  // Stacks `parts`, for a single fused product where one format holds them.
  Linear(Builder b, std::initializer_list<MatrixPart> parts, int64_t columns, bool bias)
      : weights_(b.stacked(parts, columns)),
        adapter_site_(b.adapter_site(parts, columns)),
        partial_(!b.rank().alone() && parts.begin()->shard.cut == Shard::Cut::kColumns) {
    if (bias) bias_ = b.vector(parts, "bias", 0);
    if (partial_ && b.rank().index > 0) bias_ = Tensor();  // add the bias once
  }

  // [T, columns] -> [T, rows of all parts]; both are this rank's shard
  Tensor operator()(Step& s, Tensor x, Workspace workspace = Workspace::kShared) const {
    Tensor y = linear(s, x, weights_, bias_, workspace);
    if (is_adapted(s, adapter_site_)) add_adapters(s, adapter_site_, x, y);
    return partial_ ? sum_over_ranks(s, y) : y;
  }
  // The same of gates and ups, which no rank sums up. What adapters add comes before the
  // activation.
  Gates gates(Step& s, Tensor x, const Glu& glu) const {
    if (weights_.size() > 1 || is_adapted(s, adapter_site_)) return {(*this)(s, x)};
    return gated_linear(s, x, weights_.front(), bias_, glu);
  }

 private:
  std::vector<PackedMatrix> weights_;  // of consecutive outputs
  Tensor bias_;
  int adapter_site_;  // -1: none
  bool partial_;
};

}  // namespace banyan
