// cp.async and st.async: copies and stores into shared memory that take effect later.
#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/cuda/shared_layout.h"
#include "ptx/families.h"
#include "ptx/grid.h"
#include "ptx/lanes.h"
#include "ptx/tensor_map.h"

namespace banyan::ptx::copies {
namespace {

constexpr uint64_t kUnit = 16;  // bytes: of alignments and sizes of a bulk copy

struct Bulk {
  Block* block;  // whose shared memory it goes to
  uint64_t to;   // an address there
  const std::byte* from;
  uint64_t bytes;
  uint64_t barrier;        // an address there
  uint64_t row_bytes = 0;  // of a box: from one of its rows to the next
};

// What goes to a unit at `offset`. Rows of a box are 128 bytes, whose units change places.
const std::byte* source_of(const Bulk& bulk, uint64_t offset) {
  if (bulk.row_bytes == 0) return bulk.from + offset;
  uint64_t at = bulk.to + offset, in_row = (at ^ (at >> 7 & 7) << 4) % cuda::kTileRowBytes;
  return bulk.from + offset / cuda::kTileRowBytes * bulk.row_bytes + in_row;
}

void copy_piece(const Bulk& bulk, uint64_t begin, uint64_t bytes) {
  Mbarrier& barrier = bulk.block->mbarriers.at(bulk.barrier);
  for (uint64_t done = 0; done < bytes; done += kUnit) {
    std::memcpy(bulk.block->memory(bulk.to + begin + done, 1, 0), source_of(bulk, begin + done),
                std::min(kUnit, bytes - done));
  }
  barrier.bytes -= static_cast<int64_t>(bytes);
  barrier.complete_if_all_came();
  --bulk.block->copies_in_flight;
}

// What it overwrites is lost from now on.
void lose(const Bulk& bulk) {
  Block& block = *bulk.block;
  if (!block.mbarriers.at(bulk.barrier).fenced) {
    fail("no fence has shown the mbarrier at {:#x} to the asynchronous proxy", bulk.barrier);
  }
  if (block.live_warps == 0) fail("the block of rank {} has exited", block.rank);
  block.memory(bulk.to, static_cast<uint32_t>(bulk.bytes), 0);
  std::memset(block.memory(bulk.to, 1, 0), 0xff, bulk.bytes);
  block.written_by_copy(bulk.to, bulk.bytes);
}

// The bytes come in pieces.
void begin(Warp& warp, const Bulk& bulk) {
  lose(bulk);
  Block& block = *bulk.block;
  Grid& grid = warp.block_of.grid;
  uint64_t units = bulk.bytes / kUnit;
  for (uint64_t done = 0; done < units;) {
    uint64_t count = grid.chance.one_in(2) ? units - done : 1 + grid.chance.below(units - done);
    ++block.copies_in_flight;
    grid.later.add(warp.where(),
                   [bulk, done, count] { copy_piece(bulk, done * kUnit, count * kUnit); });
    done += count;
  }
}

// Operands: where to, where from, the bytes, the mbarrier and, to copy to several blocks of the
// cluster, a mask of their ranks.
void run_bulk(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) {
    auto address = [&](int operand) {
      return warp.value(in.operands[operand], lane) +
             static_cast<uint64_t>(in.operands[operand].offset);
    };
    uint64_t to = address(0), from = address(1), barrier = address(3);
    uint64_t bytes = warp.value(in.operands[2], lane);
    if (to % kUnit != 0 || from % kUnit != 0 || bytes % kUnit != 0 || bytes == 0) {
      fail("lane {}: a bulk copy of {} bytes from {:#x} to {:#x}: all must be multiples of 16",
           lane, bytes, from, to);
    }
    auto* source = warp.memory(Space::kGlobal, from, 1, lane);
    Cluster& cluster = warp.block_of.cluster;
    Bulk bulk{&cluster.owner(warp.block_of, to), shared_place(to), source, bytes,
              shared_place(barrier)};
    if (in.count <= 4) {
      if (&cluster.owner(warp.block_of, barrier) != bulk.block) {
        fail("lane {}: the mbarrier is not in the block that the bytes go to", lane);
      }
      return begin(warp, bulk);
    }
    uint64_t ranks = warp.value(in.operands[4], lane);
    for (size_t rank = 0; rank < cluster.blocks.size(); ++rank) {
      bulk.block = cluster.blocks[rank].get();
      if (ranks >> rank & 1) begin(warp, bulk);
    }
  });
}

