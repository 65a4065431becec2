#include "banyan/grammar.h"

#include "base/check.h"
#include "base/json.h"
#include "base/quote.h"
#include "grammar/automaton.h"
#include "grammar/ebnf.h"
#include "grammar/json_schema.h"
#include "grammar/parser.h"
#include "grammar/regex.h"
#include "grammar/regex_rules.h"
#include "grammar/structural_tag.h"

namespace banyan {
namespace {

JsonLimits json_limits(const GrammarLimits& limits) {
  return {.bytes_max = limits.source_bytes_max,
          .depth_max = limits.depth_max,
          .keys_per_object_max = 65'536};
}

// What a caller gave is the caller's to mend, where parse_json speaks of a damaged file.
Result<Json> parse_source(std::string_view text, std::string_view what, const JsonLimits& limits) {
  Result<Json> json = parse_json(text, what, limits);
  if (!json && json.error().code == ErrorCode::kCorrupt) {
    return invalid_argument("{}", json.error().message);
  }
  return json;
}

Result<Grammar> finish(Rules rules, Budget& budget) {
  auto automaton = TRY(Automaton::build(std::move(rules), budget));
  if (Parser(automaton).start().dead()) {
    return invalid_argument("the grammar accepts no text at all");
  }
  return Grammar(std::move(automaton));
}

}  // namespace

Result<Grammar> Grammar::from_regex(std::string_view pattern, const GrammarLimits& limits) {
  return guard([&]() -> Result<Grammar> {
    Budget budget(limits);
    Regex regex = TRY(parse_regex(pattern, RegexDialect::kRe2, budget));
    Rules rules;
    RuleId root = rules.add_rule("the pattern");
    rules.set_body(root, TRY(add_regex(rules, regex, budget)));
    return finish(std::move(rules), budget);
  });
}

Result<Grammar> Grammar::from_json_schema(std::string_view schema, JsonSchemaOptions options,
                                          const GrammarLimits& limits) {
  return guard([&]() -> Result<Grammar> {
    Budget budget(limits);
    Json json = TRY(parse_source(schema, "the JSON schema", json_limits(limits)));
    return finish(TRY(rules_of_json_schema(json, options, budget)), budget);
  });
}

Result<Grammar> Grammar::from_json_object(JsonSchemaOptions options) {
  return from_json_schema(R"({"type": "object"})", options);
}

Result<Grammar> Grammar::from_ebnf(std::string_view source, std::string_view root,
                                   const GrammarLimits& limits) {
  return guard([&]() -> Result<Grammar> {
    Budget budget(limits);
    return finish(TRY(rules_of_ebnf(source, root, budget)), budget);
  });
}

Result<Grammar> Grammar::from_choices(std::span<const std::string> choices,
                                      const GrammarLimits& limits) {
  return guard([&]() -> Result<Grammar> {
    Budget budget(limits);
    if (choices.empty()) return invalid_argument("a choice of no texts");
    for (const std::string& choice : choices) {
      if (choice.empty()) return invalid_argument("a choice that is the empty text");
    }
    Rules rules;
    RuleId root = rules.add_rule("the choice");
    Dfa dfa = TRY(dfa_of_texts({choices.begin(), choices.end()}, budget));
    rules.set_body(root, rules.dfa(std::move(dfa)));
    return finish(std::move(rules), budget);
  });
}

Result<Grammar> Grammar::from_structural_tag(std::string_view description,
                                             JsonSchemaOptions options,
                                             const GrammarLimits& limits) {
  return guard([&]() -> Result<Grammar> {
    Budget budget(limits);
    Json json = TRY(parse_source(description, "the structural tag", json_limits(limits)));
    return finish(TRY(rules_of_structural_tag(json, options, budget)), budget);
  });
}

Result<Grammar> Grammar::after(std::string_view end_tag) const {
  return guard([&]() -> Result<Grammar> {
    Budget budget;
    if (end_tag.empty()) return invalid_argument("an empty end tag");
    Rules rules = automaton_->rules();
    ExpressionId own = rules.call(rules.root);
    ExpressionId free = TRY(free_text_until(rules, {std::string(end_tag)}, 0, budget));
    rules.root = rules.add_rule("text, then a grammar");
    rules.set_body(rules.root, rules.sequence({free, own}));
    return finish(std::move(rules), budget);
  });
}

Result<Grammar> Grammar::from_source(const GrammarSource& source, const GrammarLimits& limits) {
  using Kind = GrammarSource::Kind;
  auto own = [&]() -> Result<Grammar> {
    switch (source.kind) {
      case Kind::kRegex:
        return from_regex(source.text, limits);
      case Kind::kJsonSchema:
        return from_json_schema(source.text, source.json, limits);
      case Kind::kJsonObject:
        return from_json_object(source.json);
      case Kind::kEbnf:
        return from_ebnf(source.text, "root", limits);
      case Kind::kStructuralTag:
        return from_structural_tag(source.text, source.json, limits);
      case Kind::kChoices:
        break;
    }
    Json list =
        TRY(parse_source(source.text, "the choices", {.bytes_max = limits.source_bytes_max}));
    std::vector<std::string> choices;
    if (!list.is_array()) return invalid_argument("the choices must be a list of texts");
    for (const Json& choice : list) {
      if (!choice.is_string()) return invalid_argument("the choices must be a list of texts");
      choices.push_back(choice);
    }
    return from_choices(choices, limits);
  };
  Grammar grammar = TRY(own());
  if (source.after.empty()) return grammar;
  return grammar.after(source.after);
}

bool Grammar::matches(std::string_view text) const {
  Parser parser(automaton_);
  ParseState state = parser.start();
  return parser.run(state, text) && state.complete;
}

bool Grammar::matches_prefix(std::string_view text) const {
  Parser parser(automaton_);
  ParseState state = parser.start();
  return parser.run(state, text);
}

const std::vector<std::string>& Grammar::notes() const {
  return automaton_->notes();
}

size_t Grammar::bytes() const {
  return automaton_->bytes();
}

}  // namespace banyan
