// The interface through which programs call a model: in this process, through a server's /generate,
// or through OpenAI's APIs. Backends differ in their input (text or messages) and features; an
// unsupported feature is an error that names it.
//
// Virtual, because the same program runs on any of them.
//
// Backends are thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/program.h"

namespace banyan {

// What a call continues, in the form the backend takes.
struct Prompt {
  std::string text;                   // unless takes_messages()
  bool from_template = false;         // the text has all special tokens it needs
  std::vector<ChatMessage> messages;  // if takes_messages()
  std::string answer;                 // start of the assistant message that follows `messages`
  double age_s = 0;                   // of the program, for backends that order calls by it
};

struct GenCall {
  Prompt prompt;
  GenerationOptions options;
  std::optional<SamplingParams> sampling;  // none: the backend's default
  bool hold = false;                       // the caller will use GenResult::hold
};

struct GenResult {
  std::string text;
  CallInfo info;
  // The end of each token in the text, if the backend reports it; else empty.
  std::vector<size_t> token_ends;
  // Keeps the prompt and the text in the backend's cache while it lives; null if unsupported.
  std::shared_ptr<const void> hold = {};
};

struct ScoreCall {
  Prompt prompt;
  std::vector<std::string> texts;  // each scored as a continuation of the prompt
  bool unconditional = false;      // also score without the prompt
};

struct ScoredText {
  // The tokens that the text adds; the first may include the end of the prompt.
  std::vector<TokenLogprob> tokens;
  std::vector<float> unconditional;  // the same tokens' logprobs without the prompt; the first is 0
};

struct ScoreResult {
  std::vector<ScoredText> texts;
  CallUsage usage;
};

class Backend {
 public:
  // Ends a call early: `done` gets the result so far, or kCancelled. May be called at any time.
  using Cancel = std::function<void()>;
  using PieceSink = std::function<void(std::string_view piece)>;
  template <class T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Backend() = default;

  // The name for errors: "the model models/x", "http://127.0.0.1:30000/v1/chat/completions".
  virtual std::string name() const = 0;
  // The backend takes messages instead of text; render() is then not called.
  virtual bool takes_messages() const { return false; }
  // Calls cost by prompt length, so generating past a stop and keeping the surplus can pay off.
  virtual bool may_speculate() const { return false; }
  // Whether a prompt may have an `answer`.
  virtual bool continues_answers() const { return true; }
  // For gens without their own sampling; none: the server decides.
  virtual std::optional<SamplingParams> default_sampling() const { return std::nullopt; }
  // Renders a conversation with the model's template; `answer`: ready for the assistant's answer.
  virtual Result<std::string> render(const std::vector<ChatMessage>& messages,
                                     bool answer) const = 0;

  // Called on a thread with a full-size stack. Sinks may be called from any thread. `done` is
  // called exactly once, last, possibly before this returns. `piece` may be empty if no pieces are
  // wanted.
  virtual Cancel generate(GenCall call, PieceSink piece, Done<GenResult> done) = 0;
  virtual Cancel score(ScoreCall call, Done<ScoreResult> done) = 0;
  // Computes the prompt so that later calls with this prefix find it in the cache; the result is
  // its usage. Does nothing if the backend cannot be asked for it.
  virtual Cancel prefill(Prompt prompt, Done<CallUsage> done) = 0;
  // Whether prefill() does anything.
  virtual bool can_prefill() const { return false; }
};

// Fails a call before it starts.
template <class T>
Backend::Cancel refuse(std::unexpected<Error> error, const std::function<void(Result<T>)>& done) {
  done(std::move(error));
  return [] {};
}

// Returns an error that names the first option unsupported in gens.
Status check_gen(const GenerationOptions& options);

}  // namespace banyan
