// Compiles grammars for one vocabulary and remembers them: by what was asked for, least recently
// used first out, within a budget of bytes. Requests that ask for the same thing at the same time
// share one compilation.
//
// Thread-safe: compile() runs on the caller's thread, or waits for the one that is at it. What is
// evicted lives on with those that hold it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "banyan/grammar.h"
#include "grammar/matcher.h"

namespace banyan {

// What a request asks for.
struct GrammarSource {
  enum class Kind : uint8_t { kRegex, kJsonSchema, kJsonObject, kEbnf, kChoices, kStructuralTag };

  Kind kind = Kind::kJsonObject;
  std::string text;  // kChoices: a JSON list of texts
  JsonSchemaOptions json = {};
  std::string after = {};  // when not empty: free text up to this tag comes first

  Result<Grammar> compile(const GrammarLimits& limits) const;
  auto operator<=>(const GrammarSource& other) const { return key() <=> other.key(); }
  bool operator==(const GrammarSource& other) const { return key() == other.key(); }
  std::tuple<Kind, bool, bool, const std::string&, const std::string&> key() const {
    return {kind, json.strict, json.flexible_whitespace, after, text};
  }
};

class GrammarCompiler {
 public:
  struct Options {
    GrammarLimits limits;
    size_t bytes_max = 256 << 20;  // of what is remembered, masks included
    size_t entries_max = 4096;
  };
  struct Counters {
    uint64_t hits = 0, misses = 0, failures = 0, timeouts = 0, evictions = 0;
    double compile_s = 0;  // of all that was compiled
    size_t entries = 0, bytes = 0;
  };

  GrammarCompiler(std::shared_ptr<const TokenVocabulary> vocabulary, TokenizeText tokenize,
                  Options options);

  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSource& source);
  Counters counters() const;

 private:
  struct Entry {
    bool done = false;
    std::shared_ptr<const CompiledGrammar> compiled;
    Error error;  // when `compiled` is null
    std::list<GrammarSource>::iterator used;
  };

  Result<std::shared_ptr<const CompiledGrammar>> compile_new(const GrammarSource& source);
  size_t bytes_locked() const;
  void evict_locked();

  const std::shared_ptr<const TokenVocabulary> vocabulary_;
  const TokenizeText tokenize_;
  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<GrammarSource, std::shared_ptr<Entry>> entries_;
  std::list<GrammarSource> by_use_;  // the most recent first; those that are done
  Counters counters_;
};

}  // namespace banyan
