// A trained estimate of how likely a draft token is to be accepted: the filter of C2T (Huo et al.
// 2025, arXiv:2502.13652), a network of two layers, applied before verification. It replaces the
// counts in acceptance.h for drafters; tools/train_draft_filter.py trains one.
// Immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"

namespace banyan {

// A token of a drafter's proposal.
struct DraftToken {
  int64_t position = 0;  // among the proposed tokens
  float confidence = 1;  // the drafter's own estimate, from 0 to 1
  double joint = 1;      // product of the confidences up to this one
};

// The drafter, its token, and whether it was accepted.
using DraftObserver = std::function<void(std::string_view drafter, const DraftToken&, bool)>;

class DraftFilter {
 public:
  // Reads a safetensors file of torch's Sequential(Linear(3, n), ReLU, Linear(n, 1)): "0.weight"
  // [n, 3], "0.bias" [n], "2.weight" [1, n], "2.bias" [1], in F32.
  static Result<std::shared_ptr<const DraftFilter>> load(const std::string& path);

  // The inputs: logarithms of joint probability and confidence, and the position.
  double chance(const DraftToken& token) const;

 private:
  std::vector<float> hidden_, hidden_bias_, out_;  // [n, 3], [n], [n]
  float bias_ = 0;
};

}  // namespace banyan
