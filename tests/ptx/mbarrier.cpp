// mbarrier.*
#include "ptx/mbarrier.h"

#include "ptx/families.h"
#include "ptx/grid.h"
#include "ptx/lanes.h"

namespace banyan::ptx::mbarriers {
namespace {

// Whose shared memory an address is in, and the address there.
struct Place {
  Block& block;
  uint64_t address;
  Mbarrier& barrier() const { return block.mbarriers.at(address); }
};

Place place_of(Warp& warp, const Instruction& in, size_t operand, int lane) {
  warp.memory(in, in.operands[operand], Mbarriers::kBytes, lane);  // checks it
  uint64_t address =
      warp.value(in.operands[operand], lane) + static_cast<uint64_t>(in.operands[operand].offset);
  return {warp.block_of.cluster.owner(warp.block_of, address), shared_place(address)};
}

// Operands: the address, the arrivals of a phase.
void run_init(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) {
    Place place = place_of(warp, in, 0, lane);
    place.block.mbarriers.init(place.address, warp.value(in.operands[1], lane));
  });
}
void run_inval(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) {
    Place place = place_of(warp, in, 0, lane);
    place.block.mbarriers.invalidate(place.address);
  });
}

// Operands: the state, the address, then bytes or arrivals if there are any.
enum Arrival : uint64_t { kPlain, kExpectBytes };
void run_arrive(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) {
    Mbarrier& barrier = place_of(warp, in, 1, lane).barrier();
    uint64_t number = in.count > 2 ? warp.value(in.operands[2], lane) : 1;
    uint64_t state = barrier.phase;
    if (in.data == kExpectBytes) barrier.bytes += static_cast<int64_t>(number);
    barrier.arrive(in.data == kExpectBytes ? 1 : number);
    warp.lanes<uint64_t>(in.operands[0])[lane] = state;
  });
}
void run_expect_tx(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) {
    place_of(warp, in, 0, lane).barrier().bytes +=
        static_cast<int64_t>(warp.value(in.operands[1], lane));
  });
}

// Operands: the outcome, q (a sink), the address, the parity or state. Whoever asks may be told to
// ask again although the phase is complete.
void run_wait(Warp& warp, const Instruction& in) {
  constexpr uint64_t kFalseAlarm = 4;
  uint32_t outcome = 0;
  bool again = warp.block_of.grid.chance.one_in(kFalseAlarm);
  for_lanes(warp.mask, [&](int lane) {
    uint64_t parity = warp.value(in.operands[3], lane);
    bool has_passed = place_of(warp, in, 2, lane).barrier().has_passed(parity & 1);
    outcome |= uint32_t{has_passed && !again} << lane;
  });
  warp.set_predicate(in.operands[0], outcome);
  if (outcome == warp.mask) {
    warp.failed_waits = 0;
    warp.waited_at = warp.block_of.proxy.now();
  } else {
    warp.failed_waits += again ? 0 : 1;
    warp.yield();
  }
}

void take_orders(Line& line) {
  for (const char* order : {"release", "acquire", "relaxed", "cta", "cluster"}) line.take(order);
  line.instruction.space = line.take("shared::cluster") ? Space::kCluster : Space::kShared;
  if (!line.take("shared")) line.take("shared::cta");
  line.need("b64");
}

void decode_arrive(Line& line) {
  Instruction& in = line.instruction;
  in.run = &run_arrive;
  in.data = line.take("expect_tx") ? kExpectBytes : kPlain;
  take_orders(line);
  line.result(kB64);
  line.address();
  if (line.left() > 0) line.value(kU32);
}

void decode_wait(Line& line) {
  line.take("parity");
  take_orders(line);
  line.instruction.run = &run_wait;
  line.result_and_predicate(kPredicateType);
  line.address();
  line.value(kU32, true);
  if (line.left() > 0) line.text();  // how long it may wait
}

void decode_mbarrier(Line& line) {
  if (line.take("arrive")) return decode_arrive(line);
  if (line.take("try_wait") || line.take("test_wait")) return decode_wait(line);
  if (line.take("init")) {
    line.instruction.run = &run_init;
  } else if (line.take("inval")) {
    line.instruction.run = &run_inval;
  } else {
    line.need("expect_tx");
    line.instruction.run = &run_expect_tx;
  }
  take_orders(line);
  line.address();
  if (line.left() > 0) line.value(kU32);
}

constexpr Rule kRules[] = {{"mbarrier", decode_mbarrier}};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace banyan::ptx::mbarriers
