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

// What is added to a state: text, calls of the model, or a sequence of these, which `+` makes.
class Part {
 public:
  Part(std::string text);       // NOLINT: text is a part
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
  kGreedyTokens,             // token by token, the choices whose token is the likeliest stay
  kUnconditionalNormalized,  // the mean of what the text adds to each token's logprob without it
};
struct SelectOptions {
  ChoiceMethod method = ChoiceMethod::kTokenLengthNormalized;
};

// The model's continuation, as the variable `name` and as text of the state. Without `sampling`
// RunOptions::sampling counts. The seed is the program's: each branch draws from one of its own,
// which follows from this one and the branch's place. `options.age_s` is the program's.
Part gen(std::string name, GenerationOptions options = {},
         std::optional<SamplingParams> sampling = {});
// The likeliest of `choices`, the same way.
Part select(std::string name, std::vector<std::string> choices, SelectOptions options = {});
// How likely `text` is here, which does not become part of the state: the variable is the sum of
// its tokens' logprobs, and CallInfo has each.
Part score(std::string name, std::string text);

// A message, by the model's chat template.
Part system(Part content);
Part user(Part content);
Part assistant(Part content);
Part message(std::string role, Part content);
// The same in pieces, for a message that the program writes step by step.
Part role_begin(std::string role);
Part role_end();

// Not supported: no model here sees images yet. The state fails, naming the file.
Part image(std::string path);
Part video(std::string path);

struct CallUsage {
  int64_t calls = 0;  // requests that were made of the model; each choice of a select is one
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of these, the ones that were in a cache
  int64_t completion_tokens = 0;
  // By RunOptions::speculation_tokens: gens that needed no call, and their prompts' tokens.
  int64_t calls_saved = 0;
  int64_t prompt_tokens_saved = 0;

  CallUsage& operator+=(const CallUsage& more);
};

// One choice of a select.
struct WeighedChoice {
  std::string text;
  double weight = 0;  // by the method; for kGreedyTokens the mean, too
  std::vector<TokenLogprob> tokens;
};

// How a variable came to be.
struct CallInfo {
  FinishReason finish = FinishReason::kNone;
  std::optional<std::string> matched_stop;
  CallUsage usage;
  std::vector<GeneratedToken> logprobs;  // of a gen that asked for them, or of a score
  std::vector<WeighedChoice> choices;    // of a select, in its order
  std::vector<std::string> notes;        // what of the grammar is not enforced
};

