// Runs the instances of a program, a limited number at once.
#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/signed.h"
#include "program/batch_file.h"
#include "program/stream.h"

namespace banyan {
namespace {

constexpr int kThreadsMax = 4;

int threads_of(const InterpreterOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::clamp(narrow<int>(std::thread::hardware_concurrency()), 1, kThreadsMax);
}

// Runs a body on its fiber and stores its error.
void run_body(const Interpreter::Body& body, State& state, Stream& stream) {
  std::optional<Error> error;
  try {
    body(state);
  } catch (const ProgramStopped& stopped) {
    error = stopped.error();
  } catch (const std::exception& e) {
    error = Error{ErrorCode::kExhausted, fmt::format("the program threw: {}", e.what())};
  }
  std::lock_guard lock(stream.instance()->mutex);
  if (error) stream.fail(*std::move(error));
}

// The result of a finished program.
BatchResult result_of(Stream& stream) {
  BatchResult result;
  Result<std::string> text = stream.final_text();
  if (text) result.text = *std::move(text);
  std::lock_guard lock(stream.instance()->mutex);
  for (const auto& [name, variable] : stream.variables()) {
    if (variable->done && !variable->error) result.variables.emplace_back(name, variable->text);
  }
  result.error = stream.error();
  result.usage = stream.instance()->usage;
  return result;
}

}  // namespace

Result<std::string> BatchResult::get(std::string_view name) const {
  auto found = std::ranges::find(variables, name, &std::pair<std::string, std::string>::first);
  if (found != variables.end()) return found->second;
  if (error) return std::unexpected(*error);
  return not_found("the program made no variable {}", name);
}

class Interpreter::Impl {
 public:
  Impl(std::shared_ptr<Backend> backend, InterpreterOptions options)
      : backend_(std::move(backend)), options_(options) {
    for (int i = 0; i < threads_of(options_); ++i) {
      workers_.push_back(std::make_unique<Worker>(options_.stack_bytes));
    }
  }
  ~Impl() { close(); }

  // Creates the first stream of a new instance, without a body yet.
  std::shared_ptr<Stream> open(RunOptions options);
  // Runs `body` on a fiber; calls `on_over` on the worker when the program is over.
  void launch(const std::shared_ptr<Stream>& stream, Body body, std::function<void()> on_over);

 private:
  void close();

  std::shared_ptr<Backend> backend_;
  InterpreterOptions options_;
  const std::shared_ptr<SpeculationLedger> ledger_ = std::make_shared<SpeculationLedger>();
  std::vector<std::unique_ptr<Worker>> workers_;

