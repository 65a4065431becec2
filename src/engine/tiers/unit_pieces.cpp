#include "engine/tiers/unit_pieces.h"

#include "base/signed.h"
#include "cache/state_pools.h"

namespace banyan {

UnitPieces::UnitPieces(const StatePools& pools) {
  for (StateId id = 0; id < pools.states(); ++id) {
    at(pools_, pools.class_of(id))
        .push_back({.data = static_cast<std::byte*>(pools.pool(id)),
                    .unit_bytes = pools.spec(id).unit_bytes(pools.page_size_tokens())});
  }
}

int64_t UnitPieces::bytes(int unit_class) const {
  size_t sum = 0;
  for (const Pool& pool : at(pools_, unit_class)) sum += pool.unit_bytes;
  return sum;
}

void UnitPieces::add(int unit_class, int32_t unit, std::vector<TierPiece>& pieces) const {
  for (const Pool& pool : at(pools_, unit_class)) {
    auto row = as_size(unit);
    pieces.push_back({.data = pool.data + row * pool.unit_bytes, .bytes = pool.unit_bytes});
  }
}

}  // namespace banyan
