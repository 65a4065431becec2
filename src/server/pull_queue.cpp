#include "server/pull_queue.h"

#include <chrono>
#include <utility>

#include "base/error.h"

namespace banyan {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kWaitingMax = 8;  // per client
constexpr auto kInterval = std::chrono::milliseconds(100);

// Throttles progress reports: the first of a file, its last, and one per interval.
class Pace {
 public:
  bool takes(const PullProgress& progress) {
    auto now = SteadyClock::now();
    bool new_file = progress.digest != digest_;
    bool complete = progress.bytes_done >= progress.bytes_total;
    if (!new_file && !complete && now < next_) return false;
    digest_ = progress.digest;
    next_ = now + kInterval;
    return true;
  }

 private:
  std::string digest_;
  SteadyClock::time_point next_;
};

}  // namespace

PullQueue::PullQueue(ModelPuller puller, Post post)
    : puller_(std::move(puller)),
      post_(std::move(post)),
      workers_({.threads = 1, .queued_max = kWaitingMax}) {}

PullQueue::~PullQueue() {
  stopping_ = true;
}

PullQueue::Unwanted PullQueue::start(const std::string& client, std::string name, Sinks sinks) {
  auto unwanted = std::make_shared<std::atomic<bool>>(false);
  auto kept = std::make_shared<const Sinks>(std::move(sinks));
  bool queued = workers_.enqueue(client, [this, name = std::move(name), unwanted, kept] {
    if (!*unwanted) pull(name, unwanted, kept);
  });
  return queued ? unwanted : nullptr;
}

void PullQueue::pull(const std::string& name, const Unwanted& unwanted,
                     const std::shared_ptr<const Sinks>& sinks) {
  Pace pace;
  auto tell = [&](const PullProgress& progress) {
    if (pace.takes(progress)) post_([sinks, progress] { sinks->progress(progress); });
    return !stopping_ && !*unwanted;
  };
  Status outcome = guard([&] { return puller_(name, tell); });
  post_([sinks, outcome = std::move(outcome)] { sinks->end(outcome); });
}

}  // namespace banyan
