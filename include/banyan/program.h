// Programs: functions that call a language model many times, with branches and control flow.
//
//   void judge(State& s, const std::string& essay) {
//     s += system("You are a strict judge.");
//     s += user("Essay: " + essay);
//     std::vector<State> branches = s.fork(2);             // they share the prefix
//     for (int i = 0; i < 2; ++i) {
//       branches[i] += user(i == 0 ? "Judge its style." : "Judge its depth.");
//       branches[i] += assistant(gen("verdict", {.max_new_tokens = 64}));
//     }
//     s += user("Verdicts:\n" + join_text(branches, "verdict") + "\nOverall?");
//     s += assistant(select("grade", {"A", "B", "C"}));
//   }
//
//   auto llm = Llm::load({.model_path = "models/x"}).value();
//   Interpreter interpreter(in_process_backend(*llm));
//   State s = interpreter.run([&](State& s) { judge(s, essay); });
//   Result<std::string> grade = s.get("grade");
//
// A State is a stream of primitives. `+=` appends one and returns immediately; the primitives of a
// state are executed in order, those of different states concurrently. Only reading a variable
// waits for it. A program's body runs on a fiber: while it waits it holds some kilobytes of stack
// and no thread, so ten thousand concurrent bodies need a few threads.
//
// When a primitive fails, those after it in its state fail with the same error, and reading one of
// their variables returns it. Branches and other programs continue.
//
// The names here are also those of C functions: `using namespace banyan` alone leaves
// `system("...")` to the C library, which `s +=` refuses to compile. Write programs inside a
// namespace or function that says `using banyan::system`.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "banyan/async_llm.h"
#include "banyan/grammar.h"
#include "banyan/llm.h"
#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

class Backend;
class Stream;      // src/program/stream.h
struct Primitive;  // src/program/primitive.h

// A piece to append to a state: text, a model call, or a sequence of them built with `+`.
class Part {
 public:
  Part(std::string text);       // NOLINT: implicit, since text is a part
  Part(std::string_view text);  // NOLINT
  Part(const char* text);       // NOLINT

  friend Part operator+(Part left, const Part& right) {
    left.primitives_.insert(left.primitives_.end(), right.primitives_.begin(),
                            right.primitives_.end());
    return left;
  }

 private:
  friend class State;
  friend struct PartMaker;  // src/program/primitive.h
  Part() = default;
  std::vector<std::shared_ptr<const Primitive>> primitives_;
};

// How `select` scores its choices, from the logprobs of their tokens after the state's text.
enum class ChoiceMethod : uint8_t {
  kTokenLengthNormalized,    // the mean over a choice's tokens
  kGreedyTokens,             // token by token; choices with the likeliest token stay
  kUnconditionalNormalized,  // mean of each token's logprob minus its unconditional logprob
};
struct SelectOptions {
  ChoiceMethod method = ChoiceMethod::kTokenLengthNormalized;
};

// Generates the model's continuation and appends it to the state's text; the variable `name` holds
// it. Without `sampling`, RunOptions::sampling applies. The seed is the program's: each branch gets
// one derived from it and from the branch's place. `options.age_s` is set by the program.
Part gen(std::string name, GenerationOptions options = {},
         std::optional<SamplingParams> sampling = {});
// Appends the likeliest of `choices`; the variable `name` holds it.
Part select(std::string name, std::vector<std::string> choices, SelectOptions options = {});
// Scores `text` here without adding it to the state: the variable is the sum of its tokens'
// logprobs, and CallInfo has each of them.
Part score(std::string name, std::string text);

// One message, formatted by the model's chat template.
Part system(Part content);
Part user(Part content);
Part assistant(Part content);
Part message(std::string role, Part content);
// The same in two calls, for a message that the program writes step by step.
Part role_begin(std::string role);
Part role_end();

// Not supported, since no model here reads images yet. The state fails with an error that names the
// file.
Part image(std::string path);
Part video(std::string path);

struct CallUsage {
  int64_t calls = 0;  // requests sent to the model; each choice of a select is one
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of prompt_tokens, those found in a cache
  int64_t completion_tokens = 0;
  // With RunOptions::speculation_tokens: gens that needed no call, and the tokens of their prompts.
  int64_t calls_saved = 0;
  int64_t prompt_tokens_saved = 0;

