#include "ptx/grid.h"

#include <algorithm>

#include "ptx/text.h"
#include "ptx/warp.h"
#include "ptx/wild.h"

namespace banyan::ptx {
namespace {

// A warp that polled this often in a row, while nothing else could happen, polls forever.
constexpr int kFailedWaitsMax = 2000;
constexpr int kFailedWaits = 3;  // and this often: it seems to get nowhere

}  // namespace

Grid::Grid(const Entry& entry, const Launch& launch)
    : launch(launch), chance(launch.seed), entry_(entry) {
  check();
}

void Grid::check() const {
  if (launch.blocks == 0 || launch.threads == 0 || launch.threads > 1024) {
    fail("{}: {} blocks of {} threads cannot be launched", entry_.name, launch.blocks,
         launch.threads);
  }
  if (launch.cluster == 0 || launch.blocks % launch.cluster != 0) {
    fail("{}: {} blocks are no clusters of {}", entry_.name, launch.blocks, launch.cluster);
  }
  if (launch.parameters.size() < entry_.parameter_bytes) {
    fail("{}: {} bytes of parameters, {} are needed", entry_.name, launch.parameters.size(),
         entry_.parameter_bytes);
  }
}

void Grid::start_clusters() {
  uint32_t count = launch.blocks / launch.cluster;
  size_t resident = std::max(1u, launch.resident_blocks / launch.cluster);
  while (next_cluster_ < count && clusters_.size() < resident) {
    auto cluster = std::make_unique<Cluster>();
    cluster->index = next_cluster_++;
    for (uint32_t rank = 0; rank < launch.cluster; ++rank) {
      uint32_t index = cluster->index * launch.cluster + rank;
      cluster->blocks.push_back(std::make_unique<Block>(*this, *cluster, entry_, index, rank));
      for (auto& warp : cluster->blocks.back()->warps) warps_.push_back(warp.get());
      cluster->live_warps += cluster->blocks.back()->live_warps;
    }
    clusters_.push_back(std::move(cluster));
  }
}

void Grid::end_clusters() {
  for (Warp* warp : warps_) {
    if (warp->state == Warp::State::kExited) ran_.instructions += warp->steps;
  }
  std::erase_if(warps_, [](Warp* warp) { return warp->state == Warp::State::kExited; });
  std::erase_if(clusters_, [](auto& cluster) { return cluster->is_done(); });
  start_clusters();
}

// One of the warps that can get on, or null.
Warp* Grid::ready_warp() {
  size_t first = chance.below(warps_.size());
  for (size_t i = 0; i < warps_.size(); ++i) {
    Warp* warp = warps_[(first + i) % warps_.size()];
    if (warp->state == Warp::State::kReady) return warp;
  }
  return nullptr;
}

void Grid::run_slice(Warp& warp) {
  // Short runs find races of a few instructions, long ones those of a few phases.
  int count = 1 << chance.below(10);
  int favoured = chance.one_in(16) ? static_cast<int>(chance.below(kLanes)) : -1;
  // Lanes that poll may wait for others of their warp.
  if (warp.failed_waits > 0 && chance.one_in(2)) favoured = warp.lane_elsewhere();
  try {
    WildAccessReport::set_running(&warp);
    warp.run(count, favoured);
    // Some of what instructions have begun takes effect.
    if (warp.state != Warp::State::kExited) {
      warp.products.pass(chance);
      warp.small_copies.pass(chance);
    }
  } catch (const Error& error) {
    fail("{}, {}: {}", entry_.name, warp.where(), error.what());
  }
  later.pass();
  ran_.slices += static_cast<uint64_t>(count);
  if (ran_.slices > launch.instructions_max) {
    fail("{}, {}: more than {} instructions", entry_.name, warp.where(), launch.instructions_max);
  }
}

Ran Grid::run() {
  WildAccessReport report;
  start_clusters();
  while (!warps_.empty()) {
    Warp* warp = ready_warp();
    if (warp == nullptr) {
      if (!later.do_one()) fail_deadlock();
      continue;
    }
    run_slice(*warp);
    if (warp->failed_waits > 0 && all_wait() && !later.do_one()) {
      if (warp->failed_waits > kFailedWaitsMax) fail_deadlock();
    }
    if (warp->state == Warp::State::kExited) end_clusters();
  }
  return ran_;
}

// Whether every warp is blocked or polls in vain.
bool Grid::all_wait() const {
  return std::ranges::all_of(warps_, [](const Warp* warp) {
    return warp->state == Warp::State::kBlocked || warp->failed_waits > kFailedWaits;
  });
}

void Grid::fail_deadlock() const {
  std::string places;
  for (const Warp* warp : warps_) places += "\n  " + warp->where();
  fail("{}: nothing can get on:{}", entry_.name, places);
}

Ran launch(const Module& module, const std::string& entry, const Launch& launch) {
  return Grid(module.entry(entry), launch).run();
}

}  // namespace banyan::ptx
