// An entry as it runs: every instruction decoded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/type.h"

namespace banyan::ptx {

class Warp;

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffffffff;

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kCluster, kLocal, kParameter };

// A register or a constant: a value of each lane, or the lanes for which a predicate holds.
struct Operand {
  uint32_t at = 0;  // bytes, in the registers of a warp or the constants of the entry
  bool constant = false;
  bool negated = false;  // a predicate's
  uint8_t bytes = 0;     // of a lane's value; 0: a predicate
  bool sink = false;     // `_`: what is written is dropped
  bool is_result = false;
  int64_t offset = 0;  // of an address
};

// Which lanes of a warp must have come to an instruction before it runs.
enum class Together : uint8_t { kNo, kWarp, kMembers /* a mask, the last operand */ };

struct Instruction {
  using Run = void (*)(Warp&, const Instruction&);
  // What products in flight must know of it.
  enum class Role : uint8_t { kOther, kMove32, kProduct };

  Run run = nullptr;
  const Operand* operands = nullptr;
  uint16_t count = 0;
  bool guarded = false;
  Together together = Together::kNo;
  Space space = Space::kGeneric;
  Role role = Role::kOther;
  Operand guard;
  uint32_t target = 0;     // of a branch
  uint64_t data = 0;       // what the handler keeps here: a mode, a count
  uint32_t statement = 0;  // of Entry::statements
};

struct Parameter {
  std::string name;
  size_t offset, bytes;
};

struct Entry {
  struct Source {
    std::string_view text;
    int line;
  };
  // A register that a warp finds filled in, such as %tid.x.
  struct Special {
    std::string name;
    Operand to;
  };

  std::string name;
  std::vector<Parameter> parameters;
  size_t parameter_bytes = 0;
  std::vector<Instruction> code;
  std::vector<Source> sources;
  std::deque<std::vector<Operand>> operands;  // of the instructions: these stay where they are
  std::vector<std::byte> constants;
  std::vector<Special> specials;
  size_t register_bytes = 0;
  size_t static_shared_bytes = 0;  // the dynamic array begins at the next multiple of its alignment
  size_t shared_alignment = 1;
  size_t local_bytes = 0;
  bool has_products = false;  // of wgmma

  const Source& source(const Instruction& in) const { return sources[in.statement]; }
};

}  // namespace banyan::ptx
