// A block of threads and its cluster while they run: shared memory and barriers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ptx/instruction.h"
#include "ptx/mbarrier.h"
#include "ptx/proxy.h"

namespace banyan::ptx {

class Grid;
class Warp;
struct Cluster;

// Shared memory does not begin at 0, as on a GPU. An address of a peer's memory has its rank
// above kRankShift, one higher.
inline constexpr uint64_t kSharedBegin = 1024;
inline constexpr int kRankShift = 24;
constexpr uint64_t shared_place(uint64_t address) {
  return address & ((uint64_t{1} << kRankShift) - 1);
}
// Local memory does not begin at 0 either.
inline constexpr uint64_t kLocalBegin = 64;

// Generic addresses of what is not global memory: these, and the address in its own space.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 60;
inline constexpr uint64_t kLocalWindow = uint64_t{2} << 60;
inline constexpr uint64_t kParameterWindow = uint64_t{3} << 60;
inline constexpr uint64_t kWindowMask = ~(uint64_t{15} << 60);

// One of bar.sync.
struct Barrier {
  uint32_t expected = 0;        // threads; 0: all that live
  uint32_t arrived = 0;         // threads, 32 of every warp
  uint32_t asked = 0, yes = 0;  // lanes that brought a predicate (bar.red), and those where it held
  std::vector<Warp*> waiting;
};

struct Block {
  static constexpr uint32_t kBarriers = 16;

  Block(Grid& grid, Cluster& cluster, const Entry& entry, uint32_t index, uint32_t rank);
  ~Block();

  // `waits` for bar.sync, else bar.arrive.
  void arrive(Warp& warp, uint32_t id, uint32_t expected, bool waits);
  // The same of bar.red: `votes` are the lanes of the warp where its predicate holds. When the warp
  // gets on, it runs the instruction again and finds the barrier's outcome in Warp::outcome.
  void arrive_with_votes(Warp& warp, uint32_t id, uint32_t expected, uint32_t votes);
  void warp_exited();
  // `bytes` at an address of its shared memory; errors name the lane.
  std::byte* memory(uint64_t address, uint32_t bytes, int lane) const;

  Grid& grid;
  Cluster& cluster;
  const uint32_t index;  // in the grid
  const uint32_t rank;   // in the cluster
  std::byte* shared;     // at kSharedBegin
  size_t shared_bytes;
  std::vector<std::unique_ptr<Warp>> warps;
  uint32_t live_warps;
  Barrier barriers[kBarriers];
  Mbarriers mbarriers;
  Proxy proxy;
  int copies_in_flight = 0;

  // Notes what a bulk copy has written.
  void written_by_copy(uint64_t address, size_t bytes) {
    proxy.forget(address - kSharedBegin, bytes);
  }

 private:
  void complete_if_all_came(Barrier& barrier);
  void check_end() const;

  std::vector<std::byte> storage_;
};

// Blocks that run together and see each other's shared memory.
struct Cluster {
  uint32_t index = 0;
  std::vector<std::unique_ptr<Block>> blocks;
  uint32_t arrived = 0;  // warps, at barrier.cluster
  uint32_t live_warps = 0;
  uint64_t phase = 0;  // barriers that are complete

  void arrive(Warp& warp);
  void wait(Warp& warp);
  void warp_exited();
  // The block of `own`'s cluster whose memory an address is in.
  Block& owner(Block& own, uint64_t address) const;
  // At an address as `own` sees it: of its own memory or a peer's.
  std::byte* memory(Block& own, uint64_t address, uint32_t bytes, int lane) const;
  bool is_done() const { return live_warps == 0; }

 private:
  void complete_if_all_came();
};

}  // namespace banyan::ptx
