// A warp of a block while it runs.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "ptx/block.h"
#include "ptx/groups.h"
#include "ptx/instruction.h"
#include "ptx/journal.h"
#include "ptx/products.h"

namespace banyan::ptx {

// Of bar.red: lanes that brought a predicate, and those where it held.
struct Votes {
  uint32_t asked = 0, yes = 0;
};

// Lanes may stand at different instructions. Those that stand at the lowest one run, so that lanes
// come together again by themselves; now and then others do, since a GPU promises progress to all.
class Warp {
 public:
  enum class State : uint8_t { kReady, kBlocked, kExited };

  // `registers` hold entry.register_bytes.
  Warp(Block& block, const Entry& entry, uint32_t index, uint32_t lanes);

  // The lanes of a register or constant.
  template <class T>
  T* lanes(const Operand& operand) const {
    std::byte* base = operand.constant ? constants_ : registers_;
    return reinterpret_cast<T*>(base + operand.at);
  }
  // Where a predicate holds.
  uint32_t lanes_of(const Operand& operand) const {
    uint32_t value = *lanes<uint32_t>(operand);
    return operand.negated ? ~value : value;
  }
  // Of the lanes that run.
  void set_predicate(const Operand& operand, uint32_t value) {
    uint32_t& to = *lanes<uint32_t>(operand);
    to = (to & ~mask) | (value & mask);
  }
  // The value in the first lane that runs, for operands that are the same in all.
  uint64_t uniform(const Operand& operand) const;
  // Of a lane, of whatever size.
  uint64_t value(const Operand& operand, int lane) const;

  // A lane that could run but stands at another instruction than those that do, or -1.
  int lane_elsewhere() const {
    uint32_t lanes = live & ~parked_ & ~active_;
    return lanes != 0 ? std::countr_zero(lanes) : -1;
  }

  // Runs up to `count` instructions. `favoured` is a lane whose place is preferred, or -1.
  void run(int count, int favoured);

  // For instructions that change the flow.
  void branch(uint32_t target);
  void exit();
  // Stops here until release(); then the same instruction runs again if `again`.
  void block(const char* why, bool again);
  void release() {
    if (state == State::kBlocked) state = State::kReady;
  }
  void release_from(std::string_view why) {
    if (state == State::kBlocked && blocked_by == why) state = State::kReady;
  }
  // Lets others run before the next instruction.
  void yield() { yielded_ = true; }

  // Where a lane reads or writes `bytes`; errors name the lane and the address.
  std::byte* memory(Space space, uint64_t address, uint32_t bytes, int lane) {
    bool is_host = space <= Space::kGlobal && address - kHostBegin < kHostEnd - kHostBegin;
    if (!is_host || address % bytes != 0) return other_memory(space, address, bytes, lane);
    return reinterpret_cast<std::byte*>(address);
  }
  std::byte* memory(const Instruction& in, const Operand& address, uint32_t bytes, int lane) {
    uint64_t base =
        address.bytes == 8 ? lanes<uint64_t>(address)[lane] : lanes<uint32_t>(address)[lane];
    return memory(in.space, base + static_cast<uint64_t>(address.offset), bytes, lane);
  }

  // Before a store of a lane.
  void storing(Space space, std::byte* to, size_t bytes) {
    if (journal_ == nullptr || space > Space::kGlobal) return;
    if (space == Space::kGlobal || !is_own(to)) journal_->note(to, bytes);
  }
  // Notes a store of a lane, for what the asynchronous proxy sees of it.
  void stored(Space space, const std::byte* to, size_t bytes, int lane) {
    if (space == Space::kGlobal || space == Space::kLocal) return;
    if (entry.has_products || !block_of.mbarriers.empty()) note_store(to, bytes, lane);
  }
  // What the lanes that run have stored is visible to the asynchronous proxy.
  void fence_proxy() { block_of.proxy.fenced(*this); }

  // The block, the line and the text of the present instruction.
  std::string where() const;
  int line() const { return entry.source(*present_).line; }

  Block& block_of;
  const Entry& entry;
  const uint32_t index;  // in its block
  uint32_t mask = 0;     // the lanes that run the present instruction
  uint32_t live;         // that have not exited
  State state = State::kReady;
  std::string_view blocked_by;
  int failed_waits = 0;  // in a row: of a warp that polls
  uint64_t steps = 0;
  Votes outcome;       // of the last barrier that let it pass
  bool votes = false;  // whether it has arrived at a bar.red whose outcome it has not stored
  uint64_t cluster_phase = 0;       // of the barrier of the cluster that it has arrived at; 0: none
  uint64_t fenced_at[kLanes] = {};  // when lanes last ran a fence of the proxy (Proxy::now)
  uint64_t waited_at = 0;           // when it last waited for others
  uint64_t sees_stores_until = 0;   // of other warps, in its products
  Products products{*this};
  SmallCopies small_copies;
  uint32_t pc = 0;  // of the lanes that run; while an instruction runs, of the next one

 private:
  // Generic addresses below and from here on are no memory of the host (block.h).
  static constexpr uint64_t kHostBegin = 1 << 16, kHostEnd = uint64_t{1} << 48;

  // Whether this is local or shared memory.
  bool is_own(const std::byte* at) const;
  void note_store(const std::byte* to, size_t bytes, int lane);
  void fill_specials();
  void choose();
  bool gather(const Instruction& in);
  [[noreturn]] void fail_diverged() const;
  std::byte* other_memory(Space space, uint64_t address, uint32_t bytes, int lane);

  uint32_t active_;                   // lanes that stand at pc
  uint32_t parked_ = 0;               // lanes that wait for others to come to their instruction
  uint32_t next_other_ = UINT32_MAX;  // the next place of other lanes after pc: there they join
  uint32_t places_[kLanes] = {};      // of lanes that are not active
  int favoured_ = -1;
  bool yielded_ = false;
  Journal* journal_;
  const Instruction* present_ = nullptr;
  std::vector<std::byte> storage_, local_;
  std::byte *registers_, *constants_;
};

}  // namespace banyan::ptx
