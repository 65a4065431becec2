// A launch while it runs: resident clusters and who gets on next.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "ptx/block.h"
#include "ptx/machine.h"

namespace banyan::ptx {

// splitmix64: what happens by chance.
class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t end) {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % end;
  }
  bool one_in(uint64_t count) { return below(count) == 0; }

 private:
  uint64_t state_;
};

class Grid {
 public:
  // Both must outlive it.
  Grid(const Entry& entry, const Launch& launch);
  Ran run();

  const Launch& launch;
  Chance chance;

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
