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
#include "grammar/run/matcher.h"
#include "grammar/spelling.h"

namespace banyan {

class GrammarCompiler {
 public:
  struct Options {
    GrammarLimits limits;
    size_t bytes_max = 256 << 20;  // of what is remembered, masks included
    size_t entries_max = 4096;
  };
  using Counters = GrammarStats;

  GrammarCompiler(std::shared_ptr<const TokenVocabulary> vocabulary, TokenizeText tokenize,
                  Options options);

  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSource& source);
  // If it has been compiled and is remembered; null otherwise, also while it is being compiled.
  std::shared_ptr<const CompiledGrammar> find(const GrammarSource& source);
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
  const Spelling spelling_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<GrammarSource, std::shared_ptr<Entry>> entries_;
  std::list<GrammarSource> by_use_;  // the most recent first; those that are done
  Counters counters_;
};

}  // namespace banyan