// Operands: where to, the tensor map, a column and a row of its matrix, the mbarrier.
void run_tensor(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) {
    auto address = [&](int operand) {
      return warp.value(in.operands[operand], lane) +
             static_cast<uint64_t>(in.operands[operand].offset);
    };
    constexpr uint64_t kSwizzleBytes = 8 * cuda::kTileRowBytes;  // that the places repeat after
    auto map = read_map(warp.memory(Space::kGeneric, address(1), alignof(cuda::TensorMap), lane));
    int64_t column = warp.lanes<int32_t>(in.operands[2])[lane];
    int64_t row = warp.lanes<int32_t>(in.operands[3])[lane];
    uint64_t to = address(0), barrier = address(4);
    if (to % kSwizzleBytes != 0) fail("lane {}: a box goes to {:#x}", lane, to);
    if (row < 0 || column < 0 || column % 8 != 0 || column + 64 > map.width) {
      fail("lane {}: a box at row {} and column {} of {}", lane, row, column, map.width);
    }
    Cluster& cluster = warp.block_of.cluster;
    auto row_bytes = static_cast<uint64_t>(map.width) * 2;
    const auto* from = static_cast<const std::byte*>(map.pool) +
                       static_cast<uint64_t>(row) * row_bytes + static_cast<uint64_t>(column) * 2;
    begin(warp, {&cluster.owner(warp.block_of, to), shared_place(to), from,
                 static_cast<uint64_t>(map.box_rows) * cuda::kTileRowBytes, shared_place(barrier),
                 row_bytes});
  });
}

// Operands: where to, words of four bytes, the mbarrier. Both are in the same block.
void run_store(Warp& warp, const Instruction& in) {
  size_t count = in.count - 2u;
  for_lanes(warp.mask, [&](int lane) {
    auto address = [&](size_t operand) {
      return warp.value(in.operands[operand], lane) +
             static_cast<uint64_t>(in.operands[operand].offset);
    };
    uint64_t to = address(0), barrier = address(count + 1), bytes = count * sizeof(uint32_t);
    if (to % bytes != 0) fail("lane {}: {} bytes at {:#x}", lane, bytes, to);
    Cluster& cluster = warp.block_of.cluster;
    Block& block = cluster.owner(warp.block_of, to);
    if (&cluster.owner(warp.block_of, barrier) != &block) {
      fail("lane {}: the mbarrier is not in the block that is stored to", lane);
    }
    std::array<uint32_t, 4> words;
    for (size_t i = 0; i < count; ++i) words[i] = warp.lanes<uint32_t>(in.operands[1 + i])[lane];
    Bulk bulk{&block, shared_place(to), nullptr, bytes, shared_place(barrier)};
    lose(bulk);
    ++block.copies_in_flight;
    warp.block_of.grid.later.add(warp.where(), [bulk, words]() mutable {
      bulk.from = reinterpret_cast<const std::byte*>(words.data());
      copy_piece(bulk, 0, bulk.bytes);
    });
  });
}

void decode_tensor(Line& line) {
  for (const char* word : {"2d", "shared::cluster", "global", "tile"}) line.need(word);
  line.need("mbarrier::complete_tx::bytes");
  line.instruction.run = &run_tensor;
  line.address();
  if (line.address_and_values(kU32) != 2) fail("a box of a matrix needs a column and a row");
  line.address();
}

void decode_bulk(Line& line) {
  if (line.take("tensor")) return decode_tensor(line);
  if (!line.take("shared::cluster")) line.need("shared::cta");
  line.need("global");
  line.need("mbarrier::complete_tx::bytes");
  bool is_multicast = line.take("multicast::cluster"), has_hint = line.take("L2::cache_hint");
  line.instruction.run = &run_bulk;
  line.address();
  line.address();
  line.value(kU32);
  line.address();
  if (is_multicast) line.value(kB16);
  if (has_hint) line.text();
}

