#include "ptx/products.h"

#include <bit>
#include <cstring>

#include "kernels/cuda/emulated/tensor_gemm.h"
#include "ptx/text.h"
#include "ptx/warp.h"

namespace banyan::ptx {
namespace {

constexpr uint32_t kRegisterUnit = 32;  // bytes: registers begin at multiples of it
constexpr uint32_t kChunk = 16, kChunkValues = kChunk / 2;  // bytes that the swizzle keeps together

// The fields of a matrix descriptor (kernels/cuda/shared_layout.h writes them).
struct Descriptor {
  explicit Descriptor(uint64_t bits)
      : begin((bits & 0x3fff) << 4),
        block_stride((bits >> 16 & 0x3fff) << 4),
        group_stride((bits >> 32 & 0x3fff) << 4) {
    if (bits >> 62 != 1) fail("the descriptor {:#x} has no swizzle of 128 bytes", bits);
    if ((bits >> 49 & 7) != 0) fail("the descriptor {:#x} has a base offset", bits);
  }
  // The address of byte `column` of a row, where blocks of 64 columns follow each other.
  uint64_t address(uint32_t row, uint32_t column) const {
    uint64_t block = column / kRowBytes * block_stride;
    uint64_t plain =
        begin + block + row / 8 * group_stride + row % 8 * kRowBytes + column % kRowBytes;
    return plain ^ ((plain >> 7 & 7) << 4);
  }
  static constexpr uint32_t kRowBytes = 128;
  uint64_t begin, block_stride, group_stride;
};

constexpr size_t kGroupWarps = 4;
constexpr const char* kOthers = "a product that other warps have not begun";

bool is_product(const Instruction& in) {
  return in.role == Instruction::Role::kProduct;
}

}  // namespace

uint16_t& Products::uses(std::vector<uint16_t>& of, const Operand& operand) const {
  if (of.empty()) of.resize(warp_.entry.register_bytes / kRegisterUnit + 1);
  return of[operand.at / kRegisterUnit];
}

// Counts what an item writes and reads.
void Products::count(const Item& item, int by) {
  const Operand* operands = item.in->operands;
  auto add = [&](uint16_t& to) { to = static_cast<uint16_t>(to + by); };
  if (item.is_move) return add(uses(writes_, operands[0]));
  ProductForm form = ProductForm::of(*item.in);
  for (size_t i = 0; i < form.results(); ++i) add(uses(writes_, operands[i]));
  for (size_t i = 0; form.a_in_registers && i < 4; ++i) {
    add(uses(reads_, operands[form.results() + i]));
  }
}

void Products::check_shape(const Instruction& in) const {
  ProductForm form = ProductForm::of(in);
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    if (item->is_move) continue;
    const Operand *ours = in.operands, *theirs = item->in->operands;
    bool same = ProductForm::of(*item->in).columns == form.columns;
    for (size_t i = 0; same && i < form.results(); ++i) same = ours[i].at == theirs[i].at;
    if (same) return;
  }
  fail("it accumulates in registers of a product of another shape that is in flight");
}

void Products::begin(const Instruction& in) {
  if (!has_fence_) fail("there was no wgmma.fence before it");
  if (warp_.mask != kAllLanes) fail("not all lanes of the warp run it");
  ProductForm form = ProductForm::of(in);
  const Operand* sources = in.operands + form.results();
  bool in_flight = false;
  for (size_t i = 0; i < form.results(); ++i) {
    in_flight = in_flight || uses(writes_, in.operands[i]) > 0;
  }
  if (in_flight) check_shape(in);
  uint32_t adds = warp_.lanes_of(in.operands[in.count - 1]);
  if (adds != 0 && adds != kAllLanes) fail("its lanes do not agree on whether to accumulate");
  uint64_t a = form.a_in_registers ? 0 : warp_.uniform(sources[0]);
  uint64_t b = warp_.uniform(sources[form.a_in_registers ? 4 : 1]);
  items_.push_back({&in, committed_, kAllLanes, false, adds != 0, a, b});
  count(items_.back(), 1);
  ++begun_;
  for_warps([](Warp& warp) { warp.release_from(kOthers); });
}

