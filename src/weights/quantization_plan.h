// Which format each matrix is to take in memory: --quantization and --quantization-override.
//
// An embedding that is only looked up is left as it is unless an override names it: a token reads
// one row of it. An embedding that is the output head too is quantised: every token reads all of
// it. What a family derives from weights (Builder::floats), such as a router, is never quantised.
//
// One thread. Counts what each override has matched.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "quant/formats.h"

namespace banyan {

enum class MatrixUse : uint8_t {
  kMultiply,  // every token streams the whole matrix
  kLookUp,    // a token reads one row
  kBoth,      // an embedding that is also the output head
};

class QuantizationPlan {
 public:
  // Leaves everything as it is stored.
  QuantizationPlan() = default;
  // `format`: "none", "weight-only" or a format that rows can be quantised to. An override is
  // "REGEX=FORMAT", where FORMAT may also be bf16, f16 or f32, and REGEX is looked for anywhere in
  // the name of a matrix, as in "layers\.0\.", "down_proj$" or "lm_head". The last one that matches
  // decides. kInvalidArgument names what is wrong.
  static Result<QuantizationPlan> create(std::string_view format,
                                         const std::vector<std::string>& overrides);

  struct Choice {
    bool made = false;                     // false: nothing was asked for
    const WeightFormat* format = nullptr;  // null: as stored
    int64_t group = 0;                     // 0: the format's own
    bool weight_only = false;              // as stored, but activations are not quantised

    bool operator==(const Choice&) const = default;
  };
  Choice choose(const std::string& name, MatrixUse use) const;

  // kInvalidArgument when an override matched no matrix of the model.
  Status check_overrides_matched() const;

 private:
  struct Override;

  Choice choice_;
  std::vector<std::shared_ptr<Override>> overrides_;
};

}  // namespace banyan
