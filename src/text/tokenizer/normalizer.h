// Normalization: what is done to a text before it is cut into pieces.
//
// A normalizer of tokenizer.json becomes a list of steps that rewrite a string. To add a kind: a
// maker, and its row in the table in normalizer.cpp. Immutable after make(); thread-safe.
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

  // None: the text stays as it is.
  Normalizer() = default;
  // `json` is tokenizer.json's normalizer; `place` names it in messages.
  static Result<Normalizer> make(const Json& json, const std::string& place);

  bool empty() const { return steps_.empty(); }
  // `text` is valid UTF-8 and stays so.
  Status run(NormalizedText& text) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace banyan
