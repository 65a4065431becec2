// cvt. A register may be wider than the type: sources are cut, results extended.
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>

#include "ptx/families.h"
#include "ptx/lanes.h"

namespace banyan::ptx::conversion {
namespace {

enum class Rounding { kNearest, kZero, kDown, kUp };

template <class T>
concept Half = std::same_as<T, Float16> || std::same_as<T, BFloat16>;

// To a whole number.
template <Rounding R>
double whole(double x) {
  if constexpr (R == Rounding::kZero) return std::trunc(x);
  if constexpr (R == Rounding::kDown) return std::floor(x);
  if constexpr (R == Rounding::kUp) return std::ceil(x);
  return std::nearbyint(x);
}

// Too large: the nearest that D has. NaN: 0.
template <std::integral D, Rounding R>
D saturated(double x) {
  if (x != x) return 0;
  double y = whole<R>(x);
  constexpr double kEnd = 2.0 * static_cast<double>(std::numeric_limits<D>::max() / 2 + 1);
  if (y >= kEnd) return std::numeric_limits<D>::max();
  if (y <= static_cast<double>(std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
  return static_cast<D>(y);
}

// A float of 32 bits from a wider value, rounded toward zero if R says so.
template <Rounding R>
float narrowed(double x) {
  auto y = static_cast<float>(x);
  if (y != y) return std::bit_cast<float>(0x7fffffffu);
  if (R == Rounding::kZero && std::fabs(double{y}) > std::fabs(x)) y = std::nextafterf(y, 0);
  return y;
}

template <class D, class S, Rounding R>
struct Convert {
  static D of(S x) {
    if constexpr (Half<S> && Half<D>) {
      return from_float<D>(to_float(x));
    } else if constexpr (Half<S>) {
      return Convert<D, float, R>::of(to_float(x));
    } else if constexpr (Half<D>) {
      return from_float<D>(static_cast<float>(x));
    } else if constexpr (std::integral<D> && std::floating_point<S>) {
      return saturated<D, R>(static_cast<double>(x));
    } else if constexpr (std::same_as<D, float> && std::same_as<S, double>) {
      return narrowed<R>(x);
    } else if constexpr (std::same_as<D, S> && std::floating_point<S>) {
      return static_cast<D>(whole<R>(static_cast<double>(x)));  // .rni and its like
    } else {
      return static_cast<D>(x);
    }
  }
};

// What a register of `bytes` holds, cut to T.
template <class T>
T cut(const std::byte* lanes, uint32_t bytes, int lane) {
  T value;
  std::memcpy(&value, lanes + static_cast<size_t>(lane) * bytes, sizeof(T));
  return value;
}

// Extends a value by its sign, if it has one, to a register of `bytes`.
template <class T>
void extend(std::byte* lanes, uint32_t bytes, int lane, T value) {
  int64_t wide = 0;
  if constexpr (std::signed_integral<T>) {
    wide = value;
  } else {
    std::memcpy(&wide, &value, sizeof(T));
  }
  std::memcpy(lanes + static_cast<size_t>(lane) * bytes, &wide, bytes);
}

template <class D, class S, Rounding R>
void run_other_widths(Warp& warp, const Instruction& in) {
  const Operand &to = in.operands[0], &from = in.operands[1];
  for_lanes(warp.mask, [&](int lane) {
    S value = cut<S>(warp.lanes<std::byte>(from), from.bytes, lane);
    extend(warp.lanes<std::byte>(to), to.bytes, lane, Convert<D, S, R>::of(value));
  });
}

template <class D, class S, Rounding R>
Instruction::Run convert_run(bool same_widths) {
  // Nothing but the direction toward zero is needed between these.
  if constexpr (R != Rounding::kNearest && !std::floating_point<S> && !Half<S>) {
    return convert_run<D, S, Rounding::kNearest>(same_widths);
  } else {
    return same_widths ? &lanewise<Convert<D, S, R>, D, S> : &run_other_widths<D, S, R>;
  }
}

Instruction::Run convert_run(Type d, Type s, Rounding rounding, bool same_widths) {
  return with_type(d, [&]<class D>() {
    return with_type(s, [&]<class S>() -> Instruction::Run {
      if (rounding == Rounding::kZero) return convert_run<D, S, Rounding::kZero>(same_widths);
      if (rounding == Rounding::kDown) return convert_run<D, S, Rounding::kDown>(same_widths);
      if (rounding == Rounding::kUp) return convert_run<D, S, Rounding::kUp>(same_widths);
      return convert_run<D, S, Rounding::kNearest>(same_widths);
    });
  });
}

Rounding take_rounding(Line& line, bool to_integer) {
  for (const char* nearest : {"rn", "rni"}) {
    if (line.take(nearest)) return Rounding::kNearest;
  }
  for (const char* zero : {"rz", "rzi"}) {
    if (line.take(zero)) return Rounding::kZero;
  }
  if (to_integer && line.take("rmi")) return Rounding::kDown;
  if (to_integer && line.take("rpi")) return Rounding::kUp;
  return Rounding::kNearest;
}

// Two floats to the halves of a register; the first operand comes to lie above.
template <class H>
void run_pack(Warp& warp, const Instruction& in) {
  auto* to = warp.lanes<uint32_t>(in.operands[0]);
  auto* high = warp.lanes<uint32_t>(in.operands[1]);
  auto* low = warp.lanes<uint32_t>(in.operands[2]);
  auto half = [](uint32_t bits) {
    return uint32_t{std::bit_cast<uint16_t>(from_float<H>(std::bit_cast<float>(bits)))};
  };
  for_lanes(warp.mask, [&](int lane) { to[lane] = half(high[lane]) << 16 | half(low[lane]); });
}

void decode_pack(Line& line, Instruction::Run run) {
  line.need("rn");
  line.need("f32");
  line.instruction.run = run;
  line.result(kB32);
  line.value(kB32);
  line.value(kB32);
}

void decode_cvt(Line& line) {
  if (line.take("bf16x2")) return decode_pack(line, &run_pack<BFloat16>);
  if (line.take("f16x2")) return decode_pack(line, &run_pack<Float16>);
  Type d = line.take_type(), s = line.take_type();
  bool is_narrow = d.is_float() && d.bytes == 2;
  Rounding rounding = take_rounding(line, true);
  if (is_narrow && rounding != Rounding::kNearest)
    fail("cvt to 16-bit floats is known with .rn only");
  bool any_width = !d.is_float();
  Operand to = line.result(d, any_width), from = line.value(s, !s.is_float());
  bool same_widths = to.bytes == d.bytes && from.bytes == s.bytes;
  line.instruction.run = convert_run(d, s, rounding, same_widths);
}

constexpr Rule kRules[] = {{"cvt", decode_cvt}};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace banyan::ptx::conversion
