#include "engine/tiers/rates.h"

#include <algorithm>

#include "banyan/engine.h"
#include "engine/work.h"

namespace banyan {
namespace {

// Weight of a new measurement.
constexpr double kStepShare = 0.2, kReadShare = 0.2;
// Operations per second of one thread. Rather too few than too many, since a disk is rarely the
// slower choice.
constexpr double kRatePerThread = 30e9;
// Shorter reads measure latency rather than bandwidth.
constexpr int64_t kReadBytesMin = int64_t{1} << 16;

double follow(double old, double now, double share) {
  return old + share * (now - old);
}

}  // namespace

// Two lengths of a prompt give both numbers: n tokens take first * n + slope * n^2 / 2.
PrefillCost::PrefillCost(const EngineInfo& info)
    : first_(0),
      slope_(0),
      seconds_per_operation_(1 / (kRatePerThread * std::max(info.threads, 1))) {
  constexpr int64_t kTokens = 1024;
  double one = prompt_work(info, 1, kTokens).all_operations();
  double two = prompt_work(info, 1, 2 * kTokens).all_operations();
  constexpr double kSquare = kTokens * kTokens;
  slope_ = std::max(0.0, (two - 2 * one) / kSquare);
  first_ = (one - slope_ * kSquare / 2) / kTokens;
}

double PrefillCost::operations(int64_t begin, int64_t end) const {
  auto a = static_cast<double>(begin), b = static_cast<double>(end);
  return first_ * (b - a) + slope_ * (b * b - a * a) / 2;
}

void PrefillCost::observe(double operations, double seconds) {
  if (operations <= 0 || seconds <= 0) return;
  double now = seconds / operations;
  seconds_per_operation_ = measured_ ? follow(seconds_per_operation_, now, kStepShare) : now;
  measured_ = true;
}

void LoadCost::observe_read(int64_t bytes, double seconds) {
  if (bytes < kReadBytesMin || seconds <= 0) return;
  double now = bytes / seconds;
  bytes_per_s_ = measured_ ? follow(bytes_per_s_, now, kReadShare) : now;
  measured_ = true;
}

void LoadCost::observe_latency(double seconds) {
  latency_s_ = follow(latency_s_, seconds, kReadShare);
}

double LayerCosts::find_s() const {
  double s = 0;
  for (int i = 0; i < layers_; ++i) s += costs_[i].seconds(0);
  return s;
}

double LayerCosts::seconds(const LayerBytes& bytes, const LayerBytes& bytes_ahead) const {
  double s = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > 0) s = std::max(s, costs_[i].seconds(bytes[i] + bytes_ahead[i]));
  }
  return s;
}

}  // namespace banyan
