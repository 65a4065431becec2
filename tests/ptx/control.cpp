// The flow of a warp, and barriers of its block and cluster.
#include "ptx/families.h"
#include "ptx/lanes.h"

namespace banyan::ptx::control {
namespace {

void run_branch(Warp& warp, const Instruction& in) {
  warp.branch(in.target);
}
void decode_bra(Line& line) {
  line.take("uni");
  line.instruction.run = &run_branch;
  line.target();
}

void run_exit(Warp& warp, const Instruction&) {
  warp.exit();
}
void decode_exit(Line& line) {
  line.take("uni");
  line.instruction.run = &run_exit;
}

void run_trap(Warp&, const Instruction&) {
  fail("the kernel traps");
}
void decode_trap(Line& line) {
  line.instruction.run = &run_trap;
}

void run_yield(Warp& warp, const Instruction&) {
  warp.yield();
}
void decode_nanosleep(Line& line) {
  line.need("u32");
  line.instruction.run = &run_yield;
  line.value(kU32);
}

// Operands: the barrier, and how many threads it expects if not all.
template <bool Waits>
void run_barrier(Warp& warp, const Instruction& in) {
  uint64_t id = warp.uniform(in.operands[0]);
  uint64_t threads = in.count > 1 ? warp.uniform(in.operands[1]) : 0;
  warp.block_of.arrive(warp, static_cast<uint32_t>(id), static_cast<uint32_t>(threads), Waits);
}

// bar.red. Operands: the outcome, the barrier, the threads if not all, the predicate.
enum Reduction : uint64_t { kAnd, kOr, kPopulation };
void run_reduction(Warp& warp, const Instruction& in) {
  if (!warp.votes) {
    warp.votes = true;
    uint64_t threads = in.count > 3 ? warp.uniform(in.operands[2]) : 0;
    // It must not go on before the others, nor past this instruction.
    --warp.pc;
    warp.block_of.arrive_with_votes(warp, static_cast<uint32_t>(warp.uniform(in.operands[1])),
                                    static_cast<uint32_t>(threads),
                                    warp.lanes_of(in.operands[in.count - 1]));
    return;
  }
  warp.votes = false;
  auto [asked, yes] = warp.outcome;
  if (in.data == kPopulation) {
    auto* to = warp.lanes<uint32_t>(in.operands[0]);
    for_lanes(warp.mask, [=](int lane) { to[lane] = yes; });
  } else {
    bool holds = in.data == kOr ? yes > 0 : yes == asked;
    warp.set_predicate(in.operands[0], holds ? kAllLanes : 0);
  }
}

void decode_reduction(Line& line) {
  Instruction& in = line.instruction;
  in.run = &run_reduction;
  in.together = Together::kWarp;
  in.data = line.take("and") ? kAnd : line.take("or") ? kOr : kPopulation;
  if (in.data == kPopulation) {
    line.need("popc");
    line.need("u32");
    line.result(kU32);
  } else {
    line.need("pred");
    line.predicate();
  }
  while (line.left() > 1) line.value(kU32);
  line.predicate();
}

void run_nothing(Warp&, const Instruction&) {}

// __syncwarp: the lanes of the mask have come together.
void decode_warp_barrier(Line& line) {
  line.need("sync");
  line.instruction.run = &run_nothing;
  line.instruction.together = Together::kMembers;
  line.value(kU32);
}

template <bool Waits>
void run_cluster_barrier(Warp& warp, const Instruction&) {
  if constexpr (Waits) {
    warp.block_of.cluster.wait(warp);
  } else {
    warp.block_of.cluster.arrive(warp);
  }
}

void decode_cluster_barrier(Line& line) {
  bool waits = line.take("wait");
  if (!waits) line.need("arrive");
  for (const char* order : {"release", "acquire", "relaxed", "aligned"}) line.take(order);
  line.instruction.run = waits ? &run_cluster_barrier<true> : &run_cluster_barrier<false>;
  line.instruction.together = Together::kWarp;
}

void decode_barrier(Line& line) {
  if (line.take("warp")) return decode_warp_barrier(line);
  if (line.take("cluster")) return decode_cluster_barrier(line);
  line.take("cta");
  line.take("aligned");
  if (line.take("red")) return decode_reduction(line);
  bool waits = line.take("sync");
  if (!waits) line.need("arrive");
  line.instruction.run = waits ? &run_barrier<true> : &run_barrier<false>;
  line.instruction.together = Together::kWarp;
  while (line.left() > 0) line.value(kU32);
}

constexpr Rule kRules[] = {{"bra", decode_bra},
                           {"ret", decode_exit},
                           {"exit", decode_exit},
                           {"trap", decode_trap},
                           {"nanosleep", decode_nanosleep},
                           {"bar", decode_barrier},
                           {"barrier", decode_barrier}};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace banyan::ptx::control
