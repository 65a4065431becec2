// A state at work: the primitives that wait, the one being executed, and the variables they make.
//
// Instance is what the states of one program share, its mutex among it: it guards whatever here is
// not said to belong to the stream's turn. A *turn* is the execution of primitives: one at a time
// for a stream, on the instance's worker; from its start to the end of its call nobody else
// touches the transcript. Calls of user code and of backends are made without the mutex.
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

// What is left of a cancelled program fails with this.
Error cancelled_error();

// The states of one program.
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

  // Heeds options.stop.
  void watch_stop();
  // Fails what is unfinished. From any thread, without the mutex.
  void cancel();
  // With the mutex: one more, or one less, stream that is busy; the body is over.
  void begin_busy() { ++busy; }
  void end_busy();
  void end_body();
  bool over() const { return busy == 0 && body_over; }
  // Since the program began.
  double age_s() const;

  // The interpreter's: not to be used once `closed`. An instance may be let go of on a thread of
  // the backend's, so it must not own that.
  Backend& backend;
  Worker& worker;
  const std::shared_ptr<SpeculationLedger> ledger;  // of all of the interpreter's programs
  const RunOptions options;
  const bool fork_hints, keep_prefixes;

  std::mutex mutex;
  CallUsage usage;
  bool cancelled = false;
  bool closed = false;  // the interpreter is gone
  bool body_over = true;
  const Fiber* body = nullptr;
  int busy = 0;  // streams with something to do
  Signal idle;   // over() became true
  std::function<void()> on_over;
  std::unordered_map<const Stream*, Backend::Cancel> calls;  // that run
  std::mutex text_mutex;                                     // for options.on_text

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::optional<std::stop_callback<std::function<void()>>> stop_callback_;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // The first of an instance.
  explicit Stream(std::shared_ptr<Instance> instance);

  void add(const std::vector<std::shared_ptr<const Primitive>>& primitives);
  void set(std::string name, std::string value);
  std::vector<std::shared_ptr<Stream>> fork(int count);
  void join(const std::vector<std::shared_ptr<Stream>>& branches);
  void release();

  // What State does, blocking.
  Result<std::string> get(std::string_view name);
  Result<CallInfo> info(std::string_view name);
  Result<std::string> read_more(std::string_view name, size_t* offset);
  Result<std::string> text();
  Result<std::vector<ChatMessage>> messages();
  Status wait();
  // With the mutex; ends all that is not done.
  void fail(Error error);
  // Of what is there, after the instance is over.
  Result<std::string> final_text() const { return transcript_.text(); }

  const std::shared_ptr<Instance>& instance() const { return instance_; }
  const std::optional<Error>& error() const { return error_; }  // with the mutex
  // With the mutex.
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
    std::shared_ptr<Variable> variable;  // that it makes; may be null
  };
  // What executing an operation came to.
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
  uint64_t place_ = 0;  // among the branches; 0 for the first
  uint64_t forks_ = 0;
  std::deque<Operation> pending_;
  bool busy_ = false;         // a turn runs or is scheduled, a call is out, or it is held
  bool held_ = false;         // until the state it branches from comes to that point
  bool keeps_prefix_ = true;  // once not busy; while it is, hold_ is the turn's
  std::optional<Error> error_;
  std::map<std::string, std::shared_ptr<Variable>, std::less<>> variables_;
  Signal idle_;

  // Of the turn:
  Operation current_;  // until its call has ended
  Transcript transcript_;
  Speculation speculation_;
  bool calling_again_ = false;        // the end of a call began another for the same operation
  size_t computed_bytes_ = 0;         // of the transcript, that a call has had as its prompt
  std::shared_ptr<const void> hold_;  // of the prefix up to the last gen
};

}  // namespace banyan
