// Any bytes as an EBNF grammar or a structural tag: compiled or refused within the budget.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "banyan/grammar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  banyan::GrammarLimits limits{.dfa_states_max = 500, .nodes_max = 20'000, .compile_s = 0.2};
  if (text.starts_with('{')) {
    auto grammar = banyan::Grammar::from_structural_tag(text, {}, limits);
    if (grammar) grammar->matches_prefix("text <function=x>{\"a\": 1}</function>");
    return 0;
  }
  auto grammar = banyan::Grammar::from_ebnf(text, "root", limits);
  if (grammar) grammar->matches_prefix("aaaaaaaaaaaaaaaabbbb((((1+1))))[{\"\":0}]");
  return 0;
}
