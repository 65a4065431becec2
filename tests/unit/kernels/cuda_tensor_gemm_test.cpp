// Products on tensor cores: layouts, tiles and the emulation that a GPU is held against.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "kernels/cuda/emulated/tensor_gemm.h"
#include "kernels/cuda/tensor_gemm.h"
#include "unit/kernels/host_warp.h"

namespace banyan::cuda::cuda_tensor_gemm_test {
namespace {

float same_exponents(std::mt19937& random) {
  return std::normal_distribution<float>()(random);
}
float far_apart(std::mt19937& random) {
  return same_exponents(random) * std::exp2(static_cast<float>(random() % 80) - 40);
}
float often_zero(std::mt19937& random) {
  return random() % 3 == 0 ? same_exponents(random) : 0;
}
float subnormal(std::mt19937& random) {
  return same_exponents(random) * (random() % 2 == 0 ? 0x1p-130f : 0x1p20f);
}
float huge(std::mt19937& random) {
  return same_exponents(random) * 0x1p63f;
}
float sometimes_infinite(std::mt19937& random) {
  return random() % 40 == 0 ? kInfinity : same_exponents(random);
}

template <class T>
void expect_the_bits_of_the_model() {
  constexpr int64_t kSteps = 40;
  std::mt19937 random(1);
  for (auto draw : {same_exponents, far_apart, often_zero, subnormal, huge, sometimes_infinite}) {
    for (int round = 0; round < 50; ++round) {
      std::vector<T> a, b;
      for (int64_t i = 0; i < kSteps * kWgmmaDepth; ++i) {
        a.push_back(from_float<T>(draw(random)));
        b.push_back(from_float<T>(draw(random)));
      }
      emulated::WgmmaOperand x, y;
      x.assign(a.data(), std::ssize(a));
      y.assign(b.data(), std::ssize(b));
      float sum = 0;
      for (int64_t step = 0; step < kSteps; ++step) {
        float expected = wgmma_step(sum, &a[static_cast<size_t>(step * kWgmmaDepth)],
                                    &b[static_cast<size_t>(step * kWgmmaDepth)]);
        sum = wgmma_step(sum, x, y, step);
        ASSERT_EQ(std::bit_cast<uint32_t>(sum), std::bit_cast<uint32_t>(expected)) << step;
        if (!is_finite(sum)) sum = 1;
      }
    }
  }
}
TEST(WgmmaOperand, HasTheBitsOfTheModelForEveryKindOfNumber) {
  expect_the_bits_of_the_model<BFloat16>();
  expect_the_bits_of_the_model<Float16>();
}

TEST(TensorGemm, SegmentsComeFromTheShapeAndAreWholeTiles) {
  EXPECT_EQ(gemm_segments(1, 4096, 4096), 4);  // 64 tiles become 256 blocks
  EXPECT_EQ(gemm_segments(1, 12288, 4096), 1);
  EXPECT_EQ(gemm_segments(1, 1024, 1024), 4);   // 16 tiles; a segment has 256 columns
  EXPECT_EQ(gemm_segments(1, 1024, 12288), 8);  // at most
  EXPECT_EQ(gemm_segments(128, 1536, 4096), 1);
  EXPECT_EQ(gemm_segments(1, 64, 576), 1);   // half of nine tiles is none
  EXPECT_EQ(gemm_segments(1, 64, 1152), 2);  // of nine tiles each
  for (int64_t k = 1; k < 5000; ++k) {
    int segments = gemm_segments(1, 100, k);
    ASSERT_EQ(tiles_of(k) % segments, 0) << k;
  }
}

TEST(TensorGemm, EveryElementHasAPlaceOfItsOwnInATile) {
  constexpr int64_t kN = 130, kK = 200;
  std::set<int64_t> places;
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t c = 0; c < kK; ++c) {
      int64_t at = tiled_offset(j, c, kK);
      EXPECT_EQ(at / kTileBytes, j / kTile * tiles_of(kK) + c / kTile);
      EXPECT_EQ(at % 2, 0);
      EXPECT_LT(at, static_cast<int64_t>(Packed<Format::kBF16>::bytes(kN, kK, kK)));
      places.insert(at);
    }
  }
  EXPECT_EQ(std::ssize(places), kN * kK);
}

TEST(TensorGemm, EveryTileHasAPlaceOfItsOwn) {
  for (int64_t down : {1, 3, 8, 9, 17, 32}) {
    for (int64_t across : {1, 2, 7, 40}) {
      std::set<std::pair<int64_t, int64_t>> places;
      for (int64_t t = 0; t < down * across; ++t) {
        TilePlace place = tile_place(t, down, across);
        EXPECT_TRUE(place.down >= 0 && place.down < down);
        EXPECT_TRUE(place.across >= 0 && place.across < across);
        places.insert({place.down, place.across});
      }
      EXPECT_EQ(std::ssize(places), down * across) << down << " " << across;
    }
  }
}

TEST(TensorGemm, WorkersComputeEveryOutputOnce) {
  std::vector<int32_t> begins = {2, 2, 9, 9, 40, 41};
  begins.insert(begins.end(), 40, 41);  // experts without rows
  begins.insert(begins.end(), {50, 83});
  constexpr int64_t kN = 150, kWorkers = 7;
  for (int64_t rows : {8, 32}) {
    for (int64_t features : {64, 128}) {
      GemmArgs args;
      args.weights = {.count = std::ssize(begins) - 1, .begins = begins.data()};
      args.n = kN;
      std::map<std::pair<int64_t, int64_t>, int> computed;
      for (int64_t worker = 0; worker < kWorkers; ++worker) {
        for_output_tiles(
            HostWarp(), args, worker, kWorkers, rows, features, [&](const OutputTile& tile) {
              EXPECT_GE(tile.row, begins[static_cast<size_t>(tile.matrix)]);
              EXPECT_LE(tile.row + tile.row_count, begins[static_cast<size_t>(tile.matrix) + 1]);
              EXPECT_LE(tile.row_count, rows);
              for (int64_t r = 0; r < tile.row_count; ++r) {
                for (int64_t j = tile.feature; j < least(kN, tile.feature + features); ++j) {
                  ++computed[{tile.row + r, j}];
                }
              }
            });
      }
      EXPECT_EQ(std::ssize(computed), 81 * kN);
      for (const auto& [place, times] : computed) ASSERT_EQ(times, 1) << place.first;
    }
  }
}

}  // namespace
}  // namespace banyan::cuda::cuda_tensor_gemm_test
