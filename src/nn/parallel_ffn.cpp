#include "nn/parallel_ffn.h"

#include <cmath>

namespace banyan {

ParallelFfn::ParallelFfn(Builder b, const ParallelFfnConfig& c)
    : dense_in_(b / c.dense_in, c.experts.hidden, c.eps),
      dense_out_(b / c.dense_out, c.experts.hidden, c.eps),
      router_in_(b / "router" / "norm", c.experts.hidden, c.eps, NormWeight::kNone),
      experts_in_(b / c.experts_in, c.experts.hidden, c.eps),
      experts_out_(b / c.experts_out, c.experts.hidden, c.eps),
      dense_(b / c.dense_scope, c.experts.hidden, c.intermediate, false, c.glu),
      experts_(b, c.experts),
      router_scale_(1 / std::sqrt(static_cast<float>(c.experts.hidden))) {}

Tensor ParallelFfn::operator()(Step& s, Tensor x) const {
  Tensor dense = dense_(s, dense_in_(s, x));
  Tensor chosen_by = scale(s, router_in_(s, x), router_scale_);
  Tensor experts = experts_out_(s, experts_(s, experts_in_(s, x), chosen_by));
  return add(s, dense_out_(s, dense), experts);
}

}  // namespace banyan
