// Vector math functions that are the same for every instruction set.
#pragma once

#include <type_traits>

namespace banyan::simd {

// e^x within 1.1 ulp for all x: 0 below -104, infinity above 88.8, NaN for NaN.
//
// x = n ln 2 + r with |r| <= ln 2 / 2. ln 2 is split in two, so that n times its first part is
// exact. e^r is a Taylor polynomial of degree 7, with error r^8 / 8! < 5.2e-9. 2^n is applied as
// two factors, because n exceeds the exponent range of a float on both sides.
template <class V>
inline typename V::F exp(typename V::F x) {
  x = V::min(V::set(89.0f), V::max(V::set(-104.0f), x));  // this order propagates NaN
  auto n = V::round(V::mul(x, V::set(0x1.715476p+0f)));   // 1 / ln 2
  auto r = V::fma(n, V::set(-0x1.62e4p-1f), x);
  r = V::fma(n, V::set(-0x1.7f7d1cp-20f), r);
  auto p = V::set(1.0f / 5040);
  p = V::fma(p, r, V::set(1.0f / 720));
  p = V::fma(p, r, V::set(1.0f / 120));
  p = V::fma(p, r, V::set(1.0f / 24));
  p = V::fma(p, r, V::set(1.0f / 6));
  p = V::fma(p, r, V::set(0.5f));
  p = V::fma(p, r, V::set(1.0f));
  p = V::fma(p, r, V::set(1.0f));
  auto half = V::round(V::mul(n, V::set(0.5f)));
  return V::mul(V::mul(p, V::power_of_two(half)), V::power_of_two(V::sub(n, half)));
}

// Loads x[0, n) with n <= kLanes; lanes beyond n are zero.
template <class V, class T>
inline typename V::F load_up_to(const T* x, int64_t n) {
  return n < V::kLanes ? V::load_first(x, n) : V::load(x);
}

template <class V, class T>
inline void store_up_to(T* y, int64_t n, typename V::F x) {
  if (n < V::kLanes) {
    V::store_first(y, n, x);
  } else {
    V::store(y, x);
  }
}

// cap * tanh(x / cap), within 2 ulp of `cap`.
template <class V>
inline typename V::F soften(typename V::F x, float cap) {
  auto one = V::set(1.0f);
  auto e = exp<V>(V::mul(V::abs(x), V::set(-2 / cap)));
  auto bounded = V::mul(V::div(V::sub(one, e), V::add(one, e)), V::set(cap));
  return V::copy_sign(bounded, x);
}

// Returns its argument, of which compilers then know nothing. They would keep what a tile reads
// twice in a register, or compute all of a tile's factors before they use one; sixteen registers
// have no room for that as well as twelve sums, and a sum in memory halves the speed.
template <class V, class T>
[[gnu::always_inline]] static inline T forgotten(T x) {
  if constexpr (V::kRegisters > 16) return x;
  if constexpr (std::is_pointer_v<T>) {
    asm volatile("" : "+r"(x));
  } else {
    asm volatile("" : "+v"(x));
  }
  return x;
}

}  // namespace banyan::simd
