#include "engine/tiers/unit_pieces.h"

#include "cache/state_pools.h"

namespace banyan {

UnitPieces::UnitPieces(const StatePools& pools) {
  for (StateId id = 0; id < pools.states(); ++id) {
    pools_[static_cast<size_t>(pools.class_of(id))].push_back(
        {.data = static_cast<std::byte*>(pools.pool(id)),
         .unit_bytes = pools.spec(id).unit_bytes(pools.page_size_tokens())});
  }
}

int64_t UnitPieces::bytes(int unit_class) const {
  size_t sum = 0;
  for (const Pool& pool : pools_[static_cast<size_t>(unit_class)]) sum += pool.unit_bytes;
  return static_cast<int64_t>(sum);
}

void UnitPieces::add(int unit_class, int32_t unit, std::vector<TierPiece>& pieces) const {
  for (const Pool& pool : pools_[static_cast<size_t>(unit_class)]) {
    auto row = static_cast<size_t>(unit);
    pieces.push_back({.data = pool.data + row * pool.unit_bytes, .bytes = pool.unit_bytes});
  }
}

}  // namespace banyan
