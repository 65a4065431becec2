#include "models/ffn.h"

#include <fmt/format.h>

namespace banyan {
namespace {

std::string text_of(const DenseConfig& c) {
  return c.gated ? "dense" : "dense, no gate";
}

std::string text_of(const MoeConfig& c) {
  std::string identity, shared;
  if (c.router.identity_experts > 0) {
    identity = fmt::format(" + {} that return their input", c.router.identity_experts);
  }
  if (c.shared_intermediate > 0) {
    const char* gated = c.shared_gate_name.empty() ? "" : " gated";
    shared = fmt::format(", shared {}{}", c.shared_intermediate, gated);
  }
  return fmt::format("moe, {} of {}{}{}", c.router.top_k, c.router.experts, identity, shared);
}

std::string text_of(const ParallelFfnConfig& c) {
  return "dense + " + text_of(c.experts);
}

AnyFfn make(Builder b, const DenseConfig& c) {
  if (!c.gated) return SquareReluMlp(b, c.hidden, c.intermediate, c.bias);
  return GatedMlp(b, c.hidden, c.intermediate, c.bias, c.glu, c.names);
}

Moe make(Builder b, const MoeConfig& c) {
  return {b, c};
}

ParallelFfn make(Builder b, const ParallelFfnConfig& c) {
  return {b, c};
}

}  // namespace

Ffn::Ffn(Builder b, const FfnConfig& c)
    : ffn_(std::visit([&](const auto& f) -> AnyFfn { return make(b, f); }, c)) {}

Tensor Ffn::operator()(Step& s, Tensor x) const {
  return std::visit([&](const auto& ffn) { return ffn(s, x); }, ffn_);
}

std::string describe(const FfnConfig& c) {
  return std::visit([](const auto& ffn) { return text_of(ffn); }, c);
}

}  // namespace banyan
