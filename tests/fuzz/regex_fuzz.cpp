// Any bytes as a pattern: compiled or refused within its budget. A text that the automaton accepts
// is also accepted byte by byte.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "banyan/grammar.h"
#include "base/check.h"
#include "grammar/regex/regex.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view pattern(reinterpret_cast<const char*>(data), size);
  banyan::GrammarLimits limits{.dfa_states_max = 500, .nodes_max = 20'000, .compile_s = 0.2};
  banyan::Budget budget(limits);
  auto ecma = banyan::parse_regex(pattern, banyan::RegexDialect::kEcma, budget);
  if (ecma) {
    auto dfa = banyan::compile_regex(*ecma, banyan::RegexMatch::kSearch,
                                     banyan::CharacterCoding::kJson, budget);
    if (dfa && !dfa->empty()) CHECK(dfa->matches(banyan::shortest_text(*dfa)));
  }
  auto dfa = banyan::dfa_of_regex(pattern, budget);
  auto grammar = banyan::Grammar::from_regex(pattern, limits);
  if (!dfa || !grammar || dfa->empty()) return 0;
  CHECK(grammar->matches(banyan::shortest_text(*dfa)));
  return 0;
}
