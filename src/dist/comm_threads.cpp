#include "dist/comm_threads.h"

#include <cstring>

#include "base/signed.h"
#include "base/threads/pause.h"

namespace banyan {

// With mutex_ held.
void PollingBarrier::end_phase_if_complete() {
  if (arrived_ < expected_) return;
  arrived_ = 0;
  phase_.fetch_add(1, std::memory_order_release);
  phase_.notify_all();
}

void PollingBarrier::arrive_and_wait() {
  constexpr int kPolls = 2000;  // some tens of microseconds
  uint32_t phase = 0;
  {
    std::lock_guard lock(mutex_);
    phase = phase_.load(std::memory_order_relaxed);
    ++arrived_;
    end_phase_if_complete();
  }
  for (int i = 0; i < kPolls; ++i) {
    if (phase_.load(std::memory_order_acquire) != phase) return;
    pause();
  }
  while (phase_.load(std::memory_order_acquire) == phase) phase_.wait(phase);
}

void PollingBarrier::drop(int count) {
  std::lock_guard lock(mutex_);
  expected_ -= count;
  end_phase_if_complete();
}

class ThreadRanks::ThreadComm final : public Comm {
 public:
  ThreadComm(ThreadRanks& all, Rank rank) : Comm(rank), all_(all) {}

  bool exchanges() const override { return true; }
  int ranks_here() const override { return rank().count; }
  Rank processors() const override { return rank(); }

  void all_gather(std::span<const int64_t> sizes, float* to) override {
    at(all_.shown_, rank().index) = to;
    all_.barrier_.arrive_and_wait();
    size_t begin = 0;
    for (size_t other = 0; other < sizes.size(); ++other) {
      auto size = as_size(sizes[other]);
      const float* from = all_.shown_[other] + begin;
      if (other != as_size(rank().index) && size > 0) {
        std::memcpy(to + begin, from, size * sizeof(float));
      }
      begin += size;
    }
    all_.barrier_.arrive_and_wait();  // before any rank overwrites what others read
  }

  void broadcast(std::vector<std::byte>& message) override {
    if (rank().index == 0) all_.message_ = &message;
    all_.barrier_.arrive_and_wait();
    if (rank().index != 0) message = *all_.message_;
    all_.barrier_.arrive_and_wait();
  }

 private:
  ThreadRanks& all_;
};

ThreadRanks::ThreadRanks(int count) : barrier_(count), shown_(as_size(count)) {
  for (int index = 0; index < count; ++index) {
    comms_.push_back(std::make_unique<ThreadComm>(*this, Rank{index, count}));
  }
}

void ThreadRanks::give_up(int count) {
  barrier_.drop(count);
}

ThreadRanks::~ThreadRanks() = default;

}  // namespace banyan
