// Regular expressions that stop an output, matched incrementally as its text arrives.
//
// A search takes one DFA transition per byte, for any expression and any text.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "grammar/regex/dfa.h"

namespace banyan {

struct StopRegex {
  std::string pattern;
  Dfa search;  // accepts texts that contain a match
};
// Shared by the samples of a request; null: none.
using StopRegexes = std::shared_ptr<const std::vector<StopRegex>>;

constexpr size_t kStopRegexesMax = 16, kStopRegexBytesMax = 4096;  // per request; bytes each

// RE2 syntax. kInvalidArgument: too many, too long, not a regular expression, or one that matches
// the empty text; kExhausted names what was too large.
Result<StopRegexes> compile_stop_regexes(std::span<const std::string> given);

// The search in one text. Belongs to one thread.
class StopRegexSearch {
 public:
  explicit StopRegexSearch(StopRegexes regexes);

  struct Found {
    size_t end = 0;  // bytes of the given text up to the end of the match
    const std::string* pattern = nullptr;
  };
  // Continues with the next piece; returns the match that ends first, on ties the one listed first.
  std::optional<Found> take(std::string_view text);

 private:
  StopRegexes regexes_;
  std::vector<uint32_t> states_;
};

}  // namespace banyan
