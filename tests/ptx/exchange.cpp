// What the lanes of a warp tell each other: shfl, vote, elect and activemask.
#include "ptx/families.h"
#include "ptx/lanes.h"

namespace banyan::ptx::exchange {
namespace {

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

struct Source {
  int lane;
  bool in_range;
};

// `by` and `bounds` as the specification has them: the lowest five bits of `bounds` are a limit,
// those above 8 divide the warp into segments.
template <Shuffle S>
Source source_of(int lane, uint32_t by, uint32_t bounds) {
  int b = static_cast<int>(by & 31), limit = static_cast<int>(bounds & 31);
  int segment = static_cast<int>(bounds >> 8 & 31);
  int last = (lane & segment) | (limit & ~segment), first = lane & segment;
  int from = S == Shuffle::kUp          ? lane - b
             : S == Shuffle::kDown      ? lane + b
             : S == Shuffle::kButterfly ? lane ^ b
                                        : first | (b & ~segment);
  return {from, S == Shuffle::kUp ? from >= last : from <= last};
}

// Operands: d, p, a, the step, the bounds, the members.
template <Shuffle S>
void run_shuffle(Warp& warp, const Instruction& in) {
  uint32_t values[kLanes], outcome = 0;
  auto* from = warp.lanes<uint32_t>(in.operands[2]);
  for (int lane = 0; lane < kLanes; ++lane) {
    // Undefined in lanes that take no part.
    values[lane] = warp.mask >> lane & 1 ? from[lane] : 0xffffffff;
  }
  auto* to = warp.lanes<uint32_t>(in.operands[0]);
  auto* by = warp.lanes<uint32_t>(in.operands[3]);
  auto* bounds = warp.lanes<uint32_t>(in.operands[4]);
  for_lanes(warp.mask, [&](int lane) {
    Source source = source_of<S>(lane, by[lane], bounds[lane]);
    to[lane] = values[source.in_range ? source.lane : lane];
    outcome |= uint32_t{source.in_range} << lane;
  });
  if (!in.operands[1].sink) warp.set_predicate(in.operands[1], outcome);
}

void decode_shfl(Line& line) {
  line.need("sync");
  line.need("b32");
  Instruction& in = line.instruction;
  if (line.take("up")) in.run = &run_shuffle<Shuffle::kUp>;
  if (line.take("down")) in.run = &run_shuffle<Shuffle::kDown>;
  if (line.take("bfly")) in.run = &run_shuffle<Shuffle::kButterfly>;
  if (line.take("idx")) in.run = &run_shuffle<Shuffle::kIndex>;
  in.together = Together::kMembers;
  line.result_and_predicate(kB32);
  for (int i = 0; i < 4; ++i) line.value(kU32);
}

// Operands: the result, the predicate, the members.
void run_ballot(Warp& warp, const Instruction& in) {
  uint32_t ballot = warp.lanes_of(in.operands[1]) & warp.mask;
  auto* to = warp.lanes<uint32_t>(in.operands[0]);
  for_lanes(warp.mask, [=](int lane) { to[lane] = ballot; });
}
enum Vote : uint64_t { kAll, kAny, kUniform };
void run_vote(Warp& warp, const Instruction& in) {
  uint32_t ballot = warp.lanes_of(in.operands[1]) & warp.mask;
  bool all = ballot == warp.mask, any = ballot != 0;
  bool outcome = in.data == kAll ? all : in.data == kAny ? any : all || !any;
  warp.set_predicate(in.operands[0], outcome ? kAllLanes : 0);
}

void decode_vote(Line& line) {
  line.need("sync");
  line.instruction.together = Together::kMembers;
  if (line.take("ballot")) {
    line.need("b32");
    line.instruction.run = &run_ballot;
    line.result(kB32);
  } else {
    line.instruction.data = line.take("all") ? kAll : line.take("any") ? kAny : kUniform;
    line.take("uni");
    line.need("pred");
    line.instruction.run = &run_vote;
    line.predicate();
  }
  line.predicate();
  line.value(kU32);
}

// Operands: d, p, the members. The first of them is elected.
void run_elect(Warp& warp, const Instruction& in) {
  auto* to = warp.lanes<uint32_t>(in.operands[0]);
  uint32_t members = warp.mask & warp.lanes<uint32_t>(in.operands[2])[std::countr_zero(warp.mask)];
  auto leader = static_cast<uint32_t>(std::countr_zero(members));
  for_lanes(warp.mask, [=](int lane) { to[lane] = leader; });
  warp.set_predicate(in.operands[1], 1u << leader);
}
void decode_elect(Line& line) {
  line.need("sync");
  line.instruction.run = &run_elect;
  line.instruction.together = Together::kMembers;
  line.result_and_predicate(kB32);
  line.value(kU32);
}

void run_activemask(Warp& warp, const Instruction& in) {
  auto* to = warp.lanes<uint32_t>(in.operands[0]);
  uint32_t active = warp.mask;
  for_lanes(warp.mask, [=](int lane) { to[lane] = active; });
}
void decode_activemask(Line& line) {
  line.need("b32");
  line.instruction.run = &run_activemask;
  line.result(kB32);
}

constexpr Rule kRules[] = {{"shfl", decode_shfl},
                           {"vote", decode_vote},
                           {"elect", decode_elect},
                           {"activemask", decode_activemask}};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace banyan::ptx::exchange
