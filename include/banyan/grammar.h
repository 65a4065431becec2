// Grammars: what an output may look like, as text. A Grammar knows no tokenizer; the engine sees it
// as a TokenConstraint (banyan/request.h) once grammar/compiler.h has joined it with a vocabulary.
//
//   Grammar grammar = TRY(Grammar::from_json_schema(R"({"type": "integer", "minimum": 0})"));
//   grammar.matches("42");
//
// A Grammar is a cheap handle to something immutable: copies share it, any thread may use it.
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

// What compiling a grammar may cost. Beyond a limit it fails, naming what was too large.
struct GrammarLimits {
  size_t source_bytes_max = 4 << 20;
  int depth_max = 128;                 // nesting of groups, schemas, rules' expressions
  size_t dfa_states_max = 32'768;      // of one pattern, made deterministic
  size_t transitions_max = 8'000'000;  // of such an automaton: states times classes of bytes
  size_t nodes_max = 1'000'000;        // of a pattern before that, and of the whole grammar
  double compile_s = 1;                // of the thread's own time, whichever way it is spent
};

class Grammar {
 public:
  // The whole text matches `pattern`: RE2's syntax without word boundaries and multi-line anchors.
  static Result<Grammar> from_regex(std::string_view pattern, const GrammarLimits& limits = {});
  // A value that `schema` (draft 2020-12 or 7, or an OpenAPI schema object) calls valid, its
  // properties in the schema's order.
  static Result<Grammar> from_json_schema(std::string_view schema, JsonSchemaOptions options = {},
                                          const GrammarLimits& limits = {});
  // Any JSON object.
  static Result<Grammar> from_json_object(JsonSchemaOptions options = {});
  // llama.cpp's GBNF, which xgrammar's and SGLang's EBNF is a form of. `root` names the first rule.
  static Result<Grammar> from_ebnf(std::string_view source, std::string_view root = "root",
                                   const GrammarLimits& limits = {});
  // One of `choices`, which are not empty.
  static Result<Grammar> from_choices(std::span<const std::string> choices,
                                      const GrammarLimits& limits = {});
  // Free text in which triggers start tagged parts, as `response_format` describes them: vLLM's and
  // SGLang's `structural_tag`, and xgrammar's with nested formats.
  static Result<Grammar> from_structural_tag(std::string_view description,
                                             JsonSchemaOptions options = {},
                                             const GrammarLimits& limits = {});
  // What a request asks for.
  static Result<Grammar> from_source(const GrammarSource& source, const GrammarLimits& limits = {});
  // Free text up to and including `end_tag` (a reasoning part's), then this grammar.
  Result<Grammar> after(std::string_view end_tag, const GrammarLimits& limits = {}) const;

  // Whether `text` is in the language, and whether it begins a text that is.
  bool matches(std::string_view text) const;
  bool matches_prefix(std::string_view text) const;

  // What was relaxed, for people: "#/properties/a: uniqueItems is not enforced".
  const std::vector<std::string>& notes() const;
  size_t bytes() const;
  const Automaton& automaton() const { return *automaton_; }
  const std::shared_ptr<const Automaton>& shared_automaton() const { return automaton_; }

  explicit Grammar(std::shared_ptr<const Automaton> automaton) : automaton_(std::move(automaton)) {}

 private:
  std::shared_ptr<const Automaton> automaton_;
};

// Of all compilations for one model.
struct GrammarStats {
  uint64_t hits = 0;  // was compiled already, or just being so
  uint64_t misses = 0, failures = 0, timeouts = 0, evictions = 0;
  double compile_s = 0;           // for all misses
  size_t entries = 0, bytes = 0;  // that are remembered
};

}  // namespace banyan
