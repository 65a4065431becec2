#include "cache/state_pools.h"

#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"

namespace banyan {

Result<StatePools> StatePools::create(std::vector<StateSpec> specs, int page_size_tokens,
                                      const UnitCounts& units, const DeviceQueue& queue) {
  StatePools pools;
  pools.classes_ = TRY(classify_states(specs, page_size_tokens));
  pools.units_ = units;
  for (const StateSpec& spec : specs) {
    int c = find_class(pools.classes_, spec);
    int64_t entries = pools.units(c) + (pools.classes_[c].has_blank() ? 1 : 0);
    pools.class_of_.push_back(c);
    pools.pools_.emplace_back(queue, spec.unit_bytes(page_size_tokens) * as_size(entries));
  }
  pools.specs_ = std::move(specs);
  std::vector<UnitPool> table;
  for (StateId id = 0; id < std::ssize(pools.specs_); ++id) table.push_back(pools.unit_pool(id));
  pools.unit_pools_ = DeviceBlock(queue, table.size() * sizeof(UnitPool));
  queue.upload(pools.unit_pools_.data(), table.data(), pools.unit_pools_.size());
  return pools;
}

UnitPool StatePools::unit_pool(StateId id) const {
  const StateSpec& spec = specs_[id];
  bool paged = spec.unit == StateUnit::kPage;
  int64_t page = page_size_tokens();
  return {.data = pools_[id].data(),
          .unit_class = class_of_[id],
          .tokens_per_row = paged ? narrow<int32_t>(spec.tokens_of_row(page)) : 0,
          .parts = spec.heads,
          .part_bytes = static_cast<int64_t>(spec.head_bytes(page)),
          .row_bytes = static_cast<int64_t>(spec.row_bytes())};
}

void StatePools::check(const UnitCopy& copy) const {
  CHECK(copy.unit_class >= 0 && copy.unit_class < classes_.count, "class {}", copy.unit_class);
  const UnitClass& c = classes_[copy.unit_class];
  int64_t count = units(copy.unit_class);
  int64_t sources = count + (c.has_blank() ? 1 : 0);
  CHECK(copy.from != copy.to && copy.from >= 0 && copy.from < sources && copy.to >= 0 &&
            copy.to < count,
        "{} of {}: {} to {}", describe(c), count, copy.from, copy.to);
  CHECK(copy.tokens >= 0 && copy.tokens <= page_size_tokens(), "{} tokens of a page", copy.tokens);
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
