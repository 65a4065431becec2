// Seeded inputs and packed matrices for comparing kernel tables.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/select.h"
#include "kernels/state_rows.h"
#include "tensor/float_types.h"

namespace banyan::test {

inline constexpr DType kWeightTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
// Of states in pages.
inline constexpr DType kPageTypes[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kI8,
                                       DType::kF8E4M3};
inline constexpr float kEpsilon = 0x1p-23f;  // twice the rounding error of one f32 operation

// Every table that runs here, and the CUDA kernels emulated, unless sanitizers slow these down
// tenfold; portable is the first. With BANYAN_TEST_TABLE=ptx: portable and the CUDA kernels as
// nvcc compiles them, interpreted (tests/ptx).
std::vector<const KernelTable*> tables();

// The CUDA kernels on the host: emulated, or interpreted.
const KernelTable& cuda_table();

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  int64_t below(int64_t end) { return static_cast<int64_t>(engine_() % end); }
  float normal() { return normal_(engine_); }
  std::vector<float> normals(int64_t count, float scale = 1) {
    std::vector<float> values(count);
    for (float& value : values) value = normal() * scale;
    return values;
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<float> normal_;
};

// Values rounded to `dtype`, as bytes of it.
inline std::vector<char> encode(const std::vector<float>& values, DType dtype) {
  std::vector<char> bytes(values.size() * dtype_bytes(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    char* to = bytes.data() + i * dtype_bytes(dtype);
    if (dtype == DType::kBF16) {
      BFloat16 x = from_float<BFloat16>(values[i]);
      std::memcpy(to, &x, sizeof(x));
    } else if (dtype == DType::kF16) {
      Float16 x = from_float<Float16>(values[i]);
      std::memcpy(to, &x, sizeof(x));
    } else {
      std::memcpy(to, &values[i], sizeof(float));
    }
  }
  return bytes;
}

inline std::vector<float> decode(const std::vector<char>& bytes, DType dtype) {
  std::vector<float> values(bytes.size() / dtype_bytes(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const char* from = bytes.data() + i * dtype_bytes(dtype);
    if (dtype == DType::kBF16) {
      BFloat16 x;
      std::memcpy(&x, from, sizeof(x));
      values[i] = to_float(x);
    } else if (dtype == DType::kF16) {
      Float16 x;
      std::memcpy(&x, from, sizeof(x));
      values[i] = to_float(x);
    } else {
      std::memcpy(&values[i], from, sizeof(float));
    }
  }
  return values;
}

// The rows of `values` as pools of `dtype` have them.
inline std::vector<char> store_rows(const std::vector<float>& values, DType dtype,
                                    const RowShape& shape) {
  if (!is_quantised_state(dtype)) return encode(values, dtype);
  int64_t rows = std::ssize(values) / shape.width, bytes = shape.quantised_bytes();
  std::vector<char> stored(rows * bytes, char(0xff));
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = values.data() + r * shape.width;
    char* to = stored.data() + r * bytes;
    if (dtype == DType::kI8) store_row(x, shape, reinterpret_cast<int8_t*>(to));
    if (dtype == DType::kF8E4M3) store_row(x, shape, reinterpret_cast<Float8E4M3*>(to));
  }
  return stored;
}

// The values that these rows decode to.
inline std::vector<float> load_rows(const std::vector<char>& stored, DType dtype,
                                    const RowShape& shape) {
  if (!is_quantised_state(dtype)) return decode(stored, dtype);
  int64_t bytes = shape.quantised_bytes(), rows = std::ssize(stored) / bytes;
  std::vector<float> values;
  for (int64_t r = 0; r < rows; ++r) {
    const char* from = stored.data() + r * bytes;
    auto append = [&](const auto& row) {
      for (int64_t c = 0; c < shape.width; ++c) values.push_back(row[c]);
    };
    if (dtype == DType::kI8) append(RowValues(reinterpret_cast<const int8_t*>(from), shape));
    if (dtype == DType::kF8E4M3) {
      append(RowValues(reinterpret_cast<const Float8E4M3*>(from), shape));
    }
  }
  return values;
}

inline std::vector<float> as_stored(const std::vector<float>& values, DType dtype,
                                    const RowShape& shape) {
  return load_rows(store_rows(values, dtype, shape), dtype, shape);
}

// Bytes aligned as in a weight arena and filled with 0xff, which is NaN in every type, so that
// reading unwritten memory is noticed.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t bytes) : storage_(bytes + 64, char(0xff)) {
    size_t misalignment = reinterpret_cast<uintptr_t>(storage_.data()) % 64;
    data_ = storage_.data() + (64 - misalignment) % 64;
  }
  char* data() { return data_; }
  const char* data() const { return data_; }

 private:
  std::vector<char> storage_;
  char* data_;
};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

}  // namespace banyan::test
