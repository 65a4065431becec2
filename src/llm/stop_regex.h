// Regular expressions that end an output, searched for as its text comes.
//
// A search is one step of an automaton for each byte, whatever the expression and the text are.
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
  Dfa search;  // texts that contain a match
};
// Shared by the samples of a request; null: none.
using StopRegexes = std::shared_ptr<const std::vector<StopRegex>>;

constexpr size_t kStopRegexesMax = 16, kStopRegexBytesMax = 4096;  // of a request; of each

// RE2's syntax. kInvalidArgument: too many, too long, no regular expression, or one that the empty
// text matches; kExhausted names what was too large.
Result<StopRegexes> compile_stop_regexes(std::span<const std::string> given);

// One text's search. Belongs to one thread.
class StopRegexSearch {
 public:
  explicit StopRegexSearch(StopRegexes regexes);

  struct Found {
    size_t end = 0;  // bytes of the given text up to the end of the match
    const std::string* pattern = nullptr;
  };
  // Goes on with what comes next; the first match to end, of several the first listed.
  std::optional<Found> take(std::string_view text);

 private:
  StopRegexes regexes_;
  std::vector<uint32_t> states_;
};

}  // namespace banyan
