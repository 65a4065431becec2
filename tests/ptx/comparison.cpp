// setp, selp and slct.
#include <cmath>
#include <concepts>
#include <functional>

#include "ptx/families.h"
#include "ptx/lanes.h"

namespace banyan::ptx::comparison {
namespace {

template <class Compare>
struct Ordered {  // false of NaN
  template <class T>
    requires std::is_arithmetic_v<T>
  static bool of(T a, T b) {
    return Compare()(a, b) && a == a && b == b;
  }
};
template <class Compare>
struct Unordered {  // true of NaN
  template <std::floating_point T>
  static bool of(T a, T b) {
    return Compare()(a, b) || a != a || b != b;
  }
};
struct Numbers {
  template <std::floating_point T>
  static bool of(T a, T b) {
    return a == a && b == b;
  }
};
struct NotNumbers {
  template <std::floating_point T>
  static bool of(T a, T b) {
    return a != a || b != b;
  }
};

// How the outcome is combined with a further predicate.
enum Combine : uint64_t { kNone, kAnd, kOr, kXor };

uint32_t combined(uint64_t combine, uint32_t outcome, uint32_t with) {
  if (combine == kAnd) return outcome & with;
  if (combine == kOr) return outcome | with;
  if (combine == kXor) return outcome ^ with;
  return outcome;
}

// Operands: p, q (which gets the opposite), a, b and, to combine, c.
template <class Op, class T>
void run_setp(Warp& warp, const Instruction& in) {
  auto* a = warp.lanes<Bits<T>>(in.operands[2]);
  auto* b = warp.lanes<Bits<T>>(in.operands[3]);
  uint32_t outcome = 0;
  for_lanes(warp.mask, [&](int lane) {
    bool is = Op::of(std::bit_cast<T>(a[lane]), std::bit_cast<T>(b[lane]));
    outcome |= uint32_t{is} << lane;
  });
  uint32_t with = in.data != kNone ? warp.lanes_of(in.operands[4]) : 0;
  warp.set_predicate(in.operands[0], combined(in.data, outcome, with));
  if (!in.operands[1].sink) warp.set_predicate(in.operands[1], combined(in.data, ~outcome, with));
}

template <class Op>
Instruction::Run setp_run(Type type) {
  return with_type(type, []<class T>() -> Instruction::Run {
    if constexpr (requires { Op::of(T(), T()); }) return &run_setp<Op, T>;
    return nullptr;
  });
}

struct Comparison {
  std::string_view name;
  Instruction::Run (*run)(Type);
};
constexpr Comparison kComparisons[] = {
    {"eq", setp_run<Ordered<std::equal_to<>>>},
    {"lt", setp_run<Ordered<std::less<>>>},
    {"le", setp_run<Ordered<std::less_equal<>>>},
    {"gt", setp_run<Ordered<std::greater<>>>},
    {"ge", setp_run<Ordered<std::greater_equal<>>>},
    {"lo", setp_run<Ordered<std::less<>>>},
    {"ls", setp_run<Ordered<std::less_equal<>>>},
    {"hi", setp_run<Ordered<std::greater<>>>},
    {"hs", setp_run<Ordered<std::greater_equal<>>>},
    {"ne", setp_run<Ordered<std::not_equal_to<>>>},
    {"equ", setp_run<Unordered<std::equal_to<>>>},
    {"neu", setp_run<Unordered<std::not_equal_to<>>>},
    {"ltu", setp_run<Unordered<std::less<>>>},
    {"leu", setp_run<Unordered<std::less_equal<>>>},
    {"gtu", setp_run<Unordered<std::greater<>>>},
    {"geu", setp_run<Unordered<std::greater_equal<>>>},
    {"num", setp_run<Numbers>},
    {"nan", setp_run<NotNumbers>},
};

void decode_setp(Line& line) {
  Type type = line.take_type();
  std::string_view name = line.take_next();
  line.instruction.data = line.take("and")   ? kAnd
                          : line.take("or")  ? kOr
                          : line.take("xor") ? kXor
                                             : kNone;
  for (const Comparison& comparison : kComparisons) {
    if (comparison.name == name) line.instruction.run = comparison.run(type);
  }
  line.result_and_predicate(kPredicateType);
  line.value(type);
  line.value(type);
  if (line.instruction.data != kNone) line.predicate();
}

template <class T>
void run_selp(Warp& warp, const Instruction& in) {
  auto* to = warp.lanes<T>(in.operands[0]);
  auto* a = warp.lanes<T>(in.operands[1]);
  auto* b = warp.lanes<T>(in.operands[2]);
  uint32_t chosen = warp.lanes_of(in.operands[3]);
  for_lanes(warp.mask, [=](int lane) { to[lane] = chosen >> lane & 1 ? a[lane] : b[lane]; });
}

void decode_selp(Line& line) {
  Type type = line.take_type();
  line.instruction.run = type.bytes == 2   ? &run_selp<uint16_t>
                         : type.bytes == 4 ? &run_selp<uint32_t>
                                           : &run_selp<uint64_t>;
  line.result(type);
  line.value(type);
  line.value(type);
  line.predicate();
}

constexpr Rule kRules[] = {{"setp", decode_setp}, {"selp", decode_selp}};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace banyan::ptx::comparison