template <class Body>
void Products::for_warps(const Body& body) const {
  auto& warps = warp_.block_of.warps;
  size_t first = warp_.index / kGroupWarps * kGroupWarps;
  if (first + kGroupWarps > warps.size()) fail("there are no {} warps of a warpgroup", kGroupWarps);
  for (size_t i = first; i < first + kGroupWarps; ++i) body(*warps[i]);
}

bool Products::all_have_begun(uint64_t count) const {
  bool all = true;
  for_warps([&](Warp& warp) { all = all && warp.products.begun_ >= count; });
  return all;
}

// What differs between the warps of a warpgroup is their rows.
void Products::check_same(const Item& item) const {
  for_warps([&](Warp& warp) {
    for (const Item& other : warp.products.items_) {
      if (other.is_move) continue;
      bool same =
          other.in == item.in && other.a == item.a && other.b == item.b && other.adds == item.adds;
      if (!same) fail("warps {} and {} of a warpgroup have begun others", warp_.index, warp.index);
      break;
    }
  });
}

void Products::act_of_all(uint64_t count) {
  while (done_ < count) {
    uint64_t next = done_ + 1;
    for (const Item& item : items_) {
      if (item.is_move) continue;
      check_same(item);
      break;
    }
    for_warps([&](Warp& warp) { warp.products.act_until(next); });
  }
}

void Products::act_until(uint64_t count) {
  while (done_ < count) act();
}

void Products::wait(uint64_t left) {
  auto is_due = [&](const Item& item) { return item.group + left < committed_; };
  uint64_t count = done_;
  for (const Item& item : items_) count += is_due(item) && !item.is_move;
  if (count > done_ && !all_have_begun(count)) {
    warp_.block(kOthers, true);
    return;
  }
  act_of_all(count);
  while (!items_.empty() && is_due(items_.front())) act();  // moves
}

void Products::pass(Chance& chance) {
  while (done_ < begun_ && chance.one_in(8) && all_have_begun(done_ + 1)) act_of_all(done_ + 1);
}

bool Products::may_run(const Instruction& in) {
  bool is_plain_move = in.role == Instruction::Role::kMove32;
  if (is_plain_move && !in.operands[1].constant && uses(writes_, in.operands[1]) > 0) {
    items_.push_back({&in, committed_, warp_.mask, true, false, 0, 0});
    count(items_.back(), 1);
    return false;
  }
  for (uint16_t i = 0; i < in.count; ++i) {
    const Operand& operand = in.operands[i];
    if (operand.constant || operand.sink || operand.bytes == 0) continue;
    bool is_result = is_product(in) && i < ProductForm::of(in).results();
    if (uses(writes_, operand) > 0 && !is_result) {
      fail("it touches the result of a product that is in flight");
    }
    if (operand.is_result && uses(reads_, operand) > 0) {
      fail("it writes a register that a product in flight reads");
    }
  }
  return true;
}

void Products::act() {
  Item item = items_.front();
  items_.pop_front();
  count(item, -1);
  if (!item.is_move) ++done_;
  try {
    if (item.is_move) move(item);
    if (!item.is_move) multiply(item);
  } catch (const Error& error) {
    const Entry::Source& source = warp_.entry.source(*item.in);
    fail("the product of line {}: {}", source.line, error.what());
  }
}

void Products::move(const Item& item) {
  auto* to = warp_.lanes<uint32_t>(item.in->operands[0]);
  auto* from = warp_.lanes<uint32_t>(item.in->operands[1]);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (item.mask >> lane & 1) to[lane] = from[lane];
  }
}

void Products::load_chunk(uint64_t address, uint16_t* to) const {
  const std::byte* from = warp_.block_of.memory(address, kChunk, 0);
  warp_.block_of.proxy.check(warp_, address);
  std::memcpy(to, from, kChunk);
}

