#include "engine/drafters/step_cost.h"

#include <algorithm>
#include <cmath>

#include "base/signed.h"
#include "engine/work.h"

namespace banyan {
namespace {

// Kernels work in blocks of rows, so step times have stairs. Where they begin is only seen one row
// at a time.
constexpr int kSingleRows = 128;
constexpr double kBucketGrowth = 1.25;
// A new measurement's weight: this after one step, more after many without one.
constexpr double kWeight = 0.05, kWeightMax = 0.5;
// Of the first steps, which find cold caches, the fastest counts.
constexpr int64_t kFirstCount = 4;
// Steps that take this many times the mean were interrupted.
constexpr double kOutlier = 3;
// Measurements that a bucket counts for when neighbours contradict each other.
constexpr double kCountMax = 20, kUnmeasuredCount = 0.1;
// Assumptions of the estimate.
constexpr double kOperationsPerByte = 10, kContextTokens = 1024;

// Makes the values ascend by weighted means: isotonic regression by pooling neighbours.
void make_monotone(RowCurve& curve, const RowCurve& weights) {
  struct Pool {
    double value, weight;
    int size;
  };
  std::array<Pool, kRowBuckets> pools;
  size_t count = 0;
  for (size_t i = 0; i < curve.size(); ++i) {
    pools[count++] = {curve[i], weights[i], 1};
    while (count > 1 && pools[count - 2].value > pools[count - 1].value) {
      Pool &a = pools[count - 2], &b = pools[count - 1];
      double weight = a.weight + b.weight;
      a = {(a.value * a.weight + b.value * b.weight) / weight, weight, a.size + b.size};
      --count;
    }
  }
  size_t to = 0;
  for (size_t i = 0; i < count; ++i) {
    for (int j = 0; j < pools[i].size; ++j) curve[to++] = pools[i].value;
  }
}

}  // namespace

int row_bucket(int64_t rows) {
  if (rows <= kSingleRows) return narrow<int>(std::max<int64_t>(rows, 1)) - 1;
  double steps = std::log(static_cast<double>(rows) / kSingleRows) / std::log(kBucketGrowth);
  return std::min(kSingleRows - 1 + static_cast<int>(std::ceil(steps - 1e-9)), kRowBuckets - 1);
}

double rows_of_bucket(int bucket) {
  if (bucket < kSingleRows) return bucket + 1;
  return kSingleRows * std::pow(kBucketGrowth, bucket - kSingleRows + 1);
}

double at_rows(const RowCurve& curve, int64_t rows) {
  int above = row_bucket(rows);
  if (above < kSingleRows) return at(curve, above);
  double high = rows_of_bucket(above), low = rows_of_bucket(above - 1);
  double part = std::min((rows - low) / (high - low), 1.0);
  return at(curve, above - 1) + part * (at(curve, above) - at(curve, above - 1));
}

RowCurve default_step_estimate() {
  RowCurve estimate;
  for (int i = 0; i < kRowBuckets; ++i) at(estimate, i) = 8 + rows_of_bucket(i);
  return estimate;
}

RowCurve step_estimate(const EngineInfo& info) {
  RowCurve estimate;
  for (int i = 0; i < kRowBuckets; ++i) {
    auto rows = static_cast<int64_t>(std::lround(rows_of_bucket(i)));
    Work work = decode_work(info, rows, kContextTokens);
    at(estimate, i) = work.bytes + work.all_operations() / kOperationsPerByte;
  }
  return estimate;
}

StepCost::StepCost(const RowCurve& estimate) : estimate_(estimate) {
  double before = 1e-9;
  for (double& time : estimate_) before = time = std::max(time, before);
}

void StepCost::observe(Measured& entry, double ratio) const {
  double weight = 1;
  if (entry.count >= kFirstCount) {
    ratio = std::min(ratio, kOutlier * entry.ratio);
    double idle = steps_ - entry.last_step;
    weight = std::clamp(1 - std::pow(1 - kWeight, idle), kWeight, kWeightMax);
    weight = std::max(weight, 1 / static_cast<double>(entry.count + 1));
  } else if (entry.count > 0) {
    ratio = std::min(ratio, entry.ratio);
  }
  entry.ratio += weight * (ratio - entry.ratio);
  entry.last_step = steps_;
  ++entry.count;
}

void StepCost::observe(int64_t sequences, int64_t rows, double time_s) {
  ++steps_;
  bool drafted = rows > sequences;
  Measured& entry = at(drafted ? drafted_ : plain_, row_bucket(rows));
  observe(entry, time_s / at_rows(estimate_, rows));
}

// Between the nearest numbers of sequences that were measured.
double StepCost::plain_ratio(double rows) const {
  const Measured *low = nullptr, *high = nullptr;
  double low_rows = 0, high_rows = 0;
  for (int i = 0; i < kRowBuckets; ++i) {
    const Measured& entry = at(plain_, i);
    if (entry.count == 0) continue;
    double at_bucket = rows_of_bucket(i);
    if (at_bucket <= rows || low == nullptr) low = &entry, low_rows = at_bucket;
    if (at_bucket >= rows && high == nullptr) high = &entry, high_rows = at_bucket;
  }
  if (low == nullptr) return 1;
  if (high == nullptr || high_rows <= low_rows) return low->ratio;
  double part = std::clamp((rows - low_rows) / (high_rows - low_rows), 0.0, 1.0);
  return low->ratio + part * (high->ratio - low->ratio);
}

double StepCost::plain_s(int64_t sequences) const {
  const Measured& exact = at(plain_, row_bucket(sequences));
  double ratio = exact.count > 0 ? exact.ratio : plain_ratio(sequences);
  return ratio * at_rows(estimate_, sequences);
}

// As plain_ratio(), over steps with drafts, for each bucket. Steps without drafts stand in for
// those of as many rows.
RowCurve StepCost::drafted_ratios(double sequences, double ratio_of_plain) const {
  RowCurve ratios;
  double low = ratio_of_plain, low_rows = sequences;
  int high = row_bucket(sequences) + 1;  // the next that was measured
  for (int i = 0; i < kRowBuckets; ++i) {
    double rows = rows_of_bucket(i);
    if (at(drafted_, i).count > 0) {
      at(ratios, i) = at(drafted_, i).ratio;
      if (rows > sequences) low = at(ratios, i), low_rows = rows;
      continue;
    }
    high = std::max(high, i + 1);
    while (high < kRowBuckets && at(drafted_, high).count == 0) ++high;
    at(ratios, i) = low;
    if (high == kRowBuckets) continue;
    double part = std::clamp((rows - low_rows) / (rows_of_bucket(high) - low_rows), 0.0, 1.0);
    at(ratios, i) += part * (at(drafted_, high).ratio - low);
  }
  return ratios;
}

RowCurve StepCost::drafted_s(int64_t sequences) const {
  double plain = plain_s(sequences), ratio = plain / at_rows(estimate_, sequences);
  RowCurve curve = drafted_ratios(sequences, ratio), weights;
  for (int i = 0; i < kRowBuckets; ++i) {
    at(curve, i) = std::max(plain, at(curve, i) * at(estimate_, i));
    double count = at(drafted_, i).count;
    at(weights, i) = std::clamp(count, kUnmeasuredCount, kCountMax);
  }
  make_monotone(curve, weights);
  return curve;
}

int64_t StepCost::plain_age(int64_t sequences) const {
  return steps_ - at(plain_, row_bucket(sequences)).last_step;
}

int64_t StepCost::drafted_age(int64_t rows) const {
  return steps_ - at(drafted_, row_bucket(rows)).last_step;
}

bool StepCost::knows_drafted(int64_t rows) const {
  return at(drafted_, row_bucket(rows)).count > 0;
}

}  // namespace banyan
