// Where a program's calls run. A model in this process, a server's /generate and the APIs of
// OpenAI's shape differ in what they take (text or messages) and in what they can do; what one
// cannot do is an error that names it.
//
// Virtual although interfaces are few: the same program runs on each.
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

// What a call continues, in the form that the backend takes.
struct Prompt {
  std::string text;                   // unless takes_messages()
  bool from_template = false;         // the text has the special tokens that it needs
  std::vector<ChatMessage> messages;  // if takes_messages()
  std::string answer;                 // how the assistant's message behind them begins
  double age_s = 0;                   // of the program, for backends that order calls by it
};

struct GenCall {
  Prompt prompt;
  GenerationOptions options;
  std::optional<SamplingParams> sampling;  // none: the backend's own
  bool hold = false;                       // GenResult::hold is of use
};

struct GenResult {
  std::string text;
  CallInfo info;
  // Where in the text each of its tokens ends, if the backend tells; else empty.
  std::vector<size_t> token_ends;
  // Keeps the prompt and the text in the backend's cache while it lives; null where it cannot.
  std::shared_ptr<const void> hold = {};
};

struct ScoreCall {
  Prompt prompt;
  std::vector<std::string> texts;  // each as if it followed the prompt
  bool unconditional = false;      // also without the prompt
};

struct ScoredText {
  // Of the tokens that the text adds; the first may hold the prompt's end, too.
  std::vector<TokenLogprob> tokens;
  std::vector<float> unconditional;  // of the same tokens alone; the first is 0
};

struct ScoreResult {
  std::vector<ScoredText> texts;
  CallUsage usage;
};

class Backend {
 public:
  // Ends a call early: `done` gets what there is, or kCancelled. May be called at any time.
  using Cancel = std::function<void()>;
  using PieceSink = std::function<void(std::string_view piece)>;
  template <class T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Backend() = default;

  // For errors: "the model models/x", "http://127.0.0.1:30000/v1/chat/completions".
  virtual std::string name() const = 0;
  // Messages instead of text; render() is then not called.
  virtual bool takes_messages() const { return false; }
  // Calls cost what their prompts cost: it pays to keep what was generated past a stop.
  virtual bool may_speculate() const { return false; }
  // Whether a prompt may have an `answer`.
  virtual bool continues_answers() const { return true; }
  // Of gens for which the program says nothing; none: the other side decides.
  virtual std::optional<SamplingParams> default_sampling() const { return std::nullopt; }
  // A conversation as its model's template writes it; `answer`: ready for an answer.
  virtual Result<std::string> render(const std::vector<ChatMessage>& messages,
                                     bool answer) const = 0;

  // Called on a thread with a whole stack. Sinks are called from any thread, `done` exactly once
  // and last, perhaps before the function returns. `piece` may be empty: nobody wants pieces.
  virtual Cancel generate(GenCall call, PieceSink piece, Done<GenResult> done) = 0;
  virtual Cancel score(ScoreCall call, Done<ScoreResult> done) = 0;
  // Computes the prompt, so that calls that begin with it find it; the usage is its price. Does
  // nothing where that cannot be asked for.
  virtual Cancel prefill(Prompt prompt, Done<CallUsage> done) = 0;
  // Whether prefill() does something.
  virtual bool can_prefill() const { return false; }
};

// A call that fails before it begins.
template <class T>
Backend::Cancel refuse(std::unexpected<Error> error, const std::function<void(Result<T>)>& done) {
  done(std::move(error));
  return [] {};
}

// Names the first option that no gen has.
Status check_gen(const GenerationOptions& options);

}  // namespace banyan
