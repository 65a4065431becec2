// Products with quantised weights on tensor cores: how kernels on a GPU (device/fragment_gemm.cuh)
// use shared memory, and which one is launched.
//
// Integers have the portable bits: sums of a group are exact, and its threads add groups up in
// ascending order. So it is with fp8, for which x is rounded to bf16 and wgmma sums a group up
// from zero (wgmma_arithmetic.h): y = fma(sum, scale, y).
#pragma once

#include "kernels/cuda/fragments.h"
#include "kernels/cuda/quantise_rows.h"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda {

// What the warpgroups of a block that multiply share out: the chunks of columns, which they take in
// turns and hand on what they have summed up, or features, 64 each.
enum class Teams { kOfChunks, kOfFeatures };

// A stage has a chunk of weights for each 64 features, then the rows of x, 128 columns each, then,
// of integers, the steps of their groups.
template <Format F, int Rows, Teams Of, int Count>
struct FragmentGemm {
  static constexpr Format kFormat = F;
  static constexpr bool kIntegers = has_integers(F);
  static constexpr bool kActivates = false;
  static constexpr int kRows = Rows, kTeams = Count;
  static constexpr bool kTakesTurns = Of == Teams::kOfChunks;
  static constexpr int kGroups = kTakesTurns ? 1 : Count;  // of 64 features
  static constexpr int kFeatures = kGroups * static_cast<int>(kChunkRows);
  static constexpr int kMultipliers = Count * kWarpgroup, kThreads = kMultipliers + kWarpgroup;
  static constexpr bool kSplit = false;
  static constexpr int kSharers = 1, segments = 1;

  // Of the columns of a chunk: one for each instruction.
  static constexpr int kSteps = F == Format::kFp8 ? 8 : 4;
  static constexpr int kChunkGroupsMax = 4;
  static constexpr auto kUnitBytes = static_cast<uint32_t>(
      Fragments(F, kChunkColumns, kChunkColumns / kChunkGroupsMax).chunk_bytes());
  static constexpr uint32_t kWeightBytes =
      (kGroups * kUnitBytes + kTileAlignment - 1) / kTileAlignment * kTileAlignment;
  static constexpr uint32_t kBlockBytes = kRows * kTileRowBytes;  // of rows of x, 128 bytes each
  static constexpr int kBlocks = F == Format::kFp8 ? 2 : 1;
  static constexpr uint32_t kRowSteps = kWeightBytes + kBlocks * kBlockBytes;
  static constexpr uint32_t kStepBytes = kIntegers ? kRows * kChunkGroupsMax * 4 : 0;
  static constexpr uint32_t kStageBytes =
      (kRowSteps + kStepBytes + kTileAlignment - 1) / kTileAlignment * kTileAlignment;
  // What a team hands on: y, and sums of a group that goes on.
  static constexpr uint32_t kHandedOnBytes =
      kTakesTurns ? 2 * kRows * static_cast<int>(kChunkRows) * sizeof(float) : 0;
  static constexpr uint32_t kSourceBytes = (kRows * 4 + 15) / 16 * 16;  // rows of x
  static constexpr int kTurn = kTakesTurns ? Count : 1;  // stages that all teams take
  static constexpr int kStagesMax = 24;
  static constexpr uint32_t kRingBytes =
      227 * 1024 - kSourceBytes - kHandedOnBytes - 2 * kStagesMax * 8;
  static constexpr int kStages =
      static_cast<int>(least(kStagesMax, kRingBytes / kStageBytes)) / kTurn * kTurn;
  static constexpr uint32_t kSources = kStages * kStageBytes;
  static constexpr uint32_t kHandedOn = kSources + kSourceBytes;
  static constexpr uint32_t kBarriers = kHandedOn + kHandedOnBytes;
  static constexpr uint32_t kSharedBytes = kBarriers + 2 * kStages * 8;
  static_assert(kRows % 8 == 0 && kStages >= 3 && kSharedBytes <= 227 * 1024);

