// A launch while it runs: resident clusters and who gets on next.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "ptx/block.h"
#include "ptx/chance.h"
#include "ptx/later.h"
#include "ptx/machine.h"

namespace banyan::ptx {

class Grid {
 public:
  // Both must outlive it.
  Grid(const Entry& entry, const Launch& launch);
  Ran run();

  const Launch& launch;
  Chance chance;
  Later later{chance};

 private:
  void check() const;
  void start_clusters();
  void end_clusters();
  Warp* ready_warp();
  void run_slice(Warp& warp);
  bool all_wait() const;
  [[noreturn]] void fail_deadlock() const;

  const Entry& entry_;
  uint32_t next_cluster_ = 0;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<Warp*> warps_;  // of these, that have not exited
  Ran ran_;
};

}  // namespace banyan::ptx
