// Arithmetic of integers and of IEEE floats. A result of f32 that is NaN has the bits of a GPU.
#include <cmath>
#include <concepts>
#include <limits>

#include "ptx/families.h"
#include "ptx/lanes.h"
#include "tensor/float_types.h"

namespace banyan::ptx::arithmetic {
namespace {

template <class T>
concept Integer = std::integral<T>;
template <class T>
concept Float = std::same_as<T, float> || std::same_as<T, double>;

template <Float T>
T rounded(T x) {
  if constexpr (sizeof(T) == 4) {
    if (x != x) return std::bit_cast<float>(0x7fffffffu);
  }
  return x;
}

// Integers wrap around: they are computed without sign, as 64 bits.
template <Integer T>
uint64_t wide(T x) {
  return static_cast<uint64_t>(x);
}

struct Add {
  static auto of(Integer auto a, decltype(a) b) {
    return static_cast<decltype(a)>(wide(a) + wide(b));
  }
  static auto of(Float auto a, decltype(a) b) { return rounded(a + b); }
};
struct Subtract {
  static auto of(Integer auto a, decltype(a) b) {
    return static_cast<decltype(a)>(wide(a) - wide(b));
  }
  static auto of(Float auto a, decltype(a) b) { return rounded(a - b); }
};
struct Multiply {
  static auto of(Integer auto a, decltype(a) b) {
    return static_cast<decltype(a)>(wide(a) * wide(b));
  }
  static auto of(Float auto a, decltype(a) b) { return rounded(a * b); }
};
struct Divide {
  static auto of(Integer auto a, decltype(a) b) {
    using T = decltype(a);
    if (b == 0) return static_cast<T>(-1);  // what a GPU gives; the specification says nothing
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(-wide(a));
    }
    return static_cast<T>(a / b);
  }
  static auto of(Float auto a, decltype(a) b) { return rounded(a / b); }
};
struct Remainder {
  static auto of(Integer auto a, decltype(a) b) {
    using T = decltype(a);
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(0);
    }
    return static_cast<T>(a % b);
  }
};
struct Fused {
  static auto of(Float auto a, decltype(a) b, decltype(a) c) { return rounded(std::fma(a, b, c)); }
};

// Of a number and NaN: the number. -0 is less than 0.
template <Float T>
T extreme(T a, T b, bool largest) {
  if (a != a) return rounded(b);
  if (b != b) return a;
  if (a == b) return std::signbit(a) == largest ? b : a;
  return (a < b) == largest ? b : a;
}
struct Least {
  static auto of(Integer auto a, decltype(a) b) { return b < a ? b : a; }
  static auto of(Float auto a, decltype(a) b) { return extreme(a, b, false); }
};
struct Largest {
  static auto of(Integer auto a, decltype(a) b) { return a < b ? b : a; }
  static auto of(Float auto a, decltype(a) b) { return extreme(a, b, true); }
};

// The same, but NaN if one of them is.
template <class Op>
struct OrNan {
  static auto of(Float auto a, decltype(a) b) {
    return a != a || b != b ? rounded(a + b) : Op::of(a, b);
  }
};

struct Negate {
  static auto of(Integer auto a) { return static_cast<decltype(a)>(-wide(a)); }
  static auto of(Float auto a) { return -a; }
};
struct Magnitude {
  static auto of(Integer auto a) { return static_cast<decltype(a)>(a < 0 ? -wide(a) : wide(a)); }
  static auto of(Float auto a) { return std::fabs(a); }
};
struct SquareRoot {
  static auto of(Float auto a) { return rounded(std::sqrt(a)); }
};
struct Reciprocal {
  static auto of(Float auto a) { return rounded(1 / a); }
};
struct CopySign {  // of a, to b
  static auto of(Float auto a, decltype(a) b) { return std::copysign(b, a); }
};

// The upper half of a product.
struct High {
  template <Integer T>
  static T of(T a, T b) {
    using Twice = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((Twice{a} * Twice{b}) >> (8 * sizeof(T)));
  }
};
template <class Product>
struct Plus {  // Product, and an addition
  static auto of(Integer auto a, decltype(a) b, decltype(a) c) {
    return Add::of(Product::of(a, b), c);
  }
};

