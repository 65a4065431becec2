// Locates the bytes of a unit: for each state of its class, in order of declaration, its row in
// that state's pool. The pools are on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/state_classes.h"
#include "tier/store.h"

namespace banyan {

class StatePools;

class UnitPieces {
 public:
  struct Pool {
    std::byte* data = nullptr;
    size_t unit_bytes = 0;
  };

  UnitPieces() = default;
  explicit UnitPieces(const StatePools& pools);
  explicit UnitPieces(PerClass<std::vector<Pool>> pools) : pools_(std::move(pools)) {}

  size_t count(int unit_class) const { return pools_[unit_class].size(); }
  int64_t bytes(int unit_class) const;
  // Appends the unit's pieces.
  void add(int unit_class, int32_t unit, std::vector<TierPiece>& pieces) const;

 private:
  PerClass<std::vector<Pool>> pools_;
};

}  // namespace banyan