// What State::operator[] throws when there is nothing to return; run() turns it into the state's
// error.
class ProgramStopped : public std::exception {
 public:
  explicit ProgramStopped(Error error) : error_(std::move(error)) {}
  const char* what() const noexcept override { return error_.message.c_str(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// A handle: copies are the same state. Safe from every thread.
class State {
 public:
  State& operator+=(const Part& part);
  State& operator+=(int) = delete;  // what ::system returns
  // Gives a variable a value of the program's own.
  void set(std::string name, std::string value);

  // A variable's text, once it is there. Errors: the one that keeps it from coming; kNotFound for a
  // name that nothing so far makes.
  Result<std::string> get(std::string_view name) const;
  // The same for a program's body, which an error ends on the spot, by ProgramStopped.
  std::string operator[](std::string_view name) const;
  // How it came to be, once it has.
  Result<CallInfo> info(std::string_view name) const;
  // What has been added to a variable since `*offset`, which moves on; waits for something. Empty
  // at the variable's end.
  Result<std::string> read_more(std::string_view name, size_t* offset) const;
  bool has(std::string_view name) const;   // some primitive so far makes it
  std::vector<std::string> names() const;  // of all variables, sorted

  // Everything so far as text, once all is executed. A backend that takes messages and no text
  // shows them as "role: content" lines.
  Result<std::string> text() const;
  Result<std::vector<ChatMessage>> messages() const;

  // `count` states that go on from here, each by itself, with this one's variables. The prefix is
  // computed first, once.
  std::vector<State> fork(int count);
  // Gives this state the branches' variables: "x" of branch i as "x[i]". Waits for nothing.
  void join(std::span<const State> branches);

  // Until all that was added is executed and, after start(), the program is over. The first error.
  Status wait() const;
  // The error so far.
  std::optional<Error> error() const;
  // Nothing is expected to go on from here: ends InterpreterOptions::keep_prefixes for this state
  // once all that was added is executed. Adding more starts it again.
  void release() const;
  // Ends the whole program that this state belongs to, its branches too: what is unfinished fails
  // with kCancelled.
  void cancel() const;
  // Of the whole program so far.
  CallUsage usage() const;

 private:
  friend class Interpreter;
  friend class Stream;
  explicit State(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  std::shared_ptr<Stream> stream_;
};

// The texts of one variable in all branches, joined; ends the program like State::operator[].
std::string join_text(std::span<const State> branches, std::string_view name,
                      std::string_view separator = "\n");

// A Backend is where calls of the model run (src/program/backend.h); safe from every thread.
//
// A model in this process. While the backend lives nothing else may drive `llm`, which must outlive
// it.
std::shared_ptr<Backend> in_process_backend(Llm& llm);
// The same, for a model that also serves other requests.
std::shared_ptr<Backend> in_process_backend(std::shared_ptr<AsyncLlm> model);

enum class RemoteApi : uint8_t { kGenerate, kCompletions, kChat };

struct ConnectOptions {
  // kGenerate: /generate of Banyan and SGLang. kCompletions, kChat: any server with OpenAI's API.
  RemoteApi api = RemoteApi::kGenerate;
  std::string model = {};    // for OpenAI's; "": the first that the server lists
  std::string api_key = {};  // "": none
  // kGenerate, kCompletions: the model's folder on this machine, whose chat template turns messages
  // into text. "": programs that write plain text only.
  std::string template_path = {};
  // kChat: the server knows `continue_final_message`, as Banyan, SGLang and vLLM do, so that text
  // may stand before a gen within assistant(...).
  bool continues_answers = false;
};

// A server at "http://host:port". Asks it for its model, unless that is named. A cancelled call
// ends here at once, and on the server when it sees that nobody listens.
Result<std::shared_ptr<Backend>> connect_backend(const std::string& url,
                                                 ConnectOptions options = {});

struct InterpreterOptions {
  int threads = 0;  // that bodies and streams run on; 0: up to 4, no more than processors
  size_t stack_bytes = 256 << 10;  // of a body; only what it touches takes memory
  bool fork_hints = true;          // computes a fork's prefix before its branches begin
  // Asks the cache to keep what a state goes on from while the State lives; in process.
  bool keep_prefixes = true;
};

struct RunOptions {
  std::optional<SamplingParams> sampling = {};  // of gens without their own; none: the backend's
  std::stop_token stop = {};                    // cancels, like State::cancel
  // Variables grow as the model writes, for State::read_more; else they come whole.
  bool stream = false;
  // Called with each new piece of a variable, one call at a time, from a thread of the backend,
  // which it holds up. Must not wait for the program. Implies `stream`.
  std::function<void(std::string_view name, std::string_view piece)> on_text = {};
  // Makes the seeds of equal runs differ; run_batch uses the input's index.
  uint64_t sample = 0;
  // For endpoints that charge for prompts: a gen runs so many tokens past its stop, and what came
  // is kept. Where the program's next texts and gens turn out to be what the model wrote, they need
  // no call. An interpreter leaves it out while it costs more than it saves. 0: off.
  int64_t speculation_tokens = 0;
};

struct BatchProgress {
  size_t done = 0, total = 0;
  size_t failed = 0;
  size_t skipped = 0;  // of those done: found in the output file
};

// For BatchOptions::progress: "judge  12 of 64  3.1/s  17 s left" on stderr, rewritten in place and
// erased in the end; nothing where stderr is no terminal.
std::function<void(const BatchProgress&)> progress_line(std::string what);

struct BatchOptions {
  RunOptions run = {};   // its stop also keeps programs from beginning
  int parallelism = 64;  // programs at once
  // Called after each program, one call at a time.
  std::function<void(const BatchProgress&)> progress = {};
  // A file of JSON lines, one result each, in the order in which programs end. Programs whose
  // results are in it already, without an error, are not run again; "" for none.
  std::string output_path = {};
  // What tells the input of an index, so that a file made from other inputs is refused; may be
  // empty.
  std::function<std::string(size_t index)> input_key = {};
};

struct BatchResult {
  std::vector<std::pair<std::string, std::string>> variables;  // those that came, by name
  std::string text;
  std::optional<Error> error;
  CallUsage usage;

  // kNotFound when it did not come.
  Result<std::string> get(std::string_view name) const;
};

// Runs programs. Safe from every thread; destruction cancels what runs and waits for it.
class Interpreter {
 public:
  using Body = std::function<void(State&)>;

  explicit Interpreter(std::shared_ptr<Backend> backend, InterpreterOptions options = {});
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Runs `body` and waits for it and for all that it and its branches added. Errors are in the
  // state.
  State run(Body body, RunOptions options = {});
  // The same without waiting.
  State start(Body body, RunOptions options = {});
  // A state without a body, for a caller who drives it from a thread of its own.
  State state(RunOptions options = {});

  // Runs `body` for the indices 0 .. count - 1. Errors: the output file's; those of programs are in
  // their results.
  Result<std::vector<BatchResult>> run_batch(size_t count,
                                             std::function<void(State&, size_t index)> body,
                                             BatchOptions options = {});
  // The same over inputs: program(state, input).
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
