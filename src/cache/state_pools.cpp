#include "cache/state_pools.h"

#include <algorithm>

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

UnitPool unit_pool(const StateSpec& spec, int64_t page_size_tokens, std::byte* data) {
  if (spec.unit == StateUnit::kSlot) {
    auto bytes = static_cast<int64_t>(spec.bytes());
    return {.data = data, .unit_class = kSlots, .part_bytes = bytes};
  }
  int64_t row_bytes = spec.width * static_cast<int64_t>(dtype_bytes(spec.dtype));
  return {.data = data,
          .unit_class = spec.reach == StateReach::kWindow ? kWindowPages : kPages,
          .tokens_per_row = 1,
          .parts = spec.heads,
          .part_bytes = row_bytes * page_size_tokens,
          .row_bytes = row_bytes};
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
  std::vector<UnitPool> table;
  for (size_t i = 0; i < specs.size(); ++i) {
    table.push_back(unit_pool(specs[i], page_size_tokens, pools.pools_[i].data()));
  }
  pools.unit_pools_ = DeviceBlock(queue, table.size() * sizeof(UnitPool));
  queue.upload(pools.unit_pools_.data(), table.data(), pools.unit_pools_.size());
  pools.specs_ = std::move(specs);
  return pools;
}

void StatePools::check(const UnitCopy& copy) const {
  const int64_t units[] = {sizes_.pages, sizes_.window_pages, sizes_.slots};
  CHECK(copy.unit_class >= 0 && copy.unit_class < std::ssize(units), "{}", copy.unit_class);
  int64_t count = units[copy.unit_class];
  CHECK(copy.from != copy.to && std::min(copy.from, copy.to) >= 0 &&
            std::max(copy.from, copy.to) < count,
        "unit {} to {} of {}", copy.from, copy.to, count);
  CHECK(copy.tokens >= 0 && copy.tokens <= page_size_tokens_, "{} tokens of a page", copy.tokens);
}

void StatePools::copy(const KernelTable& kernels, const Launch& launch,
                      std::span<const UnitCopy> copies, const UnitCopy* device) const {
  if (copies.empty()) return;
  for (const UnitCopy& copy : copies) check(copy);
  kernels.copy_units({.launch = launch,
                      .pools = reinterpret_cast<const UnitPool*>(unit_pools_.data()),
                      .pool_count = std::ssize(pools_),
                      .copies = device,
                      .copy_count = std::ssize(copies)});
}

}  // namespace banyan
