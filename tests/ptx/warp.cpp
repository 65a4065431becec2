#include "ptx/warp.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "ptx/grid.h"
#include "ptx/text.h"

namespace banyan::ptx {

Warp::Warp(Block& block, const Entry& entry, uint32_t index, uint32_t lanes)
    : block_of(block),
      entry(entry),
      index(index),
      live(lanes),
      active_(lanes),
      journal_(block.grid.launch.journal),
      storage_(entry.register_bytes + kLanes, std::byte{0xff}),
      local_(entry.local_bytes * kLanes, std::byte{0xff}),
      // Registers are read only, and constants never written.
      constants_(const_cast<std::byte*>(entry.constants.data())) {
  auto address = std::bit_cast<uintptr_t>(storage_.data());
  registers_ = storage_.data() + (kLanes - address % kLanes) % kLanes;
  fill_specials();
}

void Warp::fill_specials() {
  const Launch& launch = block_of.grid.launch;
  auto value = [&](std::string_view name, uint32_t lane) -> uint32_t {
    if (name == "%tid.x") return index * kLanes + lane;
    if (name == "%ntid.x") return launch.threads;
    if (name == "%ctaid.x") return block_of.index;
    if (name == "%nctaid.x") return launch.blocks;
    if (name == "%laneid") return lane;
    if (name == "%warpid") return index;
    if (name == "%nwarpid") return (launch.threads + kLanes - 1) / kLanes;
    if (name == "%clusterid.x") return block_of.index / launch.cluster;
    if (name == "%nclusterid.x") return launch.blocks / launch.cluster;
    if (name == "%cluster_ctarank" || name == "%cluster_ctaid.x") return block_of.rank;
    if (name == "%cluster_nctarank" || name == "%cluster_nctaid.x") return launch.cluster;
    return name.starts_with("%n") ? 1 : 0;  // y and z
  };
  for (const Entry::Special& special : entry.specials) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      lanes<uint32_t>(special.to)[lane] = value(special.name, lane);
    }
  }
}

uint64_t Warp::value(const Operand& operand, int lane) const {
  if (operand.bytes == 8) return lanes<uint64_t>(operand)[lane];
  if (operand.bytes == 4) return lanes<uint32_t>(operand)[lane];
  return lanes<uint16_t>(operand)[lane];
}

uint64_t Warp::uniform(const Operand& operand) const {
  int first = std::countr_zero(mask);
  uint64_t expected = value(operand, first);
  for (int lane = first + 1; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) != 0 && value(operand, lane) != expected) {
      fail("lanes {} and {} give {} and {}, which must be the same", first, lane, expected,
           value(operand, lane));
    }
  }
  return expected;
}

void Warp::run(int count, int favoured) {
  yielded_ = false;
  if (favoured != favoured_) {
    favoured_ = favoured;
    choose();
  }
  for (; count > 0 && state == State::kReady && !yielded_; --count) {
    const Instruction& in = entry.code[pc];
    present_ = &in;
    if (in.together != Together::kNo && !gather(in)) continue;
    mask = in.guarded ? active_ & lanes_of(in.guard) : active_;
    ++pc;
    ++steps;
    if (mask != 0 && (products.empty() || products.may_run(in))) in.run(*this, in);
    if (pc == next_other_) choose();
  }
}

void Warp::branch(uint32_t target) {
  if (mask == active_) {
    pc = target;
    if (active_ != live) choose();
    return;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if (active_ >> lane & 1) places_[lane] = mask >> lane & 1 ? target : pc;
  }
  active_ = 0;
  choose();
}

void Warp::exit() {
  live &= ~mask;
  active_ &= ~mask;
  parked_ = 0;  // these may have waited for the lanes that exit
  if (live == 0) {
    if (!products.empty()) fail("it exits while a product is in flight");
    if (!small_copies.empty()) fail("it exits while a copy of cp.async is in flight");
    state = State::kExited;
    block_of.warp_exited();
  } else {
    choose();
  }
}

void Warp::block(const char* why, bool again) {
  state = State::kBlocked;
  blocked_by = why;
  if (again) --pc;
}

