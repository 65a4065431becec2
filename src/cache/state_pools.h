// The bytes of all layer states, in classes of units: unit i of a class is row i in the pool of
// every state of that class. Each class has one range of ids, so a sequence has one list of units
// per class, however many layers it passes through.
//
// Pools lie on the queue's device and are reserved up front; on the host, the operating system
// commits them when they are first touched. Owned by the Runner. Which sequence holds which unit is
// the engine's business (UnitList).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "banyan/status.h"
#include "cache/state_classes.h"
#include "cache/state_spec.h"
#include "kernels/kernel_table.h"
#include "tensor/device.h"

namespace banyan {

class StatePools {
 public:
  // Refuses what classify_states refuses. A class without states takes no memory, whatever its
  // number of units.
  static Result<StatePools> create(std::vector<StateSpec> specs, int page_size_tokens,
                                   const UnitCounts& units,
                                   const DeviceQueue& queue = host_queue());

  int states() const { return static_cast<int>(specs_.size()); }
  const StateSpec& spec(StateId id) const { return specs_[id]; }
  void* pool(StateId id) const { return pools_[id].data(); }
  int page_size_tokens() const { return classes_.page_size_tokens; }
  const StateClasses& classes() const { return classes_; }
  int class_of(StateId id) const { return class_of_[id]; }
  int64_t units(int unit_class) const { return units_[static_cast<size_t>(unit_class)]; }

  // Makes the copies in order, with a kernel that reads the list at `device`.
  void copy(const KernelTable& kernels, const Launch& launch, std::span<const UnitCopy> copies,
            const UnitCopy* device) const;

 private:
  StatePools() = default;
  UnitPool unit_pool(StateId id) const;
  void check(const UnitCopy& copy) const;

  std::vector<StateSpec> specs_;
  std::vector<int> class_of_;  // of each state
  std::vector<DeviceBlock> pools_;
  DeviceBlock unit_pools_;  // a UnitPool of each class, for kernels
  StateClasses classes_;
  UnitCounts units_ = {};  // without the blank one
};

}  // namespace banyan
