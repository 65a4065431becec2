// mov, and the addresses of one space in another.
#include "ptx/families.h"
#include "ptx/lanes.h"

namespace banyan::ptx::move {
namespace {

template <class T>
void run_move(Warp& warp, const Instruction& in) {
  auto* to = warp.lanes<T>(in.operands[0]);
  auto* from = warp.lanes<T>(in.operands[1]);
  for_lanes(warp.mask, [=](int lane) { to[lane] = from[lane]; });
}

// Operands: the whole, then its parts, the lowest first.
template <class T, class Part>
void run_pack(Warp& warp, const Instruction& in) {
  auto* to = warp.lanes<T>(in.operands[0]);
  for_lanes(warp.mask, [&](int lane) {
    T whole = 0;
    for (int i = 1; i < in.count; ++i) {
      whole |=
          static_cast<T>(T{warp.lanes<Part>(in.operands[i])[lane]} << (8 * sizeof(Part) * (i - 1)));
    }
    to[lane] = whole;
  });
}

// Operands: the parts, then the whole.
template <class T, class Part>
void run_unpack(Warp& warp, const Instruction& in) {
  int parts = in.count - 1;
  auto* from = warp.lanes<T>(in.operands[parts]);
  for_lanes(warp.mask, [&](int lane) {
    T whole = from[lane];
    for (int i = 0; i < parts; ++i) {
      warp.lanes<Part>(in.operands[i])[lane] = static_cast<Part>(whole >> (8 * sizeof(Part) * i));
    }
  });
}

template <bool Packs>
Instruction::Run vector_run(uint32_t bytes, size_t parts) {
  if (bytes == 4 && parts == 2)
    return Packs ? &run_pack<uint32_t, uint16_t> : &run_unpack<uint32_t, uint16_t>;
  if (bytes == 8 && parts == 2)
    return Packs ? &run_pack<uint64_t, uint32_t> : &run_unpack<uint64_t, uint32_t>;
  if (bytes == 8 && parts == 4)
    return Packs ? &run_pack<uint64_t, uint16_t> : &run_unpack<uint64_t, uint16_t>;
  return nullptr;
}

size_t parts_in(std::string_view list) {
  return list.starts_with('{') ? split(list.substr(1, list.size() - 2), ',').size() : 1;
}

void run_predicate(Warp& warp, const Instruction& in) {
  warp.set_predicate(in.operands[0], warp.lanes_of(in.operands[1]));
}

void decode_mov(Line& line) {
  Type type = line.take_type();
  if (type == kPredicateType) {
    line.instruction.run = &run_predicate;
    line.predicate();
    line.predicate();
    return;
  }
  if (size_t parts = parts_in(line.peek()); parts > 1) {
    line.instruction.run = vector_run<false>(type.bytes, parts);
    line.values({Kind::kBits, type.bytes / static_cast<uint32_t>(parts)}, false, true);
    line.value(type);
    return;
  }
  line.result(type);
  if (size_t parts = parts_in(line.peek()); parts > 1) {
    line.instruction.run = vector_run<true>(type.bytes, parts);
    line.values({Kind::kBits, type.bytes / static_cast<uint32_t>(parts)}, false, false);
    return;
  }
  line.instruction.run = type.bytes == 2   ? &run_move<uint16_t>
                         : type.bytes == 4 ? &run_move<uint32_t>
                                           : &run_move<uint64_t>;
  if (type.bytes == 4) line.instruction.role = Instruction::Role::kMove32;
  line.value(type);
}

uint64_t take_window(Line& line) {
  if (line.take("shared") || line.take("shared::cta") || line.take("shared::cluster")) {
    return kSharedWindow;
  }
  if (line.take("local")) return kLocalWindow;
  if (line.take("param") || line.take("param::entry")) return kParameterWindow;
  line.need("global");
  return 0;
}

void run_cvta(Warp& warp, const Instruction& in) {
  auto* to = warp.lanes<uint64_t>(in.operands[0]);
  auto* from = warp.lanes<uint64_t>(in.operands[1]);
  for_lanes(warp.mask, [&](int lane) { to[lane] = from[lane] + in.data; });
}
void decode_cvta(Line& line) {
  bool back = line.take("to");
  uint64_t window = take_window(line);
  line.need("u64");
  line.instruction.run = &run_cvta;
  line.instruction.data = back ? -window : window;
  line.result(kB64);
  line.value(kB64);
}

void run_isspacep(Warp& warp, const Instruction& in) {
  auto* from = warp.lanes<uint64_t>(in.operands[1]);
  uint32_t outcome = 0;
  for_lanes(warp.mask, [&](int lane) {
    bool is = (from[lane] & ~kWindowMask) == in.data;
    outcome |= uint32_t{is} << lane;
  });
  warp.set_predicate(in.operands[0], outcome);
}
void decode_isspacep(Line& line) {
  line.instruction.run = &run_isspacep;
  line.instruction.data = take_window(line);
  line.predicate();
  line.value(kB64);
}

// The address of the same place in the shared memory of a block of the cluster.
void run_mapa(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) {
    uint64_t own = warp.value(in.operands[1], lane), rank = warp.value(in.operands[2], lane);
    size_t blocks = warp.block_of.cluster.blocks.size();
    if (rank >= blocks) fail("lane {}: rank {} of a cluster of {} blocks", lane, rank, blocks);
    uint64_t place = own & ((uint64_t{1} << kRankShift) - 1);
    uint64_t peer = (rank + 1) << kRankShift | place;
    if (in.operands[0].bytes == 8) warp.lanes<uint64_t>(in.operands[0])[lane] = peer | in.data;
    if (in.operands[0].bytes == 4) {
      warp.lanes<uint32_t>(in.operands[0])[lane] = static_cast<uint32_t>(peer);
    }
  });
}
void decode_mapa(Line& line) {
  bool is_generic = !line.take("shared::cluster");
  Type type = line.take_type();
  line.instruction.run = &run_mapa;
  line.instruction.data = is_generic ? kSharedWindow : 0;
  line.result(type);
  line.value(type);
  line.value(kU32);
}

constexpr Rule kRules[] = {{"mov", decode_mov},
                           {"cvta", decode_cvta},
                           {"isspacep", decode_isspacep},
                           {"mapa", decode_mapa}};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace banyan::ptx::move