// Which lanes run next: those at the lowest place, or at that of the favoured lane.
void Warp::choose() {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (active_ >> lane & 1) places_[lane] = pc;
  }
  uint32_t candidates = live & ~parked_;
  if (candidates == 0) fail_diverged();
  uint32_t place = UINT32_MAX;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (candidates >> lane & 1) place = std::min(place, places_[lane]);
  }
  if (favoured_ >= 0 && (candidates >> favoured_ & 1) != 0) place = places_[favoured_];
  active_ = 0;
  next_other_ = UINT32_MAX;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((live >> lane & 1) == 0) continue;
    if (places_[lane] == place) active_ |= 1u << lane;
    if (places_[lane] > place) next_other_ = std::min(next_other_, places_[lane]);
  }
  parked_ &= ~active_;
  pc = place;
}

// Whether all lanes that must are here. Else these lanes wait, and others run.
bool Warp::gather(const Instruction& in) {
  uint32_t required = live;
  if (in.together == Together::kMembers) {
    const Operand& members = in.operands[in.count - 1];
    required &= lanes<uint32_t>(members)[std::countr_zero(active_)];
  }
  if ((active_ & required) == required) return true;
  parked_ |= active_;
  choose();
  return false;
}

void Warp::fail_diverged() const {
  std::string places;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((live >> lane & 1) == 0) continue;
    places += fmt::format(" {}:{}", lane, entry.source(entry.code[places_[lane]]).line);
  }
  fail("the lanes of the warp wait for each other at different lines:{}", places);
}

std::byte* Warp::other_memory(Space space, uint64_t address, uint32_t bytes, int lane) {
  if (space == Space::kGeneric) {
    uint64_t window = address & ~kWindowMask;
    if (window == kSharedWindow)
      return other_memory(Space::kCluster, address - window, bytes, lane);
    if (window == kLocalWindow) return other_memory(Space::kLocal, address - window, bytes, lane);
    if (window == kParameterWindow) {
      return other_memory(Space::kParameter, address - window, bytes, lane);
    }
  }
  if (address % bytes != 0) {
    fail("lane {}: the address {:#x} is not a multiple of {}", lane, address, bytes);
  }
  if (space == Space::kShared) return block_of.memory(address, bytes, lane);
  if (space == Space::kCluster) {
    return block_of.cluster.memory(block_of, address, bytes, lane);
  }
  auto within = [&](uint64_t begin, size_t size) {
    return address >= begin && address - begin + bytes <= size;
  };
  if (space == Space::kLocal && within(kLocalBegin, entry.local_bytes)) {
    size_t lane_begin = entry.local_bytes * static_cast<size_t>(lane);
    return local_.data() + lane_begin + (address - kLocalBegin);
  }
  const std::vector<std::byte>& parameters = block_of.grid.launch.parameters;
  if (space == Space::kParameter && within(0, parameters.size())) {
    return const_cast<std::byte*>(parameters.data()) + address;
  }
  fail("lane {}: {} bytes at {:#x} are outside of its memory", lane, bytes, address);
}

bool Warp::is_own(const std::byte* at) const {
  auto within = [at](const std::byte* begin, size_t bytes) {
    return at >= begin && at < begin + bytes;
  };
  return within(local_.data(), local_.size()) ||
         std::ranges::any_of(block_of.cluster.blocks, [&](const auto& block) {
           return within(block->shared, block->shared_bytes);
         });
}

void Warp::note_store(const std::byte* to, size_t bytes, int lane) {
  if (to < block_of.shared || to >= block_of.shared + block_of.shared_bytes) return;
  auto offset = static_cast<uint64_t>(to - block_of.shared);
  block_of.mbarriers.check_store(kSharedBegin + offset, bytes);
  block_of.proxy.stored(*this, lane, offset, bytes);
}

std::string Warp::where() const {
  const Entry::Source& source = entry.source(*present_);
  std::string why = state == State::kBlocked ? fmt::format(", waiting at {}", blocked_by) : "";
  return fmt::format("block {}, warp {}, line {}: {}{}", block_of.index, index, source.line,
                     source.text.substr(0, 120), why);
}

}  // namespace banyan::ptx
