// The weight formats whose scales have two levels, as GGUF files store them: q2, q3, q4, q5, q6 and
// iq4. kernels/gemm.h defines their values and products.
#pragma once

#include <cstdint>

namespace banyan {

struct BlockForm {
  int bits = 4;        // of a code
  int part = 32;       // columns that share a level
  int zero = 0;        // subtracted from a code
  bool mins = false;   // whether each part has a minimum
  bool table = false;  // whether codes are indices into kIq4Values
  bool plain = false;  // whether groups of 32 without levels exist
};

inline constexpr BlockForm kQ2 = {.bits = 2, .part = 16, .mins = true};
inline constexpr BlockForm kQ3 = {.bits = 3, .part = 16, .zero = 4};
inline constexpr BlockForm kQ4 = {.mins = true, .plain = true};
inline constexpr BlockForm kQ5 = {.bits = 5, .mins = true, .plain = true};
inline constexpr BlockForm kQ6 = {.bits = 6, .part = 16, .zero = 32};
inline constexpr BlockForm kIq4 = {.table = true, .plain = true};

// In this order: columns of a group whose parts have levels; columns of a group without levels;
// columns of an entry of PackArgs::levels; columns of x that are rounded together.
inline constexpr int64_t kLevelledGroup = 256, kPlainGroup = 32, kLevelColumns = 16;
inline constexpr int64_t kBlockStep = 32;

inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

// The value of a code before its scale.
static constexpr int block_value(const BlockForm& form, int code) {
  return form.table ? kIq4Values[code] : code - form.zero;
}

}  // namespace banyan