  // Of a thread: at the start, then of those that multiply and of those that fetch.
  static constexpr int kRegisters = Count == 2 ? 168 : Count == 3 ? 128 : 96;
  static constexpr int kMultiplyRegisters = Count == 2 ? 216 : Count == 3 ? 152 : 104;
  static constexpr int kFetchRegisters = Count == 2 ? 72 : Count == 3 ? 56 : 64;
  static_assert(fits_registers(kThreads, kRegisters));
  static_assert(kMultipliers * kMultiplyRegisters + kWarpgroup * kFetchRegisters <=
                kThreads * kRegisters);

  GemmArgs a;

  BANYAN_HOST_DEVICE static constexpr int64_t stages_of(int64_t k) {
    return (k + kChunkColumns - 1) / kChunkColumns;
  }
  BANYAN_HOST_DEVICE static constexpr uint32_t unit_bytes(const GemmArgs& a) {
    return static_cast<uint32_t>(Fragments(F, a.k, a.group).chunk_bytes());
  }
  int64_t tiles() const {
    return a.weights.count * ((likely_rows(a) + kRows - 1) / kRows) *
           ((a.n + kFeatures - 1) / kFeatures);
  }
  int64_t blocks(int64_t multiprocessors) const {
    return a.weights.begins != nullptr ? multiprocessors : least(tiles(), multiprocessors);
  }
};

// Calls launch(kernel, blocks) with the FragmentGemm for the rows.
template <Format F, class Launch>
void launch_fragment_gemm(const GemmArgs& args, int64_t multiprocessors, const Launch& launch) {
  auto run = [&]<class G>(G kernel) { launch(kernel, kernel.blocks(multiprocessors)); };
  int64_t rows = tile_rows_wanted(args);
  if (rows <= 8) return run(FragmentGemm<F, 8, Teams::kOfChunks, 4>{args});
  if (rows <= 16) return run(FragmentGemm<F, 16, Teams::kOfChunks, 4>{args});
  // By count of instructions, two teams with the features of 128 rows each take about six times as
  // long as three that take turns with 32 rows, but compute eight times as much.
  FragmentGemm<F, 32, Teams::kOfChunks, 3> few{args};
  FragmentGemm<F, 128, Teams::kOfFeatures, 2> many{args};
  auto rounds = [&](int64_t tiles) { return (tiles + multiprocessors - 1) / multiprocessors; };
  if (rows <= 32 || rounds(few.tiles()) < 6 * rounds(many.tiles())) return run(few);
  run(many);
}

// Twice the values of four codes of e2m1, which are the low nibbles of `codes`, as bytes.
BANYAN_HOST_DEVICE inline uint32_t four_e2m1(uint32_t codes) {
#ifdef __CUDA_ARCH__
  // Where a nibble of the selector has its highest bit, the sign of a byte is repeated: of one that
  // is not negative, zeros.
  // __byte_perm is not promised to.
  auto magnitudes = [](uint32_t selector) {
    uint32_t bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "n"(0x03020100), "n"(0x0c080604), "r"(selector));
    return bytes;
  };
  uint32_t positive = magnitudes(codes), negative = magnitudes(codes ^ 0x8888u);
  return ((positive | 0x80808080u) - negative) ^ 0x80808080u;  // no byte borrows
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
  low = four_e2m1(codes);
  high = four_e2m1(codes >> 16);
}

// Registers of a fragment from the two words of a thread's codes for 32 columns. Zeros are in every
// byte of `zeros`: of the first row, then of the eighth after it.
BANYAN_HOST_DEVICE constexpr void unpack_nibbles(uint32_t first, uint32_t second,
                                                 const uint32_t (&zeros)[2], uint32_t (&a)[4]) {
  constexpr uint32_t kNibbles = 0x0f0f0f0fu, kHigh = 0x80808080u;
  const uint32_t words[2] = {first, second};
  for (int row = 0; row < 2; ++row) {
    uint32_t shift = kHigh - zeros[row];  // no byte borrows, nor carries
    for (int half = 0; half < 2; ++half) {
      uint32_t codes = words[row] >> (4 * half) & kNibbles;
      a[row + 2 * half] = (codes + shift) ^ kHigh;
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
