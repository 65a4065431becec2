// Tile registers in plain memory, with the results that AMX documents.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tensor/float_types.h"

namespace banyan::test {

struct EmulatedTiles {
  static void begin(int operand_depth = 16, int tile_rows = 16) {
    std::memset(tiles, 0x7f, sizeof(tiles));
    depth = operand_depth;
    rows = tile_rows;
  }
  static void end() { std::memset(tiles, 0x7f, sizeof(tiles)); }

  template <int Tile>
  static void zero() {
    std::memset(tiles[Tile], 0, sizeof(tiles[Tile]));
  }
  template <int Tile>
  static void load(const void* from, int64_t stride) {
    constexpr bool kIsA = Tile == 4 || Tile == 5, kIsB = Tile > 5;
    for (int row = 0; row < (kIsB ? depth : rows); ++row) {
      std::memcpy(tiles[Tile][row], static_cast<const char*>(from) + row * stride,
                  kIsA ? 4 * depth : 64);
    }
  }
  template <int Tile>
  static void store(void* to, int64_t stride) {
    for (int row = 0; row < rows; ++row) {
      std::memcpy(static_cast<char*>(to) + row * stride, tiles[Tile][row], 64);
    }
  }

  template <class Sum, class Element, class Factor, class Add>
  static void multiply(int c, int a, int b, const Add& add) {
    constexpr int kElements = 4 / sizeof(Element);
    products += rows * 16 * depth * kElements;
    for (int m = 0; m < rows; ++m) {
      for (int n = 0; n < 16; ++n) {
        Sum sum;
        std::memcpy(&sum, tiles[c][m] + n * 4, 4);
        for (int k = 0; k < depth; ++k) {
          for (int e = 0; e < kElements; ++e) {
            Element x;
            Factor w;
            std::memcpy(&x, tiles[a][m] + k * 4 + e * sizeof(x), sizeof(x));
            std::memcpy(&w, tiles[b][k] + n * 4 + e * sizeof(w), sizeof(w));
            sum = add(sum, x, w);
          }
        }
        std::memcpy(tiles[c][m] + n * 4, &sum, 4);
      }
    }
  }

  template <int C, int A, int B>
  static void dot_bf16() {
    multiply<float, BFloat16, BFloat16>(C, A, B, [](float sum, BFloat16 x, BFloat16 w) {
      return std::fma(to_float(x), to_float(w), sum);
    });
  }
  template <int C, int A, int B>
  static void dot_bytes() {
    multiply<int32_t, int8_t, uint8_t>(
        C, A, B, [](int32_t sum, int8_t x, uint8_t w) { return sum + x * w; });
  }
  template <int C, int A, int B>
  static void dot_signed_bytes() {
    multiply<int32_t, int8_t, int8_t>(C, A, B,
                                      [](int32_t sum, int8_t x, int8_t w) { return sum + x * w; });
  }

  static inline thread_local char tiles[8][16][64];
  static inline thread_local int rows = 16;         // of A operands and sums
  static inline thread_local int depth = 16;        // of A and B operands, in dwords
  static inline thread_local int64_t products = 0;  // so far
};

}  // namespace banyan::test
