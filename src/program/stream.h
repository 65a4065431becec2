// The implementation of State: pending primitives, the one being executed, and the variables they
// produce.
//
// The streams of one program share an Instance. Its mutex guards everything here unless marked as
// belonging to the turn. A *turn* executes primitives on the instance's worker, one at a time per
// stream; until its call ends, nothing else touches the transcript. User code and backends are
// called without the mutex.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "program/backend.h"
#include "program/executor.h"
#include "program/primitive.h"
#include "program/remote/speculation.h"
#include "program/transcript.h"

namespace banyan {

struct Variable {
  std::string text;  // grows until done
  bool done = false;
  std::optional<Error> error;
  CallInfo info;
  Signal changed;
};

// The error of whatever a cancelled program left unfinished.
Error cancelled_error();

// Shared by the states of one program.
class Instance : public std::enable_shared_from_this<Instance> {
 public:
  Instance(Backend& backend, Worker& worker, std::shared_ptr<SpeculationLedger> ledger,
           RunOptions options, const InterpreterOptions& how)
      : backend(backend),
        worker(worker),
        ledger(std::move(ledger)),
        options(std::move(options)),
        fork_hints(how.fork_hints),
        keep_prefixes(how.keep_prefixes) {}

  // Cancels when options.stop is requested.
  void watch_stop();
  // Fails whatever is unfinished. Safe from any thread; call without the mutex.
  void cancel();
  // Call with the mutex: counts busy streams up or down, and marks the end of the body.
  void begin_busy() { ++busy; }
  void end_busy();
  void end_body();
  bool over() const { return busy == 0 && body_over; }
  // Seconds since the program started.
  double age_s() const;

  // Owned by the interpreter: not to be used once `closed`. The last reference to an instance may
  // be dropped on a thread of the backend, so the instance must not own it.
  Backend& backend;
  Worker& worker;
  const std::shared_ptr<SpeculationLedger> ledger;  // of all programs of the interpreter
  const RunOptions options;
  const bool fork_hints, keep_prefixes;

  std::mutex mutex;
  CallUsage usage;
  bool cancelled = false;
  bool closed = false;  // the interpreter was destroyed
  bool body_over = true;
  const Fiber* body = nullptr;
  int busy = 0;  // streams with pending work
  Signal idle;   // over() became true
  std::function<void()> on_over;
  std::unordered_map<const Stream*, Backend::Cancel> calls;  // in progress
  std::mutex text_mutex;                                     // for options.on_text

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::optional<std::stop_callback<std::function<void()>>> stop_callback_;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // The first stream of an instance.
  explicit Stream(std::shared_ptr<Instance> instance);

  void add(const std::vector<std::shared_ptr<const Primitive>>& primitives);
  void set(std::string name, std::string value);
  std::vector<std::shared_ptr<Stream>> fork(int count);
  void join(const std::vector<std::shared_ptr<Stream>>& branches);
  void release();

  // The blocking functions of State.
  Result<std::string> get(std::string_view name);
  Result<CallInfo> info(std::string_view name);
  Result<std::string> read_more(std::string_view name, size_t* offset);
  Result<std::string> text();
  Result<std::vector<ChatMessage>> messages();
  Status wait();
  // Fails everything unfinished. Requires the mutex.
  void fail(Error error);
  // The text so far, once the instance is over.
  Result<std::string> final_text() const { return transcript_.text(); }

  const std::shared_ptr<Instance>& instance() const { return instance_; }
  const std::optional<Error>& error() const { return error_; }  // requires the mutex
  // Requires the mutex.
  const std::map<std::string, std::shared_ptr<Variable>, std::less<>>& variables() const {
    return variables_;
  }

 private:
  struct SetVariable {
    std::string value;
  };
  struct ReadText {};
  struct ForkPoint {
    std::vector<std::shared_ptr<Stream>> branches;
  };
  struct Operation {
    std::variant<std::shared_ptr<const Primitive>, SetVariable, ReadText, ForkPoint> what;
    std::shared_ptr<Variable> variable;  // the variable it produces; may be null
  };
  // The result of executing an operation.
  enum class Step { kNext, kCalling };

  void push(Operation operation);
  void schedule();
  void turn();
  Status execute(Step& step);
  Status execute_primitive(const Primitive& primitive, Step& step);
  Status call_gen(const GenPart& part, Step& step);
  Status call_further(GenCall call, const GenPart& part);
  void generate(GenCall call, const GenPart& part, bool pieces, CallUsage before = {});
  Result<Prompt> prompt();
  Status call_select(const SelectPart& part);
  Status call_score(const ScorePart& part);
  Status fork_at(const ForkPoint& point, Step& step);
  void release_branches(const ForkPoint& point);
  template <class Start>
  void begin_call(Start start);
  template <class T>
  Backend::Done<T> resuming(std::function<Status(T&)> then);
  Status end_gen(const std::string& name, GenResult& result);
  void grow(const std::string& name, Variable& variable, std::string_view piece);
  void finish(std::string text, CallInfo info);
  void drop(const Operation& operation);
  SamplingParams seeded(SamplingParams sampling) const;
  std::shared_ptr<Variable> declare(const std::string& name);
  Result<std::shared_ptr<Variable>> find(std::string_view name) const;

  const std::shared_ptr<Instance> instance_;
  uint64_t place_ = 0;  // index among the branches; 0 for the first stream
  uint64_t forks_ = 0;
  std::deque<Operation> pending_;
  bool busy_ = false;         // a turn runs or is scheduled, a call is in progress, or it is held
  bool held_ = false;         // until the parent stream reaches the fork
  bool keeps_prefix_ = true;  // else hold_ is dropped at the end of the turn
  std::optional<Error> error_;
  std::map<std::string, std::shared_ptr<Variable>, std::less<>> variables_;
  Signal idle_;

  // Belongs to the turn:
  Operation current_;  // until its call ends
  Transcript transcript_;
  Speculation speculation_;
  bool calling_again_ = false;        // the end of a call started another for the same operation
  size_t computed_bytes_ = 0;         // part of the transcript that was a call's prompt
  std::shared_ptr<const void> hold_;  // keeps the prefix up to the last gen
};

}  // namespace banyan