  std::mutex mutex_;
  size_t next_worker_ = 0;
  std::vector<std::weak_ptr<Instance>> instances_;
  size_t instances_checked_ = 64;  // number of instances at which expired ones are removed
};

std::shared_ptr<Stream> Interpreter::Impl::open(RunOptions options) {
  std::lock_guard lock(mutex_);
  Worker& worker = *workers_[next_worker_++ % workers_.size()];
  auto instance =
      std::make_shared<Instance>(*backend_, worker, ledger_, std::move(options), options_);
  if (instances_.size() >= instances_checked_) {
    std::erase_if(instances_, [](const auto& i) { return i.expired(); });
    instances_checked_ = std::max<size_t>(64, 2 * instances_.size());
  }
  instances_.push_back(instance);
  instance->watch_stop();
  return std::make_shared<Stream>(std::move(instance));
}

void Interpreter::Impl::launch(const std::shared_ptr<Stream>& stream, Body body,
                               std::function<void()> on_over) {
  Instance& instance = *stream->instance();
  {
    std::lock_guard lock(instance.mutex);
    instance.body_over = false;
    instance.on_over = std::move(on_over);
  }
  auto end = [stream] {
    std::lock_guard lock(stream->instance()->mutex);
    stream->instance()->end_body();
  };
  auto run = [stream, body = std::move(body), end](State& state) {
    {
      std::lock_guard lock(stream->instance()->mutex);
      stream->instance()->body = Fiber::current();
    }
    run_body(body, state, *stream);
    end();
  };
  auto failed = [stream, end] {
    {
      std::lock_guard lock(stream->instance()->mutex);
      stream->fail(
          {ErrorCode::kExhausted, "out of memory: cannot allocate a stack for another program"});
    }
    end();
  };
  instance.worker.start([run = std::move(run), state = State(stream)]() mutable { run(state); },
                        std::move(failed));
}

// Cancels all programs and notifies their states.
void Interpreter::Impl::close() {
  for (const auto& weak : instances_) {
    std::shared_ptr<Instance> instance = weak.lock();
    if (instance == nullptr) continue;
    instance->cancel();
    std::unique_lock lock(instance->mutex);
    while (!instance->over()) instance->idle.wait(lock);
    instance->closed = true;
  }
}

Interpreter::Interpreter(std::shared_ptr<Backend> backend, InterpreterOptions options)
    : impl_(std::make_unique<Impl>(std::move(backend), options)) {}
Interpreter::~Interpreter() = default;

State Interpreter::state(RunOptions options) {
  return State(impl_->open(std::move(options)));
}

State Interpreter::start(Body body, RunOptions options) {
  std::shared_ptr<Stream> stream = impl_->open(std::move(options));
  impl_->launch(stream, std::move(body), {});
  return State(std::move(stream));
}

State Interpreter::run(Body body, RunOptions options) {
  State state = start(std::move(body), std::move(options));
  Instance& instance = *state.stream_->instance();
  std::unique_lock lock(instance.mutex);
  while (!instance.over()) instance.idle.wait(lock);
  return state;
}

Result<std::vector<BatchResult>> Interpreter::run_batch(size_t count,
                                                        std::function<void(State&, size_t)> body,
                                                        BatchOptions options) {
  BatchFile file;
  std::vector<BatchResult> results(count);
  std::vector<bool> done(count);
  if (!options.output_path.empty()) {
    file = TRY(BatchFile::open(options.output_path, options.input_key, results, done));
  }
  BatchProgress progress{.total = count};
  progress.skipped = progress.done = as_size(std::ranges::count(done, true));

  std::mutex mutex;
  Signal changed;
  int running = 0;
  Status written;
  size_t told = progress.done;
  // Waits for finished programs and reports progress.
  auto follow = [&](std::unique_lock<std::mutex>& lock) {
    if (told == progress.done) changed.wait(lock);
    BatchProgress now = progress;
    told = now.done;
    if (!options.progress) return;
    lock.unlock();
    options.progress(now);
    lock.lock();
  };
  auto finish = [&](Stream& stream, size_t index) {
    BatchResult result = result_of(stream);
    std::unique_lock lock(mutex);
    if (file.is_open() && written) written = file.write(index, result);
    progress.failed += result.error ? 1 : 0;
    ++progress.done;
    results[index] = std::move(result);
    --running;
    changed.notify_all();
  };
  std::unique_lock lock(mutex);
  for (size_t i = 0; i < count && written; ++i) {
    if (done[i]) continue;
    while (running >= std::max(options.parallelism, 1)) follow(lock);
    if (options.run.stop.stop_requested()) {  // unstarted programs get no line in the file
      results[i].error = cancelled_error();
      ++progress.failed;
      ++progress.done;
      continue;
    }
    ++running;
    lock.unlock();
    RunOptions run = options.run;
    run.sample = options.run.sample + i;
    std::shared_ptr<Stream> stream = impl_->open(std::move(run));
    impl_->launch(
        stream, [&body, i](State& state) { body(state, i); },
        [stream, i, &finish] { finish(*stream, i); });
    lock.lock();
  }
  while (running > 0 || told < progress.done) follow(lock);
  TRY(written);
  return results;
}

}  // namespace banyan
