#include "cli/eval/ask_many.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "banyan/async_llm.h"
#include "base/error.h"
#include "cli/terminal/terminal.h"

namespace banyan::cli {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(100);

// A queue of finished requests, from the model's thread to the caller's.
class Ended {
 public:
  using One = std::pair<size_t, Result<Generation>>;

  void add(size_t index, Result<Generation> generation) {
    std::lock_guard lock(mutex_);
    ended_.emplace_back(index, std::move(generation));
    changed_.notify_one();
  }
  // Waits briefly for finished requests.
  std::vector<One> take() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLookInterval, [this] { return !ended_.empty(); });
    return std::exchange(ended_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<One> ended_;
};

}  // namespace

Status ask_many(Llm& llm, const ManyAsked& asked) {
  Ended ended;
  AsyncLlm model(llm);  // declared after what its sinks use
  size_t in_flight = 0;
  bool more = true;
  while (!InterruptScope::raised()) {
    while (more && in_flight < asked.at_once) {
      std::optional<ManyAsked::Request> next = TRY(asked.next());
      more = next.has_value();
      if (!more) break;
      ++in_flight;
      model.generate(next->request, {.done = [&ended, index = next->index](Result<Generation> g) {
                       ended.add(index, std::move(g));
                     }});
    }
    if (in_flight == 0) return {};
    for (auto& [index, generation] : ended.take()) {
      --in_flight;
      TRY(asked.take(index, std::move(generation)));
    }
  }
  return {};
}

}  // namespace banyan::cli
