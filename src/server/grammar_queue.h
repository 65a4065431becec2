// Compiles the grammars of requests on low-priority threads of their own, fairly between clients
// and with a deadline.
//
// Belongs to the I/O thread; compilation runs on the worker threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "llm/llm_parts.h"
#include "server/fields/request.h"
#include "server/http/workers.h"

namespace banyan {

// A grammar of a request that is not in the cache.
struct MissingGrammar {
  GrammarSource source;
  std::string field;  // the request's field, for errors
};

using CompiledGrammars = std::map<GrammarSource, std::shared_ptr<const CompiledGrammar>>;

class GrammarQueue {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  using Post = std::function<void(std::move_only_function<void()>)>;
  enum class End { kCompiled, kFailed, kTooLate };
  // Called with all grammars, or with the reason for failure: `error` is set if compilation failed.
  using Done =
      std::move_only_function<void(End end, CompiledGrammars compiled, const RequestError* error)>;
  // The grammars that one request waits for.
  class Wait;

  // `post` runs a closure on the I/O thread.
  GrammarQueue(const Workers::Options& options, Post post);
  ~GrammarQueue();

  // Compiles the grammars through the cache of `llm`, then calls `done` once, on the I/O thread and
  // never from within this call. Returns null when too many grammars are waiting.
  std::shared_ptr<Wait> compile(const Llm& llm, const std::string& client,
                                std::vector<MissingGrammar> grammars, SteadyTime deadline,
                                Done done);
  // The request was cancelled; `done` is not called.
  void cancel(const std::shared_ptr<Wait>& wait);
  // Fails every wait past its deadline.
  void check_deadlines(SteadyTime now);

  size_t waiting() const { return waits_.size(); }  // requests
  // For tests: occupies one thread until `work` returns.
  bool run(std::move_only_function<void()> work) { return workers_->enqueue("", std::move(work)); }

 private:
  void take(const std::shared_ptr<Wait>& wait, const MissingGrammar& grammar,
            Result<std::shared_ptr<const CompiledGrammar>> compiled);
  void finish(std::shared_ptr<Wait> wait, End end, const RequestError* error);

  Post post_;
  std::unordered_set<std::shared_ptr<Wait>> waits_;
  std::unique_ptr<Workers> workers_;
};

class GrammarQueue::Wait {
  friend class GrammarQueue;
  size_t left = 0;
  CompiledGrammars compiled;
  SteadyTime deadline;
  Done done;
  std::atomic<bool> over = false;  // its queued compilations can be skipped
};

}  // namespace banyan
