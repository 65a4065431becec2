#include "program/backend.h"

#include "base/error.h"

namespace banyan {

Result<std::optional<GrammarSource>> grammar_of(const GenOptions& options) {
  using Kind = GrammarSource::Kind;
  std::optional<GrammarSource> source = options.grammar;
  int given = source ? 1 : 0;
  auto take = [&](Kind kind, const std::string& text) {
    if (text.empty()) return;
    source = GrammarSource{.kind = kind, .text = text};
    ++given;
  };
  take(Kind::kRegex, options.regex);
  take(Kind::kJsonSchema, options.json_schema);
  take(Kind::kEbnf, options.ebnf);
  if (given > 1) {
    return invalid_argument("a gen has {} of regex, json_schema, ebnf and grammar; give one",
                            given);
  }
  return source;
}

}  // namespace banyan
