// Ranks that are threads of one process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "dist/comm.h"

namespace banyan {

// A barrier whose threads poll for a while before they sleep: those of a step meet twice a layer,
// and waking one takes longer than most sums.
class PollingBarrier {
 public:
  explicit PollingBarrier(int count) : expected_(count) {}

  void arrive_and_wait();
  void drop(int count);  // so many will never arrive

 private:
  void end_phase_if_complete();

  std::mutex mutex_;
  int expected_, arrived_ = 0;
  std::atomic<uint32_t> phase_ = 0;
};

class ThreadRanks {
 public:
  explicit ThreadRanks(int count);
  ~ThreadRanks();

  // The Comm of rank `index`, for the thread that runs it; valid while this object lives.
  Comm& of(int index) { return *comms_[index]; }
  // `count` ranks never come: the others no longer wait for them.
  void give_up(int count);

 private:
  class ThreadComm;

  PollingBarrier barrier_;
  // During a call: the pointer that each rank has passed, and rank 0's message.
  std::vector<float*> shown_;
  const std::vector<std::byte>* message_ = nullptr;
  std::vector<std::unique_ptr<Comm>> comms_;
};

}  // namespace banyan
