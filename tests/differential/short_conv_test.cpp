// Short convolutions of every table: against f64, and against themselves bit for bit in other
// spans, with other numbers of threads, from captured states and after drafts.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "differential/kernels.h"

namespace banyan::short_conv_test {
namespace {

using namespace test;  // NOLINT

// One layer of convolutions, its slots and their logs, which start as NaN.
class Convolutions {
 public:
  Convolutions(int64_t channels, int64_t taps, std::vector<float> weight, std::vector<float> bias)
      : channels_(channels), taps_(taps), weight_(std::move(weight)), bias_(std::move(bias)) {
    states_.assign(3 * channels * (taps - 1), NAN);
    log_.assign(3 * kLogRows * channels, NAN);
  }

  // Rows [first, first + count) of x, whose rows are 2 apart, in `slot`.
  std::vector<float> step(const KernelTable& table, const std::vector<float>& x, int64_t first,
                          int64_t count, int32_t slot, const std::vector<Capture>& captures = {},
                          ThreadPool* threads = nullptr, DraftRows drafts = {}) {
    SpanArgs span = {.row_count = static_cast<int32_t>(count),
                     .first_position = static_cast<int32_t>(first)};
    int32_t prompt = 0;
    std::vector<float> y(count * channels_, NAN);
    table.short_conv({.launch = {.threads = threads},
                      .x = x.data() + first * (channels_ + 2),
                      .x_row_stride = channels_ + 2,
                      .weight = weight_.data(),
                      .bias = bias_.empty() ? nullptr : bias_.data(),
                      .states = states_.data(),
                      .y = y.data(),
                      .silu = bias_.empty(),
                      .channels = channels_,
                      .taps = taps_,
                      .spans = {.spans = &span,
                                .count = 1,
                                .slots = &slot,
                                .prompt_tokens = &prompt,
                                .captures = captures.data(),
                                .capture_count = std::ssize(captures),
                                .drafts = &drafts,
                                .log = {log_.data(), &slot, kLogRows}}});
    return y;
  }

  std::vector<float> state(int32_t slot) const {
    int64_t size = channels_ * (taps_ - 1);
    return {states_.begin() + slot * size, states_.begin() + (slot + 1) * size};
  }

 private:
  static constexpr int64_t kLogRows = 8;
  int64_t channels_, taps_;
  std::vector<float> weight_, bias_, states_, log_;
};

class ShortConv : public testing::Test {
 protected:
  // With a bias there is no silu.
  void make(int64_t new_channels, int64_t new_taps, bool biased = false) {
    channels = new_channels;
    taps = new_taps;
    x = random.normals(kRows * (channels + 2), 3);
    weight = random.normals(channels * taps);
    bias = random.normals(biased ? channels : 0);
  }
  Convolutions fresh() const { return {channels, taps, weight, bias}; }

