// Compiles grammars for one vocabulary and caches them by source, evicting the least recently used
// within a byte budget. Concurrent requests for the same grammar share one compilation.
//
// Thread-safe: compile() runs on the caller's thread or waits for the thread that is already
// compiling. An evicted grammar stays alive while somebody holds it.
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
    size_t bytes_max = 256 << 20;  // size of the cache, masks included
    size_t entries_max = 4096;
  };
  using Counters = GrammarStats;

  GrammarCompiler(std::shared_ptr<const TokenVocabulary> vocabulary, TokenizeText tokenize,
                  Options options);

  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSource& source);
  // The cached grammar. Null if it is not cached, or still being compiled.
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
  std::list<GrammarSource> by_use_;  // finished entries, most recently used first
  Counters counters_;
};

}  // namespace banyan
