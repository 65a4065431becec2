// Any bytes as a JSON schema: compiled or refused within its budget, and the forced beginning can
// be continued.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "banyan/grammar.h"
#include "base/check.h"
#include "grammar/run/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view schema(reinterpret_cast<const char*>(data + 1), size - 1);
  banyan::GrammarLimits limits{.dfa_states_max = 500, .nodes_max = 20'000, .compile_s = 0.2};
  banyan::JsonSchemaOptions options{.strict = (data[0] & 1) != 0,
                                    .flexible_whitespace = (data[0] & 2) != 0,
                                    .disable_additional_properties = (data[0] & 4) == 0};
  auto grammar = banyan::Grammar::from_json_schema(schema, options, limits);
  if (!grammar) return 0;
  banyan::Parser parser(grammar->shared_automaton(), 16);
  banyan::ParseState state = parser.start();
  std::string forced;
  parser.forced(state, forced, 256);
  CHECK(!state.dead());
  CHECK(grammar->matches_prefix(forced));
  return 0;
}
