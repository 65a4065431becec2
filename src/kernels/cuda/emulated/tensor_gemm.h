// Products of bf16 and f16 with the bits of a GPU's tensor cores (kernels/cuda/tensor_gemm.h), on
// the host.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/wgmma_arithmetic.h"
#include "kernels/gemm.h"

namespace banyan::cuda::emulated {

// Values of bf16 or f16, prepared once for many sums. A step of sixteen then costs some forty
// operations that compilers turn into vector instructions.
class WgmmaOperand {
 public:
  // `count` is a multiple of kWgmmaDepth.
  template <class T>
  void assign(const T* values, int64_t count);

  int64_t steps() const { return static_cast<int64_t>(special_.size()); }

  // accumulator + the products of the operands' step, as wgmma_step has it.
  friend float wgmma_step(float accumulator, const WgmmaOperand& a, const WgmmaOperand& b,
                          int64_t step);

 private:
  std::vector<double> values_;
  std::vector<int32_t> tops_;     // exponents, far below all others for zeros
  std::vector<uint8_t> special_;  // whether a step has an infinity or a NaN
};

// What device/tensor_gemm.cuh computes from rounded rows (RoundRows, ScaleRows).
template <class T>
void multiply_tiles(const GemmArgs& args);
// What device/fragment_gemm.cuh computes from them with weights of fp8.
void multiply_fp8(const GemmArgs& args);

}  // namespace banyan::cuda::emulated