  static constexpr int64_t kRows = 30;
  Random random{1};
  int64_t channels = 0, taps = 0;
  std::vector<float> x, weight, bias;
};

TEST_F(ShortConv, IsWithinTheRoundingErrorOfTheSum) {
  for (const KernelTable* table : tables()) {
    for (int64_t width : {1, 7, 16, 45}) {
      for (int64_t kind = 0; kind < 6; ++kind) {
        make(width, std::array{1, 2, 4}[kind % 3], kind >= 3);
        std::vector<float> y = fresh().step(*table, x, 0, kRows, 1);
        for (int64_t i = 0; i < kRows * channels; ++i) {
          int64_t t = i / channels, c = i % channels;
          double sum = bias.empty() ? 0 : double{bias[c]}, magnitude = std::fabs(sum);
          for (int64_t j = 0; j < taps; ++j) {
            int64_t from = t - taps + 1 + j;
            if (from < 0) continue;
            double term = double{weight[j * channels + c]} * double{x[from * (channels + 2) + c]};
            sum += term;
            magnitude += std::fabs(term);
          }
          // silu is at most 1.1 times as steep as its argument.
          ASSERT_NEAR(y[i], bias.empty() ? sum / (1 + std::exp(-sum)) : sum,
                      (1.1 * static_cast<double>(taps) + 4) * double{kEpsilon} * magnitude)
              << table->name << " row " << t << " channel " << c;
        }
      }
    }
  }
}

TEST_F(ShortConv, SpansThreadsAndCapturesDoNotChangeABit) {
  for (const KernelTable* table : tables()) {
    ThreadPool threads(2);
    for (int64_t tap_count : {1, 2, 4}) {
      make(45, tap_count);
      std::vector<float> expected = fresh().step(*table, x, 0, kRows, 0);
      Convolutions cut = fresh();
      std::vector<float> y;
      for (int64_t first = 0, count = 1; first < kRows; first += count) {
        count = std::min(kRows - first, 1 + random.below(6));
        std::vector<Capture> captures;
        int32_t middle = static_cast<int32_t>(first + count / 2);
        captures.push_back({.span = 0, .position = middle, .slot = 2});
        std::vector<float> part = cut.step(*table, x, first, count, 1, captures, &threads);
        y.insert(y.end(), part.begin(), part.end());
        // What resumes from the captured state goes on in the same way.
        int64_t rest = kRows - middle - 1;
        if (rest == 0) continue;
        std::vector<float> resumed = cut.step(*table, x, middle + 1, rest, 2);
        ASSERT_TRUE(same_bits(resumed, {expected.end() - rest * channels, expected.end()}));
      }
      EXPECT_TRUE(same_bits(y, expected)) << table->name << " taps " << taps;
    }
  }
}

// Steps with drafts, of which a random number are right, in one span or one by one.
TEST_F(ShortConv, ReplaysAreTheBitsOfPlainSteps) {
  for (const KernelTable* table : tables()) {
    for (int64_t round = 0; round < 60; ++round) {
      make(21, 1 + round % 4);
      std::vector<float> lies = random.normals(std::ssize(x), 3);
      std::vector<float> expected = fresh().step(*table, x, 0, kRows, 0);
      Convolutions plain = fresh(), drafting = fresh();
      auto expect_rows = [&](const std::vector<float>& y, int64_t first, int64_t count) {
        std::vector<float> begin(y.begin(), y.begin() + count * channels);
        auto from = expected.begin() + first * channels;
        ASSERT_TRUE(same_bits(begin, {from, from + count * channels})) << table->name << first;
      };
      int64_t done = 0;
      int32_t replayed = 0;
      while (done < kRows - 9) {
        int64_t drafts = random.below(9), right = random.below(drafts + 1);
        std::vector<float> mixed = lies;
        std::copy_n(x.begin(), (done + 1 + right) * (channels + 2), mixed.begin());
        std::vector<Capture> captures;
        if (replayed > 0) captures = {{0, static_cast<int32_t>(done - 1), 2}};
        bool one_by_one = random.below(3) == 0;
        DraftRows rows = {one_by_one ? 0 : static_cast<int32_t>(drafts), replayed, 0};
        expect_rows(drafting.step(*table, mixed, done, 1 + rows.count, 1, captures, nullptr, rows),
                    done, 1 + std::min<int64_t>(right, rows.count));
        if (replayed > 0) {
          plain.step(*table, x, done - replayed, replayed, 1);
          EXPECT_TRUE(same_bits(drafting.state(2), plain.state(1))) << table->name;
        }
        plain.step(*table, x, done, 1, 1);
        EXPECT_TRUE(same_bits(drafting.state(1), plain.state(1))) << table->name;
        for (int32_t held = 0; one_by_one && held < drafts; ++held) {
          std::vector<float> y =
              drafting.step(*table, mixed, done + 1 + held, 1, 1, {}, nullptr, {1, 0, held});
          if (held < right) expect_rows(y, done + 1 + held, 1);
          EXPECT_TRUE(same_bits(drafting.state(1), plain.state(1))) << table->name;
        }
        done += 1 + right;
        replayed = static_cast<int32_t>(right);
      }
    }
  }
}

}  // namespace
}  // namespace banyan::short_conv_test
