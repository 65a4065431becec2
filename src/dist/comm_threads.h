// Ranks that are threads of one process.
#pragma once

#include <barrier>
#include <memory>
#include <vector>

#include "dist/comm.h"

namespace banyan {

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

  std::barrier<> barrier_;
  // During a call: the pointer that each rank has passed, and rank 0's message.
  std::vector<float*> shown_;
  const std::vector<std::byte>* message_ = nullptr;
  std::vector<std::unique_ptr<Comm>> comms_;
};

}  // namespace banyan
