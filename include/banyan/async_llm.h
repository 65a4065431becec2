// Runs many requests of one model concurrently, as text or as tokens.
//
//   AsyncLlm model(*llm);
//   model.generate({.text = "Once"}, {.done = [](Result<Generation> g) { ... }});
//
// Threads: submit, generate, flush_cache and hold may be called from any thread. One thread runs
// the engine and another detokenizes; all sinks run on these two and must return quickly.
//
// An AsyncLlm has an unbounded queue: requests that do not fit in the engine's bounded queue wait
// here, in order. The Llm must outlive it, and nothing else may drive that Llm meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "banyan/llm.h"
#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

// The result of one step for one request. Valid during the call only.
struct TextEvent {
  const TokenEvent& token;  // prompt tokens included, if their logprobs were requested
  std::string_view text;    // text added by the token: whole characters, possibly none
  bool counted = false;     // the token is part of the output
};

class AsyncLlm {
 public:
  // Ends a request early; the output so far becomes its result. May be called at any time while the
  // AsyncLlm lives, and more than once.
  using Cancel = std::function<void()>;

  struct TokenSinks {
    std::function<bool(const TokenEvent&)> event;  // true: stop, although the engine is not done
    std::function<void(const Error&)> failed;      // replaces the last event
  };
  struct TextSinks {
    std::function<void(const TextEvent&)> event = {};  // may be empty
    std::function<void(Result<Generation>)> done;      // called once, last
  };

  explicit AsyncLlm(Llm& llm);
  // Cancels running requests; each sink gets the output so far.
  ~AsyncLlm();
  AsyncLlm(const AsyncLlm&) = delete;
  AsyncLlm& operator=(const AsyncLlm&) = delete;

  Cancel submit(GenerateRequest request, TokenSinks sinks);
  // Tokenizes and compiles the grammar on the caller's thread. Every error goes to `done`. An
  // invalid request is reported there before this returns.
  Cancel generate(const TextRequest& request, TextSinks sinks);
  // Evicts every cached prefix that is not in use.
  void flush_cache();
  // Removes what EngineConfig::cache_storage keeps.
  void clear_cache_storage();

  // Asks the cache to keep this prefix while the returned Hold lives (Engine::hold). A Hold may
  // outlive the AsyncLlm.
  using Hold = std::shared_ptr<const void>;
  Hold hold(std::vector<TokenId> tokens);

  const Llm& llm() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