// Operands: where to, where from, the bytes to read, the rest of which are zeros.
template <size_t Bytes>
void run_small(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) {
    auto* to =
        warp.memory(Space::kShared,
                    warp.value(in.operands[0], lane) + static_cast<uint64_t>(in.operands[0].offset),
                    Bytes, lane);
    uint64_t read = in.count > 2 ? warp.value(in.operands[2], lane) : Bytes;
    if (read > Bytes) fail("lane {}: reads {} bytes of {}", lane, read, Bytes);
    const std::byte* from = nullptr;
    if (read > 0) {
      from = warp.memory(
          Space::kGlobal,
          warp.value(in.operands[1], lane) + static_cast<uint64_t>(in.operands[1].offset), Bytes,
          lane);
    }
    std::memset(to, 0xff, Bytes);
    warp.small_copies.add(lane, [&warp, to, from, read, lane] {
      std::memset(to, 0, Bytes);
      if (read > 0) std::memcpy(to, from, read);
      warp.stored(Space::kShared, to, Bytes, lane);
    });
  });
}

void run_commit(Warp& warp, const Instruction&) {
  for_lanes(warp.mask, [&](int lane) { warp.small_copies.commit(lane); });
}
void run_wait(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) { warp.small_copies.wait(lane, in.data); });
}
void run_wait_all(Warp& warp, const Instruction&) {
  for_lanes(warp.mask, [&](int lane) {
    warp.small_copies.commit(lane);
    warp.small_copies.wait(lane, 0);
  });
}

// An arrival once the lane's copies so far have taken effect; later ones may have, too.
void run_arrive(Warp& warp, const Instruction& in) {
  for_lanes(warp.mask, [&](int lane) {
    warp.memory(Space::kShared, warp.value(in.operands[0], lane), Mbarriers::kBytes, lane);
    uint64_t address = warp.value(in.operands[0], lane);
    ++warp.block_of.copies_in_flight;
    warp.block_of.grid.later.add(warp.where(), [&warp, lane, address] {
      warp.small_copies.commit(lane);
      warp.small_copies.wait(lane, 0);
      warp.block_of.mbarriers.at(shared_place(address)).arrive(1);
      --warp.block_of.copies_in_flight;
    });
  });
}

void decode_arrive(Line& line) {
  for (const char* word : {"arrive", "noinc", "shared::cta", "b64"}) line.need(word);
  line.instruction.run = &run_arrive;
  line.address();
}

void decode_small(Line& line) {
  if (!line.take("cg")) line.need("ca");
  if (!line.take("shared")) line.need("shared::cta");
  line.need("global");
  while (!line.take_prefix("L2::").empty()) {
  }
  line.address();
  line.address();
  uint64_t bytes = line.number();
  line.instruction.run = bytes == 16  ? &run_small<16>
                         : bytes == 8 ? &run_small<8>
                         : bytes == 4 ? &run_small<4>
                                      : nullptr;
  if (line.left() > 0) line.value(kU32);
}

void decode_cp(Line& line) {
  line.need("async");
  if (line.take("bulk")) return decode_bulk(line);
  if (line.take("mbarrier")) return decode_arrive(line);
  if (line.take("commit_group")) {
    line.instruction.run = &run_commit;
  } else if (line.take("wait_group")) {
    line.instruction.run = &run_wait;
    line.instruction.data = line.number();
  } else if (line.take("wait_all")) {
    line.instruction.run = &run_wait_all;
  } else {
    decode_small(line);
  }
}

// What caches are to keep changes nothing that a program could see.
void run_policy(Warp& warp, const Instruction& in) {
  auto* to = warp.lanes<uint64_t>(in.operands[0]);
  for_lanes(warp.mask, [&](int lane) { to[lane] = 0; });
}

void decode_policy(Line& line) {
  line.need("fractional");
  while (!line.take_prefix("L2::").empty()) {
  }
  line.need("b64");
  line.instruction.run = &run_policy;
  line.result(kB64);
  if (line.left() > 0) line.text();  // for how much of what is read
}

constexpr Rule kRules[] = {{"cp", decode_cp}, {"createpolicy", decode_policy}};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

void decode_store(Line& line) {
  line.take("weak");
  line.need("shared::cluster");
  line.need("mbarrier::complete_tx::bytes");
  size_t count = line.take("v2") ? 2 : line.take("v4") ? 4 : 1;
  Type type = line.take_type();
  line.instruction.run = &run_store;
  line.address();
  if (type.bytes != 4 || line.values(type, true, false) != count) {
    fail("st.async needs {} values of four bytes", count);
  }
  line.address();
}

}  // namespace banyan::ptx::copies
