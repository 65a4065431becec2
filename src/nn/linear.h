// A weight matrix with an optional bias. Where ranks divide its columns, each computes a part of
// every sum, and the parts are added.
#pragma once

#include <initializer_list>

#include "ops/linear.h"
#include "ops/ranks.h"
#include "weights/builder.h"

namespace banyan {

class Linear {
 public:
  // `parts` are stacked into one matrix, so that one product serves them all.
  Linear(Builder b, std::initializer_list<MatrixPart> parts, int64_t columns, bool bias)
      : weight_(b.matrix(parts, columns)),
        partial_(!b.rank().alone() && parts.begin()->shard.cut == Shard::Cut::kColumns) {
    if (bias) bias_ = b.vector(parts, "bias", 0);
    if (partial_ && b.rank().index > 0) bias_ = Tensor();  // it is in the sum once
  }

  // [T, columns] -> [T, rows of all parts], of both what this rank has
  Tensor operator()(Step& s, Tensor x) const {
    Tensor y = linear(s, x, weight_, bias_);
    return partial_ ? sum_over_ranks(s, y) : y;
  }

 private:
  PackedMatrix weight_;
  Tensor bias_;
  bool partial_;
};

}  // namespace banyan
