// Normalization of a text before pre-tokenization.
//
// Compiles a normalizer of tokenizer.json into a list of steps that rewrite a string. To add a
// kind, write a maker and add its row to the table in normalizer.cpp. Immutable after make();
// thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

// A text being normalized, and whether its first character is still the input's first.
struct NormalizedText {
  std::string text;
  bool at_start;
};

class Normalizer {
 public:
  using Step = std::function<Status(NormalizedText& text)>;

  // Leaves text unchanged.
  Normalizer() = default;
  // `json` is tokenizer.json's normalizer; `place` names it in errors.
  static Result<Normalizer> make(const Json& json, const std::string& place);

  bool empty() const { return steps_.empty(); }
  // `text` is valid UTF-8 before and after.
  Status run(NormalizedText& text) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace banyan
