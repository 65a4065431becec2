#include "llm/stop_regex.h"

#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "grammar/regex/regex.h"

namespace banyan {
namespace {

// For all patterns of a request. They are compiled on the thread that parses requests, where a slow
// one would delay others.
constexpr double kCompile_s = 0.1;

}  // namespace

Result<StopRegexes> compile_stop_regexes(std::span<const std::string> given) {
  if (given.empty()) return nullptr;
  if (given.size() > kStopRegexesMax) {
    return invalid_argument("{} stop regexes, the limit is {}", given.size(), kStopRegexesMax);
  }
  auto regexes = std::make_shared<std::vector<StopRegex>>();
  Budget budget({.compile_s = kCompile_s});
  for (const std::string& pattern : given) {
    if (pattern.size() > kStopRegexBytesMax) {
      return invalid_argument("a stop regex has {} bytes, the limit is {}", pattern.size(),
                              kStopRegexBytesMax);
    }
    Regex regex = TRY(parse_regex(pattern, RegexDialect::kRe2, budget));
    Dfa search = TRY(compile_regex(regex, RegexMatch::kSearch, CharacterCoding::kUtf8, budget));
    if (search.accepting(search.start())) {
      return invalid_argument(
          "stop regex {} matches the empty string, so every output would be empty", quote(pattern));
    }
    regexes->push_back({pattern, std::move(search)});
  }
  return regexes;
}

StopRegexSearch::StopRegexSearch(StopRegexes regexes) : regexes_(std::move(regexes)) {
  if (!regexes_) return;
  for (const StopRegex& regex : *regexes_) states_.push_back(regex.search.start());
}

std::optional<StopRegexSearch::Found> StopRegexSearch::take(std::string_view text) {
  for (size_t i = 0; i < text.size() && !states_.empty(); ++i) {
    for (size_t r = 0; r < states_.size(); ++r) {
      const StopRegex& regex = (*regexes_)[r];
      states_[r] = regex.search.step(states_[r], static_cast<uint8_t>(text[i]));
      if (regex.search.accepting(states_[r])) return Found{i + 1, &regex.pattern};
    }
  }
  return std::nullopt;
}

}  // namespace banyan
