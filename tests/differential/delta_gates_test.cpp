// The gates of the delta rule, of every table, against f64.
#include <gtest/gtest.h>

#include <cmath>

#include "differential/kernels.h"

namespace banyan::delta_gates_test {
namespace {

using namespace test;  // NOLINT

constexpr int64_t kRows = 40, kHeads = 3;

double sigmoid(double z) {
  return 1 / (1 + std::exp(-z));
}

// The argument of the outer exponential is off by a few roundings and by as many of its own
// argument, and a relative error of it becomes an absolute one of its size.
TEST(DeltaGates, FollowTheFormulasOverTheWholeRange) {
  Random random(1);
  for (const KernelTable* table : tables()) {
    for (int64_t key_dim : {1, 8, 13, 128}) {
      for (float lower_bound : {0.0f, -5.0f}) {
        int64_t width = kHeads * key_dim, decay_stride = width + 3, beta_stride = kHeads + 1;
        auto logits = random.normals(kRows * decay_stride, 30), bias = random.normals(width, 3);
        auto beta_logits = random.normals(kRows * beta_stride, 10);
        for (size_t i = 0; i < logits.size(); i += 3) logits[i] /= 30;
        std::vector<float> log_rate = {-2.0f, 0.0f, 1.5f}, decay(kRows * width, NAN);
        std::vector<float> beta(kRows * kHeads, NAN);
        ThreadPool threads(2);
        table->delta_gates({.launch = {.threads = &threads},
                            .decay_logits = logits.data(),
                            .beta_logits = beta_logits.data(),
                            .decay_row_stride = decay_stride,
                            .beta_row_stride = beta_stride,
                            .log_rate = log_rate.data(),
                            .bias = bias.data(),
                            .lower_bound = lower_bound,
                            .decay = decay.data(),
                            .beta = beta.data(),
                            .rows = kRows,
                            .heads = kHeads,
                            .key_dim = key_dim});
        for (int64_t i = 0; i < kRows * width; ++i) {
          int64_t r = i / width, h = i % width / key_dim;
          double rate = std::exp(double{log_rate[h]});
          double z = double{logits[r * decay_stride + i % width]} + double{bias[i % width]};
          double log_decay = lower_bound < 0 ? double{lower_bound} * sigmoid(rate * z)
                                             : -rate * (z > 30 ? z : std::log1p(std::exp(z)));
          double argument = std::fmax(std::fabs(z), 3) * std::fmax(rate, 1);
          double error = (4 + std::fabs(log_decay) * (8 + 3 * argument)) * double{kEpsilon};
          ASSERT_NEAR(decay[i], std::exp(log_decay), error * std::exp(log_decay) + 1e-37)
              << table->name << " bound " << lower_bound << " z " << z << " rate " << rate;
          ASSERT_TRUE(decay[i] >= 0 && decay[i] <= 1) << decay[i];
        }
        for (int64_t i = 0; i < kRows * kHeads; ++i) {
          float z = beta_logits[i / kHeads * beta_stride + i % kHeads];
          ASSERT_NEAR(beta[i], sigmoid(double{z}), 4e-7) << table->name << " z " << z;
        }
      }
    }
  }
}

TEST(StateSpaceGates, FollowTheFormulasOverTheWholeRange) {
  Random random(2);
  constexpr int64_t kManyHeads = 19, kStride = kManyHeads + 2;
  for (const KernelTable* table : tables()) {
    auto logits = random.normals(kRows * kStride, 15), bias = random.normals(kManyHeads, 3);
    auto log_rate = random.normals(kManyHeads);
    std::vector<float> step(kRows * kManyHeads, NAN), decay = step;
    ThreadPool threads(2);
    table->state_space_gates({.launch = {.threads = &threads},
                              .step_logits = logits.data(),
                              .logits_row_stride = kStride,
                              .bias = bias.data(),
                              .log_rate = log_rate.data(),
                              .step_min = 0.01f,
                              .step_max = 8,
                              .step = step.data(),
                              .decay = decay.data(),
                              .rows = kRows,
                              .heads = kManyHeads});
    for (int64_t i = 0; i < kRows * kManyHeads; ++i) {
      int64_t r = i / kManyHeads, h = i % kManyHeads;
      double z = double{logits[r * kStride + h]} + double{bias[h]};
      double softplus = z > 30 ? z : std::log1p(std::exp(z));
      double exact = std::fmin(std::fmax(softplus, double{0.01f}), 8);
      ASSERT_NEAR(step[i], exact, 1e-6 * (1 + std::fabs(z)) * exact) << table->name << " z " << z;
      double log_decay = -std::exp(double{log_rate[h]}) * double{step[i]};
      ASSERT_NEAR(decay[i], std::exp(log_decay),
                  (4 + 4 * std::fabs(log_decay)) * double{kEpsilon} * std::exp(log_decay) + 1e-37)
          << table->name;
    }
  }
}

}  // namespace
}  // namespace banyan::delta_gates_test
