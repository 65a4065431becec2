// The bytes of all layer states, in three classes of units: pages of states that reach all the way
// back, pages of windowed states, and slots. Unit i of a class is row i of the pool of every state
// of that class: one id space each, so a sequence has one page table, one window page table and one
// slot however many layers it passes through.
//
// Pools lie on the queue's device, reserved up front: on the host, the operating system commits
// them when they are first touched. Owned by the Runner; who holds which unit is the engine's
// business (UnitList).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "banyan/status.h"
#include "cache/state_spec.h"
#include "kernels/kernel_table.h"
#include "tensor/device.h"

namespace banyan {

// Units of each class. A class that no state belongs to takes no memory, whatever its number.
struct PoolSizes {
  int64_t pages = 0;
  int64_t window_pages = 0;
  int64_t slots = 0;
};

// Classes of units, as UnitCopy names them.
inline constexpr int32_t kPages = 0, kWindowPages = 1, kSlots = 2;

class StatePools {
 public:
  // Refuses what this version does not keep yet: units and reaches that make no class, entries that
  // look ahead, and slots of anything but f32.
  static Result<StatePools> create(std::vector<StateSpec> specs, int page_size_tokens,
                                   const PoolSizes& sizes, const DeviceQueue& queue = host_queue());

  const StateSpec& spec(StateId id) const { return specs_[id]; }
  void* pool(StateId id) const { return pools_[id].data(); }
  int page_size_tokens() const { return page_size_tokens_; }
  const PoolSizes& sizes() const { return sizes_; }

  // Makes the copies, in their order, by a kernel that reads them at `device`.
  void copy(const KernelTable& kernels, const Launch& launch, std::span<const UnitCopy> copies,
            const UnitCopy* device) const;

 private:
  StatePools() = default;
  void check(const UnitCopy& copy) const;

  std::vector<StateSpec> specs_;
  std::vector<DeviceBlock> pools_;
  DeviceBlock unit_pools_;  // a UnitPool of each, for kernels
  int page_size_tokens_ = 0;
  PoolSizes sizes_;
};

// Bytes that states like `specs` take: of one token in a page, of one token in a window page, and
// of one slot.
size_t state_bytes_per_token(std::span<const StateSpec> specs);
size_t state_bytes_per_window_token(std::span<const StateSpec> specs);
size_t state_bytes_per_slot(std::span<const StateSpec> specs);

}  // namespace banyan
