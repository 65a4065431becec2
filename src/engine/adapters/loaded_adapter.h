// A LoRA adapter that sequences use. Its slot is in use as long as one of these lives: in the list
// of those that requests may name, and in each sequence.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "banyan/engine.h"

namespace banyan {

struct LoadedAdapter {
  LoadedAdapter(int32_t own_slot, AdapterInfo own_info)
      : slot(own_slot), info(std::move(own_info)) {}

  const int32_t slot;
  const AdapterInfo info;                    // without the two counts
  mutable std::atomic<int64_t> running = 0;  // sequences with rows of the last step
};
using AdapterUse = std::shared_ptr<const LoadedAdapter>;

}  // namespace banyan
