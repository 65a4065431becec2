#include "tensor/arena.h"

#include <algorithm>

#include "base/check.h"

namespace banyan {

static size_t whole_units(size_t bytes) {
  return (bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

void* Arena::allocate(size_t bytes) {
  size_t begin = used_;
  used_ = begin + whole_units(bytes);
  high_water_ = std::max(high_water_, used_);
  // While measuring, offset addresses by one alignment unit so that none is null.
  if (measuring_) return reinterpret_cast<void*>(begin + kAlignment);
  CHECK(used_ <= block_.size(), "step arena: {} of {} bytes", used_, block_.size());
  return block_.data() + begin;
}

void* Arena::last(size_t bytes) {
  size_t end = used_ + whole_units(bytes);
  high_water_ = std::max(high_water_, end);
  if (measuring_) return reinterpret_cast<void*>(used_ + kAlignment);
  CHECK(end <= block_.size(), "step arena: {} of {} bytes", end, block_.size());
  return block_.data() + (block_.size() - whole_units(bytes)) / kAlignment * kAlignment;
}

}  // namespace banyan
