#include "cache/state_pools.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

namespace banyan {
namespace {

bool in_class(const StateSpec& spec, StateUnit unit, StateReach reach) {
  return spec.unit == unit && spec.reach == reach;
}

size_t total_bytes(std::span<const StateSpec> specs, StateUnit unit, StateReach reach) {
  size_t sum = 0;
  for (const StateSpec& spec : specs) {
    if (in_class(spec, unit, reach)) sum += spec.bytes();
  }
  return sum;
}

Status check_kept(const StateSpec& spec) {
  bool paged = in_class(spec, StateUnit::kPage, StateReach::kAll) ||
               in_class(spec, StateUnit::kPage, StateReach::kWindow);
  bool slotted = in_class(spec, StateUnit::kSlot, StateReach::kPoint);
  if (!paged && !slotted) {
    return unsupported("{}: states of this unit and reach are not kept yet", spec.name);
  }
  if (spec.lookahead_tokens != 0) {
    return unsupported("{}: states that look {} tokens ahead are not kept yet", spec.name,
                       spec.lookahead_tokens);
  }
  if (slotted && spec.dtype != DType::kF32) {
    return unsupported("{}: slots of {} are not kept yet, only of F32", spec.name,
                       dtype_name(spec.dtype));
  }
  CHECK(spec.reach != StateReach::kWindow || spec.window_tokens > 0, "{}", spec.name);
  return {};
}

int64_t tokens_kept(const StateSpec& spec, int page_size_tokens, const PoolSizes& sizes) {
  if (spec.unit == StateUnit::kSlot) return sizes.slots;
  bool all = spec.reach == StateReach::kAll;
  return (all ? sizes.pages : sizes.window_pages) * page_size_tokens;
}

}  // namespace

size_t state_bytes_per_token(std::span<const StateSpec> specs) {
  return total_bytes(specs, StateUnit::kPage, StateReach::kAll);
}

size_t state_bytes_per_window_token(std::span<const StateSpec> specs) {
  return total_bytes(specs, StateUnit::kPage, StateReach::kWindow);
}

size_t state_bytes_per_slot(std::span<const StateSpec> specs) {
  return total_bytes(specs, StateUnit::kSlot, StateReach::kPoint);
}

Result<StatePools> StatePools::create(std::vector<StateSpec> specs, int page_size_tokens,
                                      const PoolSizes& sizes, const DeviceQueue& queue) {
  StatePools pools;
  pools.page_size_tokens_ = page_size_tokens;
  pools.sizes_ = sizes;
  for (const StateSpec& spec : specs) {
    TRY(check_kept(spec));
    auto entries = static_cast<size_t>(tokens_kept(spec, page_size_tokens, sizes));
    pools.pools_.emplace_back(queue, spec.bytes() * entries);
  }
  pools.specs_ = std::move(specs);
  return pools;
}

void StatePools::copy_page(int32_t from, int32_t to, int64_t tokens) {
  CHECK(std::min(from, to) >= 0 && std::max(from, to) < sizes_.pages, "{} to {}", from, to);
  copy_rows(StateReach::kAll, from, to, tokens);
}

void StatePools::copy_window_page(int32_t from, int32_t to, int64_t tokens) {
  CHECK(std::min(from, to) >= 0 && std::max(from, to) < sizes_.window_pages, "{} to {}", from, to);
  copy_rows(StateReach::kWindow, from, to, tokens);
}

void StatePools::copy_rows(StateReach reach, int32_t from, int32_t to, int64_t tokens) {
  CHECK(from != to && tokens >= 0 && tokens <= page_size_tokens_, "{} rows of page {} to {}",
        tokens, from, to);
  for (size_t i = 0; i < specs_.size(); ++i) {
    const StateSpec& spec = specs_[i];
    if (!in_class(spec, StateUnit::kPage, reach)) continue;
    size_t row_bytes = static_cast<size_t>(spec.width) * dtype_bytes(spec.dtype);
    size_t head_bytes = row_bytes * static_cast<size_t>(page_size_tokens_);
    size_t page_bytes = head_bytes * static_cast<size_t>(spec.heads);
    std::byte* target = pools_[i].data() + page_bytes * static_cast<size_t>(to);
    const std::byte* source = pools_[i].data() + page_bytes * static_cast<size_t>(from);
    for (int64_t head = 0; head < spec.heads; ++head) {
      std::memcpy(target, source, row_bytes * static_cast<size_t>(tokens));
      target += head_bytes;
      source += head_bytes;
    }
  }
}

void StatePools::copy_slot(int32_t from, int32_t to, ThreadPool* threads) {
  CHECK(from != to && std::min(from, to) >= 0 && std::max(from, to) < sizes_.slots,
        "slot {} to {} of {}", from, to, sizes_.slots);
  auto copy = [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      if (specs_[i].unit != StateUnit::kSlot) continue;
      size_t bytes = specs_[i].bytes();
      std::memcpy(pools_[i].data() + bytes * static_cast<size_t>(to),
                  pools_[i].data() + bytes * static_cast<size_t>(from), bytes);
    }
  };
  int64_t pools = std::ssize(specs_);
  if (threads == nullptr) return copy(0, pools);
  threads->parallel_for(pools, 1, copy);
}

}  // namespace banyan
