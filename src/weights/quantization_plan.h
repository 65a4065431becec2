// Selects the memory format of each matrix: --quantization and --quantization-override.
//
// An embedding used only for lookup stays as it is unless an override names it, since a token reads
// one row. An embedding that is also the output head is quantised, since every token reads all of
// it. Weights that a family derives (Builder::floats), such as a router, are never quantised.
//
// Single-threaded. Counts the matches of each override.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "quant/formats.h"

namespace banyan {

enum class MatrixUse : uint8_t {
  kMultiply,  // every token reads the whole matrix
  kLookUp,    // a token reads one row
  kBoth,      // an embedding that is also the output head
};

class QuantizationPlan {
 public:
  // Keeps every matrix as stored.
  QuantizationPlan() = default;
  // `format`: "none", "weight-only" or a format that rows can be quantised to. An override is
  // "REGEX=FORMAT"; FORMAT may also be bf16, f16 or f32. REGEX is searched in the matrix name, as
  // in "layers\.0\.", "down_proj$" or "lm_head". The last match wins. kInvalidArgument names the
  // error.
  static Result<QuantizationPlan> create(std::string_view format,
                                         const std::vector<std::string>& overrides);

  struct Choice {
    bool made = false;                     // false: no request
    const WeightFormat* format = nullptr;  // null: as stored
    int64_t group = 0;                     // 0: the format's default
    bool weight_only = false;              // as stored, without quantising activations

    bool operator==(const Choice&) const = default;
  };
  Choice choose(const std::string& name, MatrixUse use) const;

  // kInvalidArgument if an override matched no matrix of the model.
  Status check_overrides_matched() const;

 private:
  struct Override;

  Choice choice_;
  std::vector<std::shared_ptr<Override>> overrides_;
};

}  // namespace banyan
