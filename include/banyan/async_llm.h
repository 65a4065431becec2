// Many requests of a model at once, from any thread, as text or as tokens.
//
//   AsyncLlm model(*llm);
//   model.generate({.text = "Once"}, {.done = [](Result<Generation> g) { ... }});
//
// An engine thread computes and one more turns tokens into text: all sinks are called there, and
// must be quick. The engine's queue has a limit and this has none: what does not fit waits here, in
// order. While it lives nothing else may drive the Llm, which must outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "banyan/llm.h"
#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

// What came of a request at one step. Valid during the call only.
struct TextEvent {
  const TokenEvent& token;  // of the prompt too, if its logprobs were asked for
  std::string_view text;    // that the token adds: whole characters, or nothing yet
  bool counted = false;     // the token is one of the output's
};

class AsyncLlm {
 public:
  // Ends a request early: what there is becomes its result. May be called at any time while the
  // AsyncLlm lives, and more than once.
  using Cancel = std::function<void()>;

  struct TokenSinks {
    std::function<bool(const TokenEvent&)> event;  // true: enough, though the engine is not done
    std::function<void(const Error&)> failed;      // instead of a last event
  };
  struct TextSinks {
    std::function<void(const TextEvent&)> event = {};  // may be empty
    std::function<void(Result<Generation>)> done;      // once, and last
  };

  explicit AsyncLlm(Llm& llm);
  // Cancels running requests; their sinks get what there is.
  ~AsyncLlm();
  AsyncLlm(const AsyncLlm&) = delete;
  AsyncLlm& operator=(const AsyncLlm&) = delete;

  Cancel submit(GenerateRequest request, TokenSinks sinks);
  // Tokenizes and compiles the grammar on the caller's thread. Errors, those of the request among
  // them, come to `done`; the ones of the request before this returns.
  Cancel generate(const TextRequest& request, TextSinks sinks);
  // Forgets the cached prefixes that nothing uses.
  void flush_cache();
  // Forgets what EngineConfig::cache_storage keeps.
  void clear_cache_storage();

  // Asks the cache to keep this prefix while what it returns lives (Engine::hold), which may be
  // longer than this.
  using Hold = std::shared_ptr<const void>;
  Hold hold(std::vector<TokenId> tokens);

  const Llm& llm() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
