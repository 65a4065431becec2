#include "ptx/block.h"

#include <algorithm>
#include <bit>

#include "ptx/grid.h"
#include "ptx/text.h"
#include "ptx/warp.h"

namespace banyan::ptx {
namespace {

// So that a swizzled tile that is aligned in shared memory is so on the host.
constexpr size_t kAlignment = 1024;
constexpr const char* kClusterBarrier = "the barrier of the cluster";

}  // namespace

Block::Block(Grid& grid, Cluster& cluster, const Entry& entry, uint32_t index, uint32_t rank)
    : grid(grid), cluster(cluster), index(index), rank(rank) {
  size_t alignment = entry.shared_alignment;
  shared_bytes = (entry.static_shared_bytes + alignment - 1) / alignment * alignment +
                 grid.launch.shared_bytes;
  storage_.assign(shared_bytes + kAlignment, std::byte{0xff});
  auto address = std::bit_cast<uintptr_t>(storage_.data());
  shared = storage_.data() + (kAlignment - address % kAlignment) % kAlignment;
  proxy.resize(shared_bytes);
  uint32_t threads = grid.launch.threads;
  for (uint32_t first = 0; first < threads; first += kLanes) {
    uint32_t count = std::min<uint32_t>(kLanes, threads - first);
    uint32_t lanes = count == kLanes ? kAllLanes : (1u << count) - 1;
    warps.push_back(std::make_unique<Warp>(*this, entry, first / kLanes, lanes));
  }
  live_warps = static_cast<uint32_t>(warps.size());
}

Block::~Block() = default;

std::byte* Block::memory(uint64_t address, uint32_t bytes, int lane) const {
  if (address < kSharedBegin || address - kSharedBegin + bytes > shared_bytes) {
    fail("lane {}: {} bytes at {:#x} are outside of the shared memory, {:#x} to {:#x}", lane, bytes,
         address, kSharedBegin, kSharedBegin + shared_bytes);
  }
  return shared + (address - kSharedBegin);
}

void Block::arrive(Warp& warp, uint32_t id, uint32_t expected, bool waits) {
  if (id >= kBarriers) fail("there is no barrier {}", id);
  if (expected % kLanes != 0) fail("{} threads are no whole warps", expected);
  Barrier& barrier = barriers[id];
  if (barrier.arrived > 0 && barrier.expected != expected) {
    fail("barrier {} expects {} threads for some and {} for others", id, barrier.expected,
         expected);
  }
  barrier.expected = expected;
  barrier.arrived += kLanes;
  if (waits) {
    barrier.waiting.push_back(&warp);
    warp.block("a barrier", false);
  }
  complete_if_all_came(barrier);
}

void Block::arrive_with_votes(Warp& warp, uint32_t id, uint32_t expected, uint32_t votes) {
  if (id < kBarriers) {
    barriers[id].asked += static_cast<uint32_t>(std::popcount(warp.mask));
    barriers[id].yes += static_cast<uint32_t>(std::popcount(votes & warp.mask));
  }
  arrive(warp, id, expected, true);
}

void Block::complete_if_all_came(Barrier& barrier) {
  uint32_t expected = barrier.expected > 0 ? barrier.expected : live_warps * kLanes;
  if (barrier.arrived == 0 || barrier.arrived < expected) return;
  barrier.arrived = 0;
  for (Warp* warp : barrier.waiting) {
    warp->waited_at = proxy.now();
    warp->outcome = {barrier.asked, barrier.yes};
    warp->release();
  }
  barrier.waiting.clear();
  barrier.asked = barrier.yes = 0;
}

void Block::warp_exited() {
  --live_warps;
  for (Barrier& barrier : barriers) complete_if_all_came(barrier);
  if (live_warps == 0) check_end();
  cluster.warp_exited();
}

// What must not be open when the last warp exits.
void Block::check_end() const {
  if (copies_in_flight > 0) fail("the block exits while a bulk copy into its memory is in flight");
}

Block& Cluster::owner(Block& own, uint64_t address) const {
  uint64_t rank = address >> kRankShift;
  if (rank > blocks.size()) fail("{:#x} is no address of this cluster's shared memory", address);
  return rank == 0 ? own : *blocks[rank - 1];
}

std::byte* Cluster::memory(Block& own, uint64_t address, uint32_t bytes, int lane) const {
  const Block& block = owner(own, address);
  if (block.live_warps == 0) {
    fail("lane {}: the block of rank {} has exited, and its shared memory with it", lane,
         block.rank);
  }
  return block.memory(shared_place(address), bytes, lane);
}

void Cluster::arrive(Warp& warp) {
  if (warp.cluster_phase > phase) fail("it arrives twice at the barrier of the cluster");
  warp.cluster_phase = phase + 1;
  ++arrived;
  complete_if_all_came();
}

void Cluster::wait(Warp& warp) {
  if (warp.cluster_phase == 0) fail("it waits for the cluster and has not arrived");
  if (phase < warp.cluster_phase) warp.block(kClusterBarrier, true);
}

void Cluster::complete_if_all_came() {
  if (arrived == 0 || arrived < live_warps) return;
  arrived = 0;
  ++phase;
  for (auto& block : blocks) {
    for (auto& warp : block->warps) {
      if (warp->cluster_phase == phase) warp->release_from(kClusterBarrier);
    }
  }
}

void Cluster::warp_exited() {
  --live_warps;
  complete_if_all_came();
}

}  // namespace banyan::ptx
