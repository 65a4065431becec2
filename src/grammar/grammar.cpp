// class Grammar (banyan/grammar.h): from source text in any of its languages to an automaton.
#include "banyan/grammar.h"

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "base/quote.h"
#include "grammar/automaton.h"
#include "grammar/ebnf.h"
#include "grammar/regex/regex.h"
#include "grammar/regex/rules.h"
#include "grammar/run/parser.h"
#include "grammar/run/ways.h"
#include "grammar/schema/json_schema.h"
#include "grammar/structural_tag.h"

namespace banyan {
namespace {

constexpr double kFirstState_s = 0.25;
constexpr std::string_view kAnyObject = R"({"type": "object"})";

JsonLimits json_limits(const GrammarLimits& limits) {
  return {.bytes_max = limits.source_bytes_max,
          .depth_max = limits.depth_max,
          .keys_per_object_max = 65'536};
}

// The grammar came from the caller, so errors blame the request; parse_json's errors blame a
// damaged file.
Result<Json> parse_source(std::string_view text, std::string_view what, const JsonLimits& limits) {
  Result<Json> json = parse_json(text, what, limits);
  if (!json && json.error().code == ErrorCode::kCorrupt) {
    return invalid_argument("{}", json.error().message);
  }
  return json;
}

Result<Grammar> finish(Rules rules, Budget& budget) {
  auto automaton = TRY(Automaton::build(std::move(rules), budget));
  TRY(check_ways(*automaton, budget));
  // Each request with this grammar computes its first state; the engine computes later states.
  GrammarLimits first_limits = budget.limits();
  first_limits.compile_s = std::min(first_limits.compile_s, kFirstState_s);
  Budget first(first_limits);
  bool dead = Parser(automaton).start().dead();
  TRY(first.spend("the first state", automaton->nodes()));
  if (dead) {
    return invalid_argument("the grammar accepts no text at all");
  }
  return Grammar(std::move(automaton));
}

Result<Rules> rules_of_regex(std::string_view pattern, Budget& budget) {
  Regex regex = TRY(parse_regex(pattern, RegexDialect::kRe2, budget));
  Rules rules;
  RuleId root = rules.add_rule("the pattern");
  rules.set_body(root, TRY(add_regex(rules, regex, budget)));
  return rules;
}

Result<Rules> rules_of_schema_text(std::string_view schema, const JsonSchemaOptions& options,
                                   Budget& budget) {
  Json json = TRY(parse_source(schema, "the JSON schema", json_limits(budget.limits())));
  return rules_of_json_schema(json, options, budget);
}

Result<Rules> rules_of_tag_text(std::string_view description, const JsonSchemaOptions& options,
                                Budget& budget) {
  Json json = TRY(parse_source(description, "the structural tag", json_limits(budget.limits())));
  return rules_of_structural_tag(json, options, budget);
}

Result<Rules> rules_of_choices(std::vector<std::string> choices, Budget& budget) {
  if (choices.empty()) return invalid_argument("the choices must not be empty");
  for (const std::string& choice : choices) {
    if (choice.empty()) return invalid_argument("a choice must not be the empty string");
  }
  Rules rules;
  RuleId root = rules.add_rule("the choice");
  Dfa dfa = TRY(dfa_of_texts(std::move(choices), budget));
  rules.set_body(root, rules.dfa(std::move(dfa)));
  return rules;
}

Result<Rules> rules_of_choice_list(std::string_view text, Budget& budget) {
  JsonLimits limits = {.bytes_max = budget.limits().source_bytes_max};
  Json list = TRY(parse_source(text, "the choices", limits));
  std::vector<std::string> choices;
  if (!list.is_array()) return invalid_argument("the choices must be a list of strings");
  for (Json& choice : list) {
    if (!choice.is_string()) return invalid_argument("the choices must be a list of strings");
    choices.push_back(std::move(choice.get_ref<std::string&>()));
  }
  return rules_of_choices(std::move(choices), budget);
}

// Changes the root to free text up to and including `end_tag`, followed by the old root.
Status put_free_text_first(Rules& rules, std::string_view end_tag, Budget& budget) {
  ExpressionId own = rules.call(rules.root);
  ExpressionId free = TRY(free_text_until(rules, {std::string(end_tag)}, 0, budget));
  rules.root = rules.add_rule("text, then a grammar");
  rules.set_body(rules.root, rules.sequence({free, own}));
  return {};
}

}  // namespace

Result<Grammar> Grammar::from_regex(std::string_view pattern, const GrammarLimits& limits) {
  return guard([&]() -> Result<Grammar> {
    Budget budget(limits);
    return finish(TRY(rules_of_regex(pattern, budget)), budget);
  });
}

Result<Grammar> Grammar::from_json_schema(std::string_view schema, JsonSchemaOptions options,
                                          const GrammarLimits& limits) {
  return guard([&]() -> Result<Grammar> {
    Budget budget(limits);
    return finish(TRY(rules_of_schema_text(schema, options, budget)), budget);
  });
}

Result<Grammar> Grammar::from_json_object(JsonSchemaOptions options) {
  return from_json_schema(kAnyObject, options);
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
    return finish(TRY(rules_of_choices({choices.begin(), choices.end()}, budget)), budget);
  });
}

Result<Grammar> Grammar::from_structural_tag(std::string_view description,
                                             JsonSchemaOptions options,
                                             const GrammarLimits& limits) {
  return guard([&]() -> Result<Grammar> {
    Budget budget(limits);
    return finish(TRY(rules_of_tag_text(description, options, budget)), budget);
  });
}

Result<Grammar> Grammar::after(std::string_view end_tag, const GrammarLimits& limits) const {
  return guard([&]() -> Result<Grammar> {
    Budget budget(limits);
    if (end_tag.empty()) return invalid_argument("an empty end tag");
    Rules rules = automaton_->rules();
    TRY(put_free_text_first(rules, end_tag, budget));
    return finish(std::move(rules), budget);
  });
}

Result<Grammar> Grammar::from_source(const GrammarSource& source, const GrammarLimits& limits) {
  using Kind = GrammarSource::Kind;
  return guard([&]() -> Result<Grammar> {
    Budget budget(limits);  // shared by all stages
    auto read = [&]() -> Result<Rules> {
      switch (source.kind) {
        case Kind::kRegex:
          return rules_of_regex(source.text, budget);
        case Kind::kJsonSchema:
          return rules_of_schema_text(source.text, source.json, budget);
        case Kind::kJsonObject:
          return rules_of_schema_text(kAnyObject, source.json, budget);
        case Kind::kEbnf:
          return rules_of_ebnf(source.text, "root", budget);
        case Kind::kStructuralTag:
          return rules_of_tag_text(source.text, source.json, budget);
        case Kind::kChoices:
          break;
      }
      return rules_of_choice_list(source.text, budget);
    };
    Rules rules = TRY(read());
    if (!source.after.empty()) TRY(put_free_text_first(rules, source.after, budget));
    return finish(std::move(rules), budget);
  });
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
