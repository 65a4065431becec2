// A grammar: the set of texts that an output may be. It is independent of any tokenizer;
// grammar/compiler.h combines it with a vocabulary into the engine's TokenConstraint
// (banyan/request.h).
//
//   Grammar grammar = TRY(Grammar::from_json_schema(R"({"type": "integer", "minimum": 0})"));
//   grammar.matches("42");
//
// A Grammar is a cheap handle to immutable data: copies share it, and any thread may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/grammar_source.h"
#include "banyan/status.h"

namespace banyan {

class Automaton;

// Limits on the cost of compiling a grammar. Exceeding one is an error that names what was too
// large.
struct GrammarLimits {
  size_t source_bytes_max = 4 << 20;
  int depth_max = 128;                 // nesting of groups, schemas and rule expressions
  size_t dfa_states_max = 32'768;      // of one pattern, after determinization
  size_t transitions_max = 8'000'000;  // of such a DFA: states x byte classes
  size_t nodes_max = 1'000'000;  // of a pattern before determinization, and of the whole grammar
  double compile_s = 1;          // CPU time of the compiling thread
};

class Grammar {
 public:
  // Texts that match `pattern` as a whole. RE2's syntax without word boundaries and multi-line
  // anchors.
  static Result<Grammar> from_regex(std::string_view pattern, const GrammarLimits& limits = {});
  // Values that `schema` accepts (draft 2020-12 or 7, or an OpenAPI schema object), with properties
  // in the schema's order.
  static Result<Grammar> from_json_schema(std::string_view schema, JsonSchemaOptions options = {},
                                          const GrammarLimits& limits = {});
  // Any JSON object.
  static Result<Grammar> from_json_object(JsonSchemaOptions options = {});
  // llama.cpp's GBNF, which covers the EBNF of xgrammar and SGLang. `root` names the start rule.
  static Result<Grammar> from_ebnf(std::string_view source, std::string_view root = "root",
                                   const GrammarLimits& limits = {});
  // One of `choices`, which must not be empty.
  static Result<Grammar> from_choices(std::span<const std::string> choices,
                                      const GrammarLimits& limits = {});
  // Free text in which triggers start tagged parts, described as in `response_format`: the
  // `structural_tag` of vLLM and SGLang, and xgrammar's with nested formats.
  static Result<Grammar> from_structural_tag(std::string_view description,
                                             JsonSchemaOptions options = {},
                                             const GrammarLimits& limits = {});
  // Compiles the grammar of a request.
  static Result<Grammar> from_source(const GrammarSource& source, const GrammarLimits& limits = {});
  // Free text up to and including `end_tag` (for example of a reasoning part), followed by this
  // grammar.
  Result<Grammar> after(std::string_view end_tag, const GrammarLimits& limits = {}) const;

  // matches: `text` is in the language. matches_prefix: `text` is a prefix of some text in it.
  bool matches(std::string_view text) const;
  bool matches_prefix(std::string_view text) const;

  // What was relaxed, as messages for users: "#/properties/a: uniqueItems is not enforced".
  const std::vector<std::string>& notes() const;
  size_t bytes() const;
  const Automaton& automaton() const { return *automaton_; }
  const std::shared_ptr<const Automaton>& shared_automaton() const { return automaton_; }

  explicit Grammar(std::shared_ptr<const Automaton> automaton) : automaton_(std::move(automaton)) {}

 private:
  std::shared_ptr<const Automaton> automaton_;
};

// Totals over all compilations for one model.
struct GrammarStats {
  uint64_t hits = 0;  // already compiled, or being compiled
  uint64_t misses = 0, failures = 0, timeouts = 0, evictions = 0;
  double compile_s = 0;           // total over all misses
  size_t entries = 0, bytes = 0;  // in the cache
};

}  // namespace banyan
