// A weight matrix with an optional bias.
#pragma once

#include <initializer_list>

#include "ops/linear.h"
#include "weights/builder.h"

namespace banyan {

class Linear {
 public:
  // `parts` are stacked into one matrix, so that one product serves them all.
  Linear(Builder b, std::initializer_list<MatrixPart> parts, int64_t columns, bool bias)
      : weight_(b.matrix(parts, columns)) {
    if (bias) bias_ = b.vector(parts, "bias", 0);
  }

  // [T, columns] -> [T, rows of all parts]
  Tensor operator()(Step& s, Tensor x) const { return linear(s, x, weight_, bias_); }

 private:
  PackedMatrix weight_;
  Tensor bias_;
};

}  // namespace banyan
