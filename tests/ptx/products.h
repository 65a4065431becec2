// The products of wgmma that a warp has begun: its sixteen rows of each. They take effect in order,
// between their issue and the wait that covers them, and read shared memory only then. A product is
// one of the four warps of a warpgroup: it takes effect for all of them at once, after all have
// begun it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "ptx/chance.h"
#include "ptx/instruction.h"

namespace banyan::ptx {

class Products {
 public:
  static constexpr int kDepth = 16;     // columns of a and b
  static constexpr int kWarpRows = 16;  // of the 64 of a warpgroup

  explicit Products(Warp& warp) : warp_(warp) {}

  void fence() { has_fence_ = true; }
  // Operands: d, a (a descriptor or four registers), b's descriptor, whether d is added.
  void begin(const Instruction& in);
  void commit() { ++committed_; }
  // All groups but the last `left` take effect. If other warps have not begun them yet, the warp
  // waits for those and runs the instruction again.
  void wait(uint64_t left);
  // The oldest may take effect.
  void pass(Chance& chance);

  // Fails if the instruction that is about to run touches the result of a product in flight or
  // writes what one reads. A move of such a result becomes part of the queue: then it is not to
  // be run, and the answer is false.
  bool may_run(const Instruction& in);

  bool empty() const { return items_.empty(); }

 private:
  struct Item {
    const Instruction* in;
    uint64_t group;
    uint32_t mask;  // of a move
    bool is_move, adds;
    uint64_t a, b;  // descriptors
  };

  void check_shape(const Instruction& in) const;
  // Of the warpgroup.
  template <class Body>
  void for_warps(const Body& body) const;
  bool all_have_begun(uint64_t count) const;
  void act_of_all(uint64_t count);
  void check_same(const Item& item) const;
  // Of this warp, until `count` products have taken effect.
  void act_until(uint64_t count);
  void act();
  void multiply(const Item& item);
  template <class T>
  void add_products(const Item& item, const uint16_t (*a)[kDepth],
                    const uint16_t (*b)[kDepth]) const;
  void add_integers(const Item& item, const uint16_t (*a)[kDepth],
                    const uint16_t (*b)[kDepth]) const;
  void move(const Item& item);
  void load_registers(const Item& item, uint16_t (*a)[kDepth]) const;
  void load_row(uint64_t descriptor, uint32_t row, uint16_t* to) const;
  void load_transposed(uint64_t descriptor, uint32_t columns, uint16_t (*b)[kDepth]) const;
  void load_chunk(uint64_t address, uint16_t* to) const;
  uint16_t& uses(std::vector<uint16_t>& of, const Operand& operand) const;
  void count(const Item& item, int by);

  Warp& warp_;
  std::deque<Item> items_;
  std::vector<uint16_t> writes_, reads_;  // by how many items in flight, of each register
  uint64_t committed_ = 0;                // groups
  uint64_t begun_ = 0, done_ = 0;         // products
  bool has_fence_ = false;
};

// What Instruction::data of a product says.
struct ProductForm {
  uint32_t columns;
  bool a_in_registers;
  bool b_transposed;  // [16, columns] in memory
  bool integers;      // of 8 bits, two in the place of each bf16
  bool halves;        // f16, not bf16

  uint64_t packed() const {
    return columns | uint64_t{a_in_registers} << 32 | uint64_t{b_transposed} << 33 |
           uint64_t{integers} << 34 | uint64_t{halves} << 35;
  }
  static ProductForm of(const Instruction& in) {
    return {static_cast<uint32_t>(in.data), (in.data >> 32 & 1) != 0, (in.data >> 33 & 1) != 0,
            (in.data >> 34 & 1) != 0, (in.data >> 35 & 1) != 0};
  }
  size_t results() const { return columns / 2; }
};

}  // namespace banyan::ptx