void Products::load_row(uint64_t descriptor, uint32_t row, uint16_t* to) const {
  for (uint32_t column = 0; column < kDepth; column += kChunkValues) {
    load_chunk(Descriptor(descriptor).address(row, column * 2), to + column);
  }
}

void Products::load_transposed(uint64_t descriptor, uint32_t columns, uint16_t (*b)[kDepth]) const {
  for (uint32_t row = 0; row < kDepth; ++row) {
    for (uint32_t column = 0; column < columns; column += kChunkValues) {
      uint16_t values[kChunkValues];
      load_chunk(Descriptor(descriptor).address(row, column * 2), values);
      for (uint32_t i = 0; i < kChunkValues; ++i) b[column + i][row] = values[i];
    }
  }
}

void Products::load_registers(const Item& item, uint16_t (*a)[kDepth]) const {
  const Operand* registers = item.in->operands + ProductForm::of(*item.in).results();
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 4; ++i) {
      uint32_t pair = warp_.lanes<uint32_t>(registers[i])[lane];
      uint16_t* to = &a[lane / 4 + i % 2 * 8][lane % 4 * 2 + i / 2 * 8];
      to[0] = static_cast<uint16_t>(pair);
      to[1] = static_cast<uint16_t>(pair >> 16);
    }
  }
}

// Two integers of 8 bits are in the place of each value.
void Products::add_integers(const Item& item, const uint16_t (*a)[kDepth],
                            const uint16_t (*b)[kDepth]) const {
  for (size_t i = 0; i < ProductForm::of(*item.in).results(); ++i) {
    auto* d = warp_.lanes<int32_t>(item.in->operands[i]);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      size_t row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      int32_t sum = item.adds ? d[lane] : 0;
      for (int c = 0; c < kDepth; ++c) {
        for (int shift : {0, 8}) {
          sum +=
              static_cast<int8_t>(a[row][c] >> shift) * static_cast<int8_t>(b[column][c] >> shift);
        }
      }
      d[lane] = sum;
    }
  }
}

template <class T>
void Products::add_products(const Item& item, const uint16_t (*a)[kDepth],
                            const uint16_t (*b)[kDepth]) const {
  using Operands = std::vector<cuda::emulated::WgmmaOperand>;
  static thread_local Operands rows(kWarpRows), columns(256);  // they keep their memory
  ProductForm form = ProductForm::of(*item.in);
  auto assign = [](Operands& to, size_t count, const uint16_t(*from)[kDepth]) {
    for (size_t i = 0; i < count; ++i) {
      T values[kDepth];
      for (size_t c = 0; c < kDepth; ++c) values[c].bits = from[i][c];
      to[i].assign(values, kDepth);
    }
  };
  assign(rows, kWarpRows, a);
  assign(columns, form.columns, b);
  for (size_t i = 0; i < form.results(); ++i) {
    auto* d = warp_.lanes<uint32_t>(item.in->operands[i]);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      size_t row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      float sum = item.adds ? std::bit_cast<float>(d[lane]) : 0;
      d[lane] = std::bit_cast<uint32_t>(wgmma_step(sum, rows[row], columns[column], 0));
    }
  }
}

void Products::multiply(const Item& item) {
  ProductForm form = ProductForm::of(*item.in);
  uint16_t a[kWarpRows][kDepth], b[256][kDepth];
  if (form.a_in_registers) load_registers(item, a);
  for (uint32_t row = 0; row < kWarpRows && !form.a_in_registers; ++row) {
    load_row(item.a, warp_.index % 4 * kWarpRows + row, a[row]);
  }
  if (form.b_transposed) load_transposed(item.b, form.columns, b);
  for (uint32_t column = 0; column < form.columns && !form.b_transposed; ++column) {
    load_row(item.b, column, b[column]);
  }
  if (form.integers) return add_integers(item, a, b);
  form.halves ? add_products<Float16>(item, a, b) : add_products<BFloat16>(item, a, b);
}

}  // namespace banyan::ptx
