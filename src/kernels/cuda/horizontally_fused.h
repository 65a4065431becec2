// Horizontal fusion: two independent kernels in one launch.
#pragma once

#include <algorithm>

#include "kernels/cuda/block.h"
#include "kernels/cuda/memory_range.h"

namespace banyan::cuda {

// A block as a kernel sees it that begins with the last one.
template <class Base>
class FromLast : public Base {
 public:
  BANYAN_DEVICE explicit FromLast(const Base& block) : Base(block) {}
  BANYAN_DEVICE int64_t index() const { return Base::count() - 1 - Base::index(); }
};

// Both take their items from opposite ends of the blocks, so that few items of one do not wait for
// those of the other. A kernel has
//
//   auto reads() const;   // ranges of memory
//   auto writes() const;
template <class First, class Second>
struct HorizontallyFused {
  First first;
  Second second;

  // Whether neither kernel writes what the other one reads or writes.
  static bool may_join(const First& first, const Second& second) {
    return all_apart(first.writes(), second.writes()) &&
           all_apart(first.writes(), second.reads()) && all_apart(first.reads(), second.writes());
  }
  Shape shape() const {
    Shape a = first.shape(), b = second.shape();
    return {.blocks = a.blocks + b.blocks,
            .shared_bytes = std::max(a.shared_bytes, b.shared_bytes),
            .scratch_bytes = std::max(a.scratch_bytes, b.scratch_bytes)};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    first(block);
    FromLast<Block> from_last(block);
    second(from_last);
  }
};

}  // namespace banyan::cuda