// Products of twice the width.
struct Wide {
  template <class D, class T>
  static D product(T a, T b) {
    return static_cast<D>(wide(a) * wide(b));
  }
};
template <class D>
struct WideProduct {
  static D of(Integer auto a, decltype(a) b) { return Wide::product<D>(a, b); }
  static D of(Integer auto a, decltype(a) b, D c) { return Add::of(Wide::product<D>(a, b), c); }
};

template <class T>
Instruction::Run wide_run(size_t sources) {
  if constexpr (std::integral<T> && (sizeof(T) == 2 || sizeof(T) == 4)) {
    using D = std::conditional_t<std::is_signed_v<T>, std::make_signed_t<Unsigned<2 * sizeof(T)>>,
                                 Unsigned<2 * sizeof(T)>>;
    if (sources == 2) return &lanewise<WideProduct<D>, D, T, T>;
    return &lanewise<WideProduct<D>, D, T, T, D>;
  }
  return nullptr;
}

void decode_wide(Line& line, size_t sources) {
  Type type = line.take_type(), twice{type.kind, 2 * type.bytes};
  line.instruction.run = with_type(type, [&]<class T>() { return wide_run<T>(sources); });
  line.result(twice);
  line.value(type);
  line.value(type);
  if (sources == 3) line.value(twice);
}

// Pairs of bf16, rounded to nearest: f32 holds their products exactly.
void run_multiply_pairs(Warp& warp, const Instruction& in) {
  const auto *x = warp.lanes<uint32_t>(in.operands[1]), *y = warp.lanes<uint32_t>(in.operands[2]);
  auto* to = warp.lanes<uint32_t>(in.operands[0]);
  for_lanes(warp.mask, [&](int lane) {
    uint32_t product = 0;
    for (int shift : {0, 16}) {
      float a = to_float(BFloat16{static_cast<uint16_t>(x[lane] >> shift)});
      float b = to_float(BFloat16{static_cast<uint16_t>(y[lane] >> shift)});
      product |= uint32_t{from_float<BFloat16>(a * b).bits} << shift;
    }
    to[lane] = product;
  });
}

void decode_multiply(Line& line) {
  if (line.take("bf16x2")) {
    line.need("rn");
    line.instruction.run = &run_multiply_pairs;
    line.result(kB32);
    for (int i = 0; i < 2; ++i) line.value(kB32);
    return;
  }
  if (line.take("wide")) return decode_wide(line, 2);
  if (line.take("hi")) return decode_same<High, 2>(line);
  line.take("lo");
  line.take("rn");
  decode_same<Multiply, 2>(line);
}

void decode_multiply_add(Line& line) {
  if (line.take("wide")) return decode_wide(line, 3);
  if (line.take("hi")) return decode_same<Plus<High>, 3>(line);
  line.need("lo");
  decode_same<Plus<Multiply>, 3>(line);
}

// Floats round to nearest; integers have no such modifier.
template <class Op, size_t Count>
void decode_rounded(Line& line) {
  line.take("rn");
  decode_same<Op, Count>(line);
}

template <class Op>
void decode_extreme(Line& line) {
  if (line.take("NaN")) return decode_same<OrNan<Op>, 2>(line);
  decode_same<Op, 2>(line);
}

constexpr Rule kRules[] = {
    {"add", decode_rounded<Add, 2>},
    {"sub", decode_rounded<Subtract, 2>},
    {"mul", decode_multiply},
    {"mad", decode_multiply_add},
    {"div", decode_rounded<Divide, 2>},
    {"rem", decode_same<Remainder, 2>},
    {"fma", decode_rounded<Fused, 3>},
    {"min", decode_extreme<Least>},
    {"max", decode_extreme<Largest>},
    {"neg", decode_same<Negate, 1>},
    {"abs", decode_same<Magnitude, 1>},
    {"sqrt", decode_rounded<SquareRoot, 1>},
    {"rcp", decode_rounded<Reciprocal, 1>},
    {"copysign", decode_same<CopySign, 2>},
};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace banyan::ptx::arithmetic