  CallUsage& operator+=(const CallUsage& more);
};

// One choice of a select.
struct WeighedChoice {
  std::string text;
  double weight = 0;  // its score; for kGreedyTokens the mean as well
  std::vector<TokenLogprob> tokens;
};

// How a variable was produced.
struct CallInfo {
  FinishReason finish = FinishReason::kNone;
  std::optional<std::string> matched_stop;
  CallUsage usage;
  std::vector<GeneratedToken> logprobs;  // of a score, or of a gen that requested them
  std::vector<WeighedChoice> choices;    // of a select, in the order given
  std::vector<std::string> notes;        // parts of the grammar that are not enforced
};

// Thrown by State::operator[] when there is no value to return; run() turns it into the state's
// error.
class ProgramStopped : public std::exception {
 public:
  explicit ProgramStopped(Error error) : error_(std::move(error)) {}
  const char* what() const noexcept override { return error_.message.c_str(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// A handle: copies refer to the same state. Thread-safe.
class State {
 public:
  State& operator+=(const Part& part);
  State& operator+=(int) = delete;  // the result of ::system
  // Sets a variable to the program's own text.
  void set(std::string name, std::string value);

  // Waits for a variable and returns its text. Errors: the failure that prevents it; kNotFound if
  // no primitive so far produces that name.
  Result<std::string> get(std::string_view name) const;
  // Like get(), for use in a program's body: an error throws ProgramStopped and ends the body.
  std::string operator[](std::string_view name) const;
  // Waits for a variable and returns how it was produced.
  Result<CallInfo> info(std::string_view name) const;
  // Waits for new text of a streamed variable and returns what was added since `*offset`, which it
  // advances. Empty at the variable's end.
  Result<std::string> read_more(std::string_view name, size_t* offset) const;
  bool has(std::string_view name) const;   // some primitive so far produces it
  std::vector<std::string> names() const;  // of all variables, sorted

  // Waits until everything is executed and returns all text so far. A backend that takes messages
  // instead of text renders them as "role: content" lines.
  Result<std::string> text() const;
  Result<std::vector<ChatMessage>> messages() const;

  // Returns `count` independent states that continue from here with this state's variables. The
  // prefix is computed first, once.
  std::vector<State> fork(int count);
  // Copies the branches' variables into this state: "x" of branch i becomes "x[i]". Does not wait.
  void join(std::span<const State> branches);

  // Waits until everything added is executed and, after start(), the body has returned. Returns the
  // first error.
  Status wait() const;
  // The error so far, if any.
  std::optional<Error> error() const;
  // Declares that nothing will continue from here. Ends InterpreterOptions::keep_prefixes for this
  // state once everything added is executed. Adding more starts it again.
  void release() const;
  // Cancels the whole program of this state, branches included: whatever is unfinished fails with
  // kCancelled.
  void cancel() const;
  // Usage of the whole program so far.
  CallUsage usage() const;

 private:
  friend class Interpreter;
  friend class Stream;
  explicit State(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  std::shared_ptr<Stream> stream_;
};

// Joins the texts of one variable over all branches. On error it throws like State::operator[].
std::string join_text(std::span<const State> branches, std::string_view name,
                      std::string_view separator = "\n");

// A Backend runs a program's model calls (src/program/backend.h). It is safe from every thread.
//
// This one uses a model in the same process. `llm` must outlive the backend, and nothing else may
// drive it meanwhile.
std::shared_ptr<Backend> in_process_backend(Llm& llm);
// The same, for a model that serves other requests as well.
std::shared_ptr<Backend> in_process_backend(std::shared_ptr<AsyncLlm> model);

enum class RemoteApi : uint8_t { kGenerate, kCompletions, kChat };

struct ConnectOptions {
  // kGenerate: /generate of Banyan and SGLang. kCompletions, kChat: any OpenAI-compatible server.
  RemoteApi api = RemoteApi::kGenerate;
  std::string model = {};    // OpenAI APIs; "": the first one the server lists
  std::string api_key = {};  // "": none
  // kGenerate, kCompletions: local folder of the model, whose chat template turns messages into
  // text. "": only programs that write plain text.
  std::string template_path = {};
  // kChat: the server supports `continue_final_message`, as Banyan, SGLang and vLLM do. Text may
  // then precede a gen within assistant(...).
  bool continues_answers = false;
};

// Connects to a server at "http://host:port" and asks it for its model, unless `model` names one. A
// cancelled call ends here at once; the server stops when it notices the closed connection.
Result<std::shared_ptr<Backend>> connect_backend(const std::string& url,
                                                 ConnectOptions options = {});

struct InterpreterOptions {
  // Threads for bodies and streams; 0: up to 4, at most one per processor.
  int threads = 0;
  size_t stack_bytes = 256 << 10;  // of a body's stack; untouched pages take no memory
  bool fork_hints = true;          // compute a fork's prefix before its branches start
  // In process: ask the cache to keep the prefix of every living State.
  bool keep_prefixes = true;
};

struct RunOptions {
  std::optional<SamplingParams> sampling = {};  // default for gens; none: the backend's
  std::stop_token stop = {};                    // cancels the program, like State::cancel
  // Variables grow while the model writes, for State::read_more; otherwise they appear whole.
  bool stream = false;
  // Called with each new piece of a variable, one call at a time, on a thread of the backend, which
  // waits for it. Must not wait for the program. Implies `stream`.
  std::function<void(std::string_view name, std::string_view piece)> on_text = {};
  // Distinguishes the seeds of otherwise equal runs; run_batch uses the input's index.
  uint64_t sample = 0;
  // Speculative execution for endpoints that charge for prompts, as in SGLang. A gen runs this many
  // tokens past its stop, and the extra text is kept. Later texts and gens that agree with it need
  // no call. The interpreter turns it off while it costs more than it saves. 0: off.
  int64_t speculation_tokens = 0;
};

struct BatchProgress {
  size_t done = 0, total = 0;
  size_t failed = 0;
  size_t skipped = 0;  // of `done`: already in the output file
};

// For BatchOptions::progress: writes "judge  12 of 64  3.1/s  17 s left" to stderr, rewrites it in
// place and erases it at the end. Writes nothing if stderr is not a terminal.
std::function<void(const BatchProgress&)> progress_line(std::string what);

struct BatchOptions {
  RunOptions run = {};   // its `stop` also prevents further programs from starting
  int parallelism = 64;  // concurrent programs
  // Called after each program, one call at a time.
  std::function<void(const BatchProgress&)> progress = {};
  // A JSON Lines file that receives one result per program, in completion order. Programs with a
  // result in it (and no error) are not run again. "": none.
  std::string output_path = {};
  // Returns a key of the input at `index`, so that a file made from other inputs is refused. May be
  // empty.
  std::function<std::string(size_t index)> input_key = {};
};

struct BatchResult {
  std::vector<std::pair<std::string, std::string>> variables;  // by name; those that were produced
  std::string text;
  std::optional<Error> error;
  CallUsage usage;

  // kNotFound if it was not produced.
  Result<std::string> get(std::string_view name) const;
};

// Runs programs. Thread-safe. The destructor cancels running programs and waits for them.
class Interpreter {
 public:
  using Body = std::function<void(State&)>;

  explicit Interpreter(std::shared_ptr<Backend> backend, InterpreterOptions options = {});
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Runs `body` and waits for everything that it and its branches added. Errors are in the returned
  // state.
  State run(Body body, RunOptions options = {});
  // Like run(), without waiting.
  State start(Body body, RunOptions options = {});
  // A state without a body, driven by the caller from its own thread.
  State state(RunOptions options = {});

  // Runs `body` for the indices 0 .. count - 1. The returned error concerns the output file; errors
  // of programs are in their results.
  Result<std::vector<BatchResult>> run_batch(size_t count,
                                             std::function<void(State&, size_t index)> body,
                                             BatchOptions options = {});
  // The same over a list of inputs: calls program(state, input).
  template <class Input, class Program>
    requires std::is_invocable_v<Program, State&, const Input&>
  Result<std::vector<BatchResult>> run_batch(const std::vector<Input>& inputs, Program program,
                                             BatchOptions options = {}) {
    return run_batch(
        inputs.size(), [&](State& state, size_t index) { program(state, inputs[index]); },
        std::move(options));
  }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
