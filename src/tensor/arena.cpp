#include "tensor/arena.h"

#include <algorithm>

#include "base/check.h"

namespace banyan {

void* Arena::allocate(size_t bytes) {
  size_t begin = used_;
  used_ = begin + (bytes + kAlignment - 1) / kAlignment * kAlignment;
  high_water_ = std::max(high_water_, used_);
  // While measuring, offset addresses by one alignment unit so that none is null.
  if (measuring_) return reinterpret_cast<void*>(begin + kAlignment);
  CHECK(used_ <= block_.size(), "step arena: {} of {} bytes", used_, block_.size());
  return block_.data() + begin;
}

}  // namespace banyan
