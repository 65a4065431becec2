// Ranks that are threads of one process: used by tests, and the template for other transports.
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

 private:
  class ThreadComm;

  std::barrier<> barrier_;
  std::vector<float*> shown_;  // pointer passed by each rank, during a call
  std::vector<std::unique_ptr<Comm>> comms_;
};

}  // namespace banyan
