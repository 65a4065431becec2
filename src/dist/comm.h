// Communication between ranks during a step. All ranks make the same calls in the same order, each
// from the thread that runs its steps.
//
// Ranks broadcast and gather; there is no all-reduce. They sum gathered parts themselves
// (ops/ranks.h) in a fixed order, because the order in which libraries sum depends on sizes,
// topology and version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dist/shard.h"

namespace banyan {

// The base class exchanges nothing. It serves a single rank, and any rank while the memory of a
// step is measured.
class Comm {
 public:
  explicit Comm(Rank rank = {}) : rank_(rank) {}
  virtual ~Comm() = default;

  Rank rank() const { return rank_; }
  // False if there are no other ranks, or no data to read.
  virtual bool exchanges() const { return false; }

  // How many of the ranks are on this machine and share its memory.
  virtual int ranks_here() const { return 1; }
  // The part of the processors of the calling thread that is for this rank.
  virtual Rank processors() const { return {}; }

  // Fills `to` with the data of all ranks in rank order. Rank r contributes sizes[r] floats, which
  // it has already written to their place in `to`.
  virtual void all_gather(std::span<const int64_t> sizes, float* to);

  // Copies rank 0's `message` into that of every other rank. They may wait for hours, and use next
  // to no processor time meanwhile.
  virtual void broadcast(std::vector<std::byte>& message);

 private:
  Rank rank_;
};

// For a single rank; immutable.
Comm& lone_rank();

}  // namespace banyan
