// Logic, shifts and fields of bits. Predicates are masks of lanes.
#include <algorithm>
#include <concepts>

#include "ptx/families.h"
#include "ptx/lanes.h"

namespace banyan::ptx::bits {
namespace {

struct And {
  template <std::integral T>
  static T of(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <std::integral T>
  static T of(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <std::integral T>
  static T of(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <std::integral T>
  static T of(T a) {
    return static_cast<T>(~a);
  }
};

// Further than the width: as if bit by bit.
struct ShiftLeft {
  template <std::integral T>
  static T of(T a, uint32_t by) {
    return by < 8 * sizeof(T) ? static_cast<T>(static_cast<Bits<T>>(a) << by) : T{0};
  }
};
struct ShiftRight {
  template <std::integral T>
  static T of(T a, uint32_t by) {
    constexpr uint32_t kLast = 8 * sizeof(T) - 1;
    if (by <= kLast) return static_cast<T>(a >> by);
    return a < 0 ? static_cast<T>(-1) : T{0};
  }
};

// d = (b:a) shifted by c; .clamp keeps at most 32, .wrap takes c modulo 32.
template <bool Left, bool Wrap>
struct Funnel {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    uint64_t pair = uint64_t{b} << 32 | a;
    uint32_t by = Wrap ? c & 31 : c < 32 ? c : 32;
    return static_cast<uint32_t>(Left ? pair << by >> 32 : pair >> by);
  }
};

// Bytes of b:a chosen by the nibbles of c; a nibble's top bit repeats the byte's sign.
struct Permute {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    uint64_t pair = uint64_t{b} << 32 | a;
    uint32_t all = 0;
    for (int i = 0; i < 4; ++i) {
      uint32_t nibble = c >> (4 * i) & 15;
      uint32_t byte = pair >> (8 * (nibble & 7)) & 0xff;
      if (nibble > 7) byte = byte > 0x7f ? 0xff : 0;
      all |= byte << (8 * i);
    }
    return all;
  }
};

struct Population {
  template <std::unsigned_integral T>
  static uint32_t of(T a) {
    return static_cast<uint32_t>(std::popcount(a));
  }
};
struct LeadingZeros {
  template <std::unsigned_integral T>
  static uint32_t of(T a) {
    return static_cast<uint32_t>(std::countl_zero(a));
  }
};
struct Reverse {
  template <std::unsigned_integral T>
  static T of(T a) {
    T reversed = 0;
    for (size_t i = 0; i < 8 * sizeof(T); ++i) reversed |= (a >> i & 1) << (8 * sizeof(T) - 1 - i);
    return reversed;
  }
};
// A field, and its sign above it if T has one.
struct Extract {
  template <std::integral T>
  static T of(T a, uint32_t position, uint32_t length) {
    constexpr uint32_t kWidth = 8 * sizeof(T);
    auto bits = static_cast<Bits<T>>(a);
    auto bit = [&](uint32_t i) { return bits >> i & 1; };
    position &= 0xff;
    length &= 0xff;
    bool sign =
        std::is_signed_v<T> && length > 0 && bit(std::min(position + length - 1, kWidth - 1)) != 0;
    Bits<T> field = 0;
    for (uint32_t i = 0; i < kWidth; ++i) {
      bool in = i < length && position + i < kWidth;
      field |= Bits<T>{in ? bit(position + i) != 0 : sign} << i;
    }
    return static_cast<T>(field);
  }
};
struct Insert {  // of a into b
  template <std::unsigned_integral T>
  static T of(T a, T b, uint32_t position, uint32_t length) {
    T ones = ShiftRight::of(static_cast<T>(-1),
                            8 * sizeof(T) - std::min<uint32_t>(length & 0xff, 8 * sizeof(T)));
    T field = ShiftLeft::of(ones, position & 0xff);
    return (b & ~field) | (ShiftLeft::of(a, position & 0xff) & field);
  }
};

template <class Op>
void on_predicates(Warp& warp, const Instruction& in) {
  uint32_t a = warp.lanes_of(in.operands[1]);
  uint32_t b = in.count > 2 ? warp.lanes_of(in.operands[2]) : 0;
  uint32_t value = 0;
  if constexpr (requires { Op::of(a, b); }) {
    value = Op::of(a, b);
  } else {
    value = Op::of(a);
  }
  warp.set_predicate(in.operands[0], value);
}

template <class Op, size_t Count>
void decode_logic(Line& line) {
  if (!line.take("pred")) return decode_same<Op, Count>(line);
  line.instruction.run = &on_predicates<Op>;
  for (size_t i = 0; i < Count + 1; ++i) line.predicate();
}

template <class Op>
void decode_shift(Line& line) {
  Type type = line.take_type();
  line.instruction.run = with_type(type, []<class T>() -> Instruction::Run {
    if constexpr (std::integral<T>) return &lanewise<Op, T, T, uint32_t>;
    return nullptr;
  });
  line.result(type);
  line.value(type);
  line.value(kU32);
}

void decode_funnel(Line& line) {
  bool left = line.take("l"), wrap = line.take("wrap");
  if (!left) line.need("r");
  if (!wrap) line.need("clamp");
  line.need("b32");
  using U = uint32_t;
  line.instruction.run = left   ? wrap ? &lanewise<Funnel<true, true>, U, U, U, U>
                                       : &lanewise<Funnel<true, false>, U, U, U, U>
                           : wrap ? &lanewise<Funnel<false, true>, U, U, U, U>
                                : &lanewise<Funnel<false, false>, U, U, U, U>;
  line.result(kB32);
  for (int i = 0; i < 3; ++i) line.value(kB32);
}

// Counts are u32 whatever the width.
template <class Op>
void decode_count(Line& line) {
  Type type = line.take_type();
  line.instruction.run =
      type.bytes == 8 ? &lanewise<Op, uint32_t, uint64_t> : &lanewise<Op, uint32_t, uint32_t>;
  line.result(kU32);
  line.value(type);
}

void decode_extract(Line& line) {
  Type type = line.take_type();
  line.instruction.run = with_type(type, []<class T>() -> Instruction::Run {
    if constexpr (std::integral<T>) return &lanewise<Extract, T, T, uint32_t, uint32_t>;
    return nullptr;
  });
  line.result(type);
  line.value(type);
  line.value(kU32);
  line.value(kU32);
}

void decode_insert(Line& line) {
  Type type = line.take_type();
  line.instruction.run = type.bytes == 8
                             ? &lanewise<Insert, uint64_t, uint64_t, uint64_t, uint32_t, uint32_t>
                             : &lanewise<Insert, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
  line.result(type);
  line.value(type);
  line.value(type);
  line.value(kU32);
  line.value(kU32);
}

// Any function of three bits: its table is the immediate.
void run_lookup(Warp& warp, const Instruction& in) {
  auto* to = warp.lanes<uint32_t>(in.operands[0]);
  auto* a = warp.lanes<uint32_t>(in.operands[1]);
  auto* b = warp.lanes<uint32_t>(in.operands[2]);
  auto* c = warp.lanes<uint32_t>(in.operands[3]);
  for_lanes(warp.mask, [&](int lane) {
    uint32_t value = 0;
    for (uint32_t row = 0; row < 8; ++row) {
      if ((in.data >> row & 1) == 0) continue;
      value |= (row & 4 ? a[lane] : ~a[lane]) & (row & 2 ? b[lane] : ~b[lane]) &
               (row & 1 ? c[lane] : ~c[lane]);
    }
    to[lane] = value;
  });
}
void decode_lookup(Line& line) {
  line.need("b32");
  line.instruction.run = &run_lookup;
  line.result(kB32);
  for (int i = 0; i < 3; ++i) line.value(kB32);
  line.instruction.data = line.number();
}

void decode_permute(Line& line) {
  line.need("b32");
  line.instruction.run = &lanewise<Permute, uint32_t, uint32_t, uint32_t, uint32_t>;
  line.result(kB32);
  for (int i = 0; i < 3; ++i) line.value(kB32);
}

constexpr Rule kRules[] = {
    {"and", decode_logic<And, 2>},
    {"or", decode_logic<Or, 2>},
    {"xor", decode_logic<Xor, 2>},
    {"not", decode_logic<Not, 1>},
    {"shl", decode_shift<ShiftLeft>},
    {"shr", decode_shift<ShiftRight>},
    {"shf", decode_funnel},
    {"prmt", decode_permute},
    {"popc", decode_count<Population>},
    {"clz", decode_count<LeadingZeros>},
    {"brev", decode_same<Reverse, 1>},
    {"bfe", decode_extract},
    {"bfi", decode_insert},
    {"lop3", decode_lookup},
};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace banyan::ptx::bits
