// API speculative execution (SGLang paper, section 5): what a call generated past its stop, kept
// for the texts and gens that follow.
//
// A gen is served from it only if a call of its own would have given the same: all text in between
// was what the model wrote, the sampling is the same, and the gen's end (a stop string, the length,
// the end of the text) lies in what is kept. One per stream.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/backend.h"

namespace banyan {

class Speculation {
 public:
  // Whether a gen of these options can be made longer, and be served.
  static bool fits(const GenOptions& options);
  // The options of a call that runs `tokens` further.
  static GenOptions longer(GenOptions options, int64_t tokens);

  // What a call by longer(options) gave; `behind` is how much of it the state has already.
  void keep(GenResult result, const GenOptions& options, size_t behind);
  void forget() { kept_.reset(); }
  // The program's next text: what is kept goes on behind it, or is forgotten.
  void pass(std::string_view text);
  // The gen's result, if it is there. What is kept then goes on behind its text.
  std::optional<GenResult> serve(const GenOptions& options);

 private:
  struct Kept {
    GenResult result;
    SamplingParams sampling;
    size_t at = 0;
  };

  // Tokens from `at` on that reach into what lies before `end`; their bytes where nothing tells.
  size_t tokens_until(size_t end) const;

  std::optional<Kept> kept_;
};

}  // namespace banyan
