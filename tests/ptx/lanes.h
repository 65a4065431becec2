// What most instructions do: the same function of each lane that runs.
#pragma once

#include <bit>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ptx/line.h"
#include "ptx/warp.h"
#include "tensor/float_types.h"

namespace banyan::ptx {

template <size_t Bytes>
using Unsigned = std::conditional_t<
    Bytes == 1, uint8_t,
    std::conditional_t<Bytes == 2, uint16_t, std::conditional_t<Bytes == 4, uint32_t, uint64_t>>>;
template <class T>
using Bits = Unsigned<sizeof(T)>;  // how a register holds a T

template <class Body>
void for_lanes(uint32_t mask, const Body& body) {
  if (mask == kAllLanes) {
#ifndef __clang__
#pragma GCC ivdep  // a lane's result is no other lane's operand
#endif
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1) body(std::countr_zero(mask));
}

// Op::of(D's sources) of each lane. Operands: the result, then the sources.
template <class Op, class D, class... S>
void lanewise(Warp& warp, const Instruction& in) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    auto* to = warp.lanes<Bits<D>>(in.operands[0]);
    std::tuple<const Bits<S>*...> from{warp.lanes<Bits<S>>(in.operands[1 + I])...};
    for_lanes(warp.mask, [to, from](int lane) {
      to[lane] = std::bit_cast<Bits<D>>(D(Op::of(std::bit_cast<S>(std::get<I>(from)[lane])...)));
    });
  }(std::index_sequence_for<S...>());
}

// lanewise for a type: Op::of takes `Count` of it, and nullptr if it does not.
template <class Op, class T, size_t Count>
Instruction::Run lanewise_of() {
  return []<size_t... I>(std::index_sequence<I...>) -> Instruction::Run {
    if constexpr (requires { Op::of(((void)I, T())...); }) {
      return &lanewise<Op, T, std::conditional_t<I == I, T, T>...>;
    } else {
      return nullptr;
    }
  }(std::make_index_sequence<Count>());
}

// Calls body.operator()<T>() for the type of C++; fails for others.
template <class Body>
auto with_type(Type type, const Body& body) {
  bool is_signed = type.kind == Kind::kSigned;
  if (type.kind == Kind::kFloat && type.bytes == 4) return body.template operator()<float>();
  if (type.kind == Kind::kFloat && type.bytes == 8) return body.template operator()<double>();
  if (type.kind == Kind::kFloat && type.bytes == 2) return body.template operator()<Float16>();
  if (type.kind == Kind::kBFloat) return body.template operator()<BFloat16>();
  if (type.bytes == 1 && is_signed) return body.template operator()<int8_t>();
  if (type.bytes == 1) return body.template operator()<uint8_t>();
  if (type.bytes == 2 && is_signed) return body.template operator()<int16_t>();
  if (type.bytes == 2) return body.template operator()<uint16_t>();
  if (type.bytes == 4 && is_signed) return body.template operator()<int32_t>();
  if (type.bytes == 4) return body.template operator()<uint32_t>();
  if (type.bytes == 8 && is_signed) return body.template operator()<int64_t>();
  if (type.bytes == 8) return body.template operator()<uint64_t>();
  fail("an instruction of predicates is needed here");
}

// Decodes `op.type d, a, ...` with Count sources of that type.
template <class Op, size_t Count>
void decode_same(Line& line) {
  Type type = line.take_type();
  line.instruction.run = with_type(type, []<class T>() { return lanewise_of<Op, T, Count>(); });
  line.result(type);
  for (size_t i = 0; i < Count; ++i) line.value(type);
}

}  // namespace banyan::ptx
