#include "cache/state_pools.h"

#include "base/check.h"
#include "base/error.h"

namespace banyan {
namespace {

size_t total_bytes(std::span<const StateSpec> specs, StateUnit unit) {
  size_t sum = 0;
  for (const StateSpec& spec : specs) {
    if (spec.unit == unit) sum += spec.bytes();
  }
  return sum;
}

}  // namespace

size_t state_bytes_per_token(std::span<const StateSpec> specs) {
  return total_bytes(specs, StateUnit::kPage);
}

size_t state_bytes_per_sequence(std::span<const StateSpec> specs) {
  return total_bytes(specs, StateUnit::kSlot);
}

Result<StatePools> StatePools::create(std::vector<StateSpec> specs, int page_size_tokens,
                                      int64_t pages) {
  StatePools pools;
  pools.page_size_tokens_ = page_size_tokens;
  pools.pages_ = pages;
  for (const StateSpec& spec : specs) {
    if (spec.unit != StateUnit::kPage || spec.reach != StateReach::kAll) {
      return unsupported("{}: only paged states that reach back to the start are kept yet",
                         spec.name);
    }
    if (spec.lookahead_tokens != 0) {
      return unsupported("{}: states that look {} tokens ahead are not kept yet", spec.name,
                         spec.lookahead_tokens);
    }
    pools.pools_.emplace_back(spec.bytes() * static_cast<size_t>(page_size_tokens * pages));
  }
  pools.specs_ = std::move(specs);
  return pools;
}

PageList::PageList(int64_t pages) {
  free_.reserve(static_cast<size_t>(pages));
  for (int64_t page = pages - 1; page >= 0; --page) free_.push_back(static_cast<int32_t>(page));
}

int32_t PageList::take() {
  CHECK(!free_.empty());
  int32_t page = free_.back();
  free_.pop_back();
  return page;
}

void PageList::give_back(int32_t page) {
  free_.push_back(page);
}

}  // namespace banyan
