#include "grammar/compiler.h"

#include <chrono>

namespace banyan {

GrammarCompiler::GrammarCompiler(std::shared_ptr<const TokenVocabulary> vocabulary,
                                 TokenizeText tokenize, Options options)
    : vocabulary_(std::move(vocabulary)),
      tokenize_(std::move(tokenize)),
      options_(options),
      spelling_(vocabulary_) {}

Result<std::shared_ptr<const CompiledGrammar>> GrammarCompiler::compile(
    const GrammarSource& source) {
  std::unique_lock lock(mutex_);
  auto it = entries_.find(source);
  if (it == entries_.end()) {
    ++counters_.misses;
    auto entry = std::make_shared<Entry>();
    entries_.emplace(source, entry);
    lock.unlock();
    auto begin = std::chrono::steady_clock::now();
    auto compiled = compile_new(source);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    lock.lock();
    counters_.compile_s += took.count();
    entry->done = true;
    if (compiled) {
      entry->compiled = *compiled;
      by_use_.push_front(source);
      entry->used = by_use_.begin();
      evict_locked();
    } else {
      // Waiting requests get the error; later requests may try again.
      ++counters_.failures;
      if (took.count() >= options_.limits.compile_s) ++counters_.timeouts;
      entry->error = compiled.error();
      entries_.erase(source);
    }
    changed_.notify_all();
    return compiled;
  }
  ++counters_.hits;
  std::shared_ptr<Entry> entry = it->second;
  changed_.wait(lock, [&] { return entry->done; });
  if (!entry->compiled) return std::unexpected(entry->error);
  // It may have been evicted while we waited.
  auto still = entries_.find(source);
  if (still != entries_.end() && still->second == entry) {
    by_use_.splice(by_use_.begin(), by_use_, entry->used);
  }
  return entry->compiled;
}

std::shared_ptr<const CompiledGrammar> GrammarCompiler::find(const GrammarSource& source) {
  std::lock_guard lock(mutex_);
  auto it = entries_.find(source);
  if (it == entries_.end() || !it->second->compiled) return nullptr;
  ++counters_.hits;
  by_use_.splice(by_use_.begin(), by_use_, it->second->used);
  return it->second->compiled;
}

Result<std::shared_ptr<const CompiledGrammar>> GrammarCompiler::compile_new(
    const GrammarSource& source) {
  Grammar grammar = TRY(Grammar::from_source(source, options_.limits));
  TRY(spelling_.check(grammar.shared_automaton()));
  return std::make_shared<const CompiledGrammar>(std::move(grammar), vocabulary_, tokenize_,
                                                 source);
}

size_t GrammarCompiler::bytes_locked() const {
  size_t bytes = 0;
  for (const GrammarSource& source : by_use_) {
    bytes += entries_.at(source)->compiled->bytes() + 2 * source.text.size();
  }
  return bytes;
}

void GrammarCompiler::evict_locked() {
  size_t bytes = bytes_locked();
  while (by_use_.size() > 1 &&
         (bytes > options_.bytes_max || by_use_.size() > options_.entries_max)) {
    const GrammarSource& oldest = by_use_.back();
    bytes -= std::min(bytes, entries_.at(oldest)->compiled->bytes() + 2 * oldest.text.size());
    entries_.erase(oldest);
    by_use_.pop_back();
    ++counters_.evictions;
  }
}

GrammarCompiler::Counters GrammarCompiler::counters() const {
  std::lock_guard lock(mutex_);
  Counters counters = counters_;
  counters.entries = by_use_.size();
  counters.bytes = bytes_locked();
  return counters;
}

}  // namespace banyan
