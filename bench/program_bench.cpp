// The cost of programs themselves, on a backend that answers at once: the time of a primitive, and
// the memory of many bodies that wait at the same time.
//
//   program_bench [INSTANCES]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "program/backend.h"

namespace {

using namespace banyan;

// Answers at once, or, while `holding`, not before release().
class Echo : public Backend {
 public:
  std::string name() const override { return "echo"; }
  Result<std::string> render(const std::vector<ChatMessage>&, bool) const override {
    return std::string();
  }
  Cancel generate(GenCall, PieceSink, Done<GenResult> done) override {
    std::unique_lock lock(mutex_);
    if (holding_) {
      held_.push_back(std::move(done));
      arrived_.notify_one();
    } else {
      lock.unlock();
      done(GenResult{.text = "x", .info = {}, .token_ends = {}});
    }
    return [] {};
  }
  Cancel score(ScoreCall, Done<ScoreResult>) override { std::abort(); }
  Cancel prefill(Prompt, Done<CallUsage>) override { std::abort(); }

  void hold() { holding_ = true; }
  void wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return held_.size() >= count; });
  }
  void release() {
    std::lock_guard lock(mutex_);
    holding_ = false;
    for (auto& done : held_) done(GenResult{.text = "x", .info = {}, .token_ends = {}});
    held_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  bool holding_ = false;
  std::vector<Done<GenResult>> held_;
};

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The median of nine runs, per primitive.
double primitive_us(Interpreter& interpreter, const Interpreter::Body& body, int primitives) {
  std::vector<double> times;
  for (int run = 0; run < 9; ++run) {
    double begin = now_us();
    interpreter.run(body);
    times.push_back((now_us() - begin) / primitives);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void measure_time(Interpreter& interpreter) {
  constexpr int kCount = 2000;
  double text = primitive_us(
      interpreter,
      [](State& s) {
        for (int i = 0; i < kCount; ++i) s += "x";
      },
      kCount);
  double gens = primitive_us(
      interpreter,
      [](State& s) {
        for (int i = 0; i < kCount; ++i) s += gen("x");
      },
      kCount);
  double reads = primitive_us(
      interpreter,
      [](State& s) {
        for (int i = 0; i < kCount; ++i) {
          s += gen("x");
          s["x"];
        }
      },
      kCount);
  double branches = primitive_us(
      interpreter,
      [](State& s) {
        for (int i = 0; i < kCount / 10; ++i) {
          auto forks = s.fork(10);
          for (State& f : forks) f += gen("v");
          join_text(forks, "v");
        }
      },
      kCount);
  double programs = primitive_us(
      interpreter,
      [&](State&) {
        for (int i = 0; i < kCount; ++i) interpreter.run([](State&) {});
      },
      kCount);
  fmt::print("text             {:6.2f} us\n", text);
  fmt::print("gen              {:6.2f} us\n", gens);
  fmt::print("gen and read     {:6.2f} us\n", reads);
  fmt::print("branch with gen  {:6.2f} us\n", branches);
  fmt::print("empty program    {:6.2f} us\n", programs);
}

}  // namespace

int main(int argc, char** argv) {
  size_t instances = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10'000;
  auto echo = std::make_shared<Echo>();
  Interpreter interpreter(echo);
  measure_time(interpreter);

  int64_t before = resident_bytes();
  echo->hold();
  std::vector<State> states;
  for (size_t i = 0; i < instances; ++i) {
    states.push_back(interpreter.start([](State& s) {
      s += "Question: what is it?\nAnswer:" + gen("answer");
      s.set("copy", s["answer"]);
    }));
  }
  echo->wait_for(instances);
  int64_t held = resident_bytes() - before;
  fmt::print("{} programs that wait: {:.0f} MB, {:.1f} kB each\n", instances,
             static_cast<double>(held) / 1e6,
             static_cast<double>(held) / 1e3 / static_cast<double>(instances));
  echo->release();
  for (State& s : states) {
    if (!s.wait()) return 1;
  }
  return 0;
}
