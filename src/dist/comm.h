// What ranks exchange during a step. All ranks make the same calls in the same order, each from the
// one thread that runs its steps.
//
// There is one primitive, and no sum: sums are made of gathered parts by the ranks themselves
// (ops/ranks.h), in an order that is ours. What libraries sum with depends on sizes, placement and
// version.
#pragma once

#include <cstdint>
#include <span>

#include "dist/shard.h"

namespace banyan {

// As it is, one that exchanges nothing: the form of a rank that is alone, and of any rank while a
// step's memory is measured.
class Comm {
 public:
  explicit Comm(Rank rank = {}) : rank_(rank) {}
  virtual ~Comm() = default;

  Rank rank() const { return rank_; }
  // False: there is nobody, or nothing that could be read.
  virtual bool exchanges() const { return false; }

  // `to` becomes what all ranks have, in their order. Rank r has sizes[r] floats, which already lie
  // in `to` at the place where they belong.
  virtual void all_gather(std::span<const int64_t> sizes, float* to);

 private:
  Rank rank_;
};

// Of a rank that is alone; immutable.
Comm& lone_rank();

}  // namespace banyan
