// Grammars of requests on their way to being compiled: apart from reading requests, on threads that
// leave the processors to the engine, with turns for clients, and not for ever.
//
// Belongs to the I/O thread; compiling is done elsewhere.
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

// A grammar that a request asks for and that is not in the cache.
struct MissingGrammar {
  GrammarSource source;
  std::string field;  // of the request, for errors
};

using CompiledGrammars = std::map<GrammarSource, std::shared_ptr<const CompiledGrammar>>;

class GrammarQueue {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  using Post = std::function<void(std::move_only_function<void()>)>;
  enum class End { kCompiled, kFailed, kTooLate };
  // All of them, or why there is an end without: `error` where compiling one has failed.
  using Done =
      std::move_only_function<void(End end, CompiledGrammars compiled, const RequestError* error)>;
  // One request's grammars.
  class Wait;

  // `post` runs closures on the I/O thread.
  GrammarQueue(const Workers::Options& options, Post post);
  ~GrammarQueue();

  // Compiles them, by way of the cache of `llm`, and calls `done`, once, on the I/O thread and not
  // from within this. Null when too many wait.
  std::shared_ptr<Wait> compile(const Llm& llm, const std::string& client,
                                std::vector<MissingGrammar> grammars, SteadyTime deadline,
                                Done done);
  // Nobody waits for them any more; `done` is not called.
  void cancel(const std::shared_ptr<Wait>& wait);
  // Ends what is not done by its deadline.
  void check_deadlines(SteadyTime now);

  size_t waiting() const { return waits_.size(); }  // requests
  // For tests: holds up one thread until `work` returns.
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
  std::atomic<bool> over = false;  // what is still queued need not be compiled
};

}  // namespace banyan
