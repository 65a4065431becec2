// The AMX tile registers: eight, of up to 16 rows of 64 bytes each. Tiles 0 to 3 accumulate
// products of the operands in tiles 4 and 5 (A) and 6 and 7 (B).
//
// Uses inline assembly: the compiler's intrinsics paste register numbers as text, so they cannot be
// template arguments, and those of g++ 12 do not declare that they read memory.
#pragma once

#include <cstdint>

namespace banyan::simd {

struct AmxTiles {
  // Configures operands that are `depth` dwords (A) or lines (B) deep, and A operands and sums of
  // `rows` rows.
  static void begin(int depth = 16, int rows = 16) {
    struct alignas(64) {
      uint8_t palette, start_row, reserved[14];
      uint16_t row_bytes[16];
      uint8_t rows[16];
    } config = {.palette = 1};
    for (int64_t tile = 0; tile < 8; ++tile) {
      bool a = tile == 4 || tile == 5, b = tile > 5;
      config.row_bytes[tile] = static_cast<uint16_t>(a ? 4 * depth : 64);
      config.rows[tile] = static_cast<uint8_t>(b ? depth : rows);
    }
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  static void end() { asm volatile("tilerelease"); }

  template <int Tile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
  }
  template <int Tile>
  static void load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(Tile) : "memory");
  }
  template <int Tile>
  static void store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(Tile) : "memory");
  }
  // C += A B: pairs of bf16, accumulated in f32.
  template <int C, int A, int B>
  static void dot_bf16() {
    asm volatile("tdpbf16ps %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"i"(B), "i"(A), "i"(C));
  }
  // C += A B: four signed by four unsigned bytes, accumulated in int32.
  template <int C, int A, int B>
  static void dot_bytes() {
    asm volatile("tdpbsud %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"i"(B), "i"(A), "i"(C));
  }
  // C += A B: four signed by four signed bytes, accumulated in int32.
  template <int C, int A, int B>
  static void dot_signed_bytes() {
    asm volatile("tdpbssd %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"i"(B), "i"(A), "i"(C));
  }
};

}  // namespace banyan::simd
