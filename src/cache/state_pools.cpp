#include "cache/state_pools.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"

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
    pools.pools_.emplace_back(queue,
                              spec.unit_bytes(page_size_tokens) * static_cast<size_t>(entries));
  }
  pools.specs_ = std::move(specs);
  return pools;
}

void StatePools::copy_state(StateId id, const UnitCopy& copy) {
  const StateSpec& spec = specs_[id];
  int64_t page = page_size_tokens();
  int64_t rows = classes_[copy.unit_class].paged() ? copy.tokens / spec.tokens_of_row(page) : 1;
  size_t head_bytes = spec.head_bytes(page), unit_bytes = spec.unit_bytes(page);
  std::byte* target = pools_[id].data() + unit_bytes * static_cast<size_t>(copy.to);
  const std::byte* source = pools_[id].data() + unit_bytes * static_cast<size_t>(copy.from);
  for (int64_t head = 0; head < spec.heads; ++head) {
    std::memcpy(target, source, spec.row_bytes() * static_cast<size_t>(rows));
    target += head_bytes;
    source += head_bytes;
  }
}

void StatePools::copy(const UnitCopy& copy, ThreadPool* threads) {
  CHECK(copy.unit_class >= 0 && copy.unit_class < classes_.count, "class {}", copy.unit_class);
  const UnitClass& c = classes_[copy.unit_class];
  int64_t units = units_[static_cast<size_t>(copy.unit_class)];
  int64_t sources = units + (c.has_blank() ? 1 : 0);
  CHECK(copy.from != copy.to && copy.from >= 0 && copy.from < sources && copy.to >= 0 &&
            copy.to < units,
        "{} of {}: {} to {}", describe(c), units, copy.from, copy.to);
  CHECK(copy.tokens >= 0 && copy.tokens <= page_size_tokens(), "{} tokens of a page", copy.tokens);
  auto states = [&](int64_t begin, int64_t end) {
    for (auto id = static_cast<StateId>(begin); id < end; ++id) {
      if (class_of_[id] == copy.unit_class) copy_state(id, copy);
    }
  };
  int64_t count = std::ssize(specs_);
  if (threads == nullptr || c.paged()) return states(0, count);
  threads->parallel_for(count, 1, states);
}

}  // namespace banyan
