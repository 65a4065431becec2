// Objects of mbarrier in a block's shared memory.
#pragma once

#include <cstdint>
#include <map>

#include "ptx/text.h"

namespace banyan::ptx {

struct Mbarrier {
  uint64_t count;       // arrivals that a phase needs
  uint64_t missing;     // of the present phase
  int64_t bytes = 0;    // that are expected; below 0 while copies come first
  uint64_t phase = 0;   // phases that are complete
  bool fenced = false;  // whether the asynchronous proxy sees that it was initialised

  void arrive(uint64_t arrivals);
  void complete_if_all_came();
  // Whether the last phase of this parity is complete.
  bool has_passed(uint64_t parity) const { return (phase & 1) != parity; }
};

// Those of a block, by their address.
class Mbarriers {
 public:
  static constexpr uint64_t kBytes = 8;

  void init(uint64_t address, uint64_t count);
  void invalidate(uint64_t address);
  Mbarrier& at(uint64_t address);
  void fence();
  // Fails if a store reaches one.
  void check_store(uint64_t address, uint64_t bytes) const;
  bool empty() const { return all_.empty(); }

 private:
  std::map<uint64_t, Mbarrier> all_;
};

inline void Mbarrier::arrive(uint64_t arrivals) {
  if (arrivals > missing) {
    fail("{} arrivals at an mbarrier that misses {} of {}", arrivals, missing, count);
  }
  missing -= arrivals;
  complete_if_all_came();
}

inline void Mbarrier::complete_if_all_came() {
  if (missing != 0 || bytes != 0) return;
  missing = count;
  ++phase;
}

inline void Mbarriers::init(uint64_t address, uint64_t count) {
  if (count == 0) fail("an mbarrier of no arrivals");
  auto [at, is_new] = all_.try_emplace(address, Mbarrier{.count = count, .missing = count});
  if (!is_new) fail("the mbarrier at {:#x} is initialised already", address);
}

inline void Mbarriers::invalidate(uint64_t address) {
  at(address);
  all_.erase(address);
}

inline Mbarrier& Mbarriers::at(uint64_t address) {
  auto found = all_.find(address);
  if (found == all_.end()) fail("there is no initialised mbarrier at {:#x}", address);
  return found->second;
}

inline void Mbarriers::fence() {
  for (auto& [address, barrier] : all_) barrier.fenced = true;
}

inline void Mbarriers::check_store(uint64_t address, uint64_t bytes) const {
  auto after = all_.lower_bound(address + bytes);
  if (after == all_.begin()) return;
  if (std::prev(after)->first + kBytes > address) {
    fail("a store at {:#x} reaches the mbarrier at {:#x}", address, std::prev(after)->first);
  }
}

}  // namespace banyan::ptx
