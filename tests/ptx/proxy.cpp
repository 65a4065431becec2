#include "ptx/proxy.h"

#include "ptx/block.h"
#include "ptx/text.h"
#include "ptx/warp.h"

namespace banyan::ptx {

void Proxy::stored(const Warp& warp, int lane, uint64_t offset, size_t bytes) {
  ++time_;
  for (size_t unit = offset / kUnit; unit * kUnit < offset + bytes; ++unit) {
    stores_[unit] = {time_, warp.index, lane, warp.line()};
  }
}

void Proxy::forget(uint64_t offset, size_t bytes) {
  for (size_t unit = offset / kUnit; unit * kUnit < offset + bytes; ++unit) stores_[unit] = {};
}

void Proxy::fenced(Warp& warp) {
  ++time_;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (warp.mask >> lane & 1) warp.fenced_at[lane] = time_;
  }
  warp.sees_stores_until = warp.waited_at;
}

void Proxy::check(const Warp& warp, uint64_t address) const {
  const Store& store = stores_[(address - kSharedBegin) / kUnit];
  const Warp& writer = *warp.block_of.warps[store.warp];
  if (store.time <= writer.fenced_at[store.lane] || store.time <= warp.sees_stores_until) return;
  fail("there is no fence.proxy.async between the store of line {} (warp {}, lane {}) and it",
       store.line, store.warp, store.lane);
}

}  // namespace banyan::ptx
