// Products with quantised weights on tensor cores: how kernels on a card (device/fragment_gemm.cuh)
// use shared memory, and which one is launched.
//
// Integers have the portable bits: sums of a group are exact, and a thread adds groups up in
// ascending order. So it does with fp8, for which x is rounded to bf16 and wgmma sums a group up
// from zero (wgmma_arithmetic.h): y = fma(sum, scale, y).
#pragma once

#include "kernels/cuda/fragments.h"
#include "kernels/cuda/quantise_rows.h"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda {

// A stage has the rows of x, 128 columns each, then a chunk of weights, then, of integers, the
// rows' steps of each group of the chunk.
template <Format F, int Rows>
struct FragmentGemm {
  static constexpr Format kFormat = F;
  static constexpr int kRows = Rows, kGroups = 1;
  static constexpr int kFeatures = static_cast<int>(kChunkRows);
  static constexpr int kMultipliers = kWarpgroup, kThreads = kMultipliers + kWarpgroup;

  // Of the columns of a chunk: one for each instruction.
  static constexpr int kSteps = F == Format::kFp8 ? 8 : 4;
  static constexpr int kChunkGroupsMax = 4;
  static constexpr uint32_t kBlockBytes = kRows * kTileRowBytes;  // of rows of x, 128 bytes each
  static constexpr int kBlocks = F == Format::kFp8 ? 2 : 1;
  static constexpr uint32_t kRowBytes = kBlocks * kBlockBytes;
  static constexpr auto kChunkBytesMax = static_cast<uint32_t>(
      Fragments(F, kChunkColumns, kChunkColumns / kChunkGroupsMax).chunk_bytes());
  static constexpr uint32_t kRowSteps = kRowBytes + kChunkBytesMax;
  static constexpr uint32_t kStageBytes =
      (kRowSteps + kChunkGroupsMax * kRows * 4 + kTileAlignment - 1) / kTileAlignment *
      kTileAlignment;
  static constexpr int kStages = static_cast<int>(least(8, 96 * 1024 / kStageBytes));
  static constexpr uint32_t kSources = kStages * kStageBytes;  // rows of x
  static constexpr uint32_t kBarriers = kSources + kRows * 4;
  static constexpr uint32_t kSharedBytes = kBarriers + 2 * kStages * 8;
  static_assert(kRows % 8 == 0 && kStages >= 3 && 2 * (kSharedBytes + 1024) <= 228 * 1024);

  GemmArgs a;

  int64_t blocks(int64_t multiprocessors) const {
    int64_t tiles =
        a.weights.count * ((a.x_rows + kRows - 1) / kRows) * ((a.n + kFeatures - 1) / kFeatures);
    int64_t resident = multiprocessors * 2;
    return a.weights.begins != nullptr ? resident : least(tiles, resident);
  }
};

// Calls launch(kernel, blocks) with the FragmentGemm for the rows.
template <Format F, class Launch>
void launch_fragment_gemm(const GemmArgs& args, int64_t multiprocessors, const Launch& launch) {
  auto run = [&]<class G>(G kernel) { launch(kernel, kernel.blocks(multiprocessors)); };
  int64_t rows = tile_rows_wanted(args);
  if (rows <= 8) return run(FragmentGemm<F, 8>{args});
  if (rows <= 16) return run(FragmentGemm<F, 16>{args});
  if (rows <= 32) return run(FragmentGemm<F, 32>{args});
  if constexpr (F == Format::kFp8) {
    run(FragmentGemm<F, 64>{args});  // stages are larger
  } else {
    if (rows <= 64) return run(FragmentGemm<F, 64>{args});
    run(FragmentGemm<F, 128>{args});
  }
}

// Twice the values of four codes of e2m1, which are the nibbles of `codes`, as bytes.
BANYAN_HOST_DEVICE inline uint32_t four_e2m1(uint32_t codes) {
#ifdef __CUDA_ARCH__
  uint32_t positive = __byte_perm(0x03020100u, 0x0c080604u, codes & 0x7777u);
  uint32_t negative = __byte_perm(0xfdfeff00u, 0xf4f8fafcu, codes & 0x7777u);
  uint32_t sign = (codes & 8) | (codes & 0x80) << 4 | (codes & 0x800) << 8 | (codes & 0x8000) << 12;
  uint32_t mask = (sign >> 3) * 0xffu;
  return (positive & ~mask) | (negative & mask);
#else
  uint32_t bytes = 0;
  for (int i = 0; i < 4; ++i) {
    auto value = static_cast<uint8_t>(
        Packed<Format::kMxfp4>::twice_e2m1(static_cast<uint8_t>(codes >> (4 * i) & 15)));
    bytes |= static_cast<uint32_t>(value) << (8 * i);
  }
  return bytes;
#endif
}

// Registers of four codes from a word of eight: magnitudes 0, 1, 2, 3, 4, 6, 8 and 12, then the
// sign.
BANYAN_HOST_DEVICE inline void unpack_e2m1(uint32_t codes, uint32_t& low, uint32_t& high) {
  low = four_e2m1(codes & 0xffff);
  high = four_e2m1(codes >> 16);
}

// Registers of a fragment from the two words of a thread's codes for 32 columns. Zeros are in every
// byte of `zeros`: of the first row, then of the eighth after it.
BANYAN_HOST_DEVICE constexpr void unpack_nibbles(uint32_t first, uint32_t second,
                                                 const uint32_t (&zeros)[2], uint32_t (&a)[4]) {
  constexpr uint32_t kNibbles = 0x0f0f0f0fu, kHigh = 0x80808080u;
  const uint32_t words[2] = {first, second};
  for (int row = 0; row < 2; ++row) {
    for (int half = 0; half < 2; ++half) {
      uint32_t codes = words[row] >> (4 * half) & kNibbles;
      a[row + 2 * half] = ((codes | kHigh) - zeros[row]) ^ kHigh;  // no byte borrows
    }
  }
}

// Codes `first` and first + 1 of four of fp8 as bf16, which holds them exactly, but 2^-120 of their
// values.
template <int first = 0>
BANYAN_HOST_DEVICE constexpr uint32_t shifted_fp8(uint32_t codes) {
  static_assert(first == 0 || first == 2);
#ifdef __CUDA_ARCH__
  uint32_t high = __byte_perm(codes, 0, first == 0 ? 0x1404 : 0x3424);  // bytes of the halves
#else
  codes >>= 8 * first;
  uint32_t high = (codes & 0xff) << 8 | (codes & 0xff00) << 16;
#endif
  return (high & 0x80008000u) | (high >> 4 & 0x07f007f0u);
}

}  // namespace banyan::cuda
