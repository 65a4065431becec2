// Ranks that are threads of one process: what tests run models on, and the model for other kinds.
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

  // For the thread that runs rank `index`; valid while this lives.
  Comm& of(int index) { return *comms_[static_cast<size_t>(index)]; }

 private:
  class ThreadComm;

  std::barrier<> barrier_;
  std::vector<float*> shown_;  // of each rank, during a call
  std::vector<std::unique_ptr<Comm>> comms_;
};

}  // namespace banyan
