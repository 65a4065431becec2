// The time of decode steps by their rows, as measured while the engine runs.
//
// Times of steps without drafts are kept by number of sequences, those of steps with drafts by
// number of rows: singly up to 128, then in buckets that grow by a quarter. Unmeasured sizes are
// extrapolated along an estimate: the bytes and operations of the model. Old measurements weigh
// less than new ones. Engine's thread only.
#pragma once

#include <array>
#include <cstdint>

#include "banyan/engine.h"

namespace banyan {

inline constexpr int kRowBuckets = 145;
using RowCurve = std::array<double, kRowBuckets>;  // a value for each bucket of rows

int row_bucket(int64_t rows);
// The number of rows that stands for a bucket.
double rows_of_bucket(int bucket);
// Between the buckets' values, linearly.
double at_rows(const RowCurve& curve, int64_t rows);

// Relative times by rows before anything is measured. Either the step's fixed cost equals that of
// eight rows, ...
RowCurve default_step_estimate();
// ... or times follow what the model's rows read and compute, on a machine that does ten operations
// in the time of reading one byte.
RowCurve step_estimate(const EngineInfo& info);

class StepCost {
 public:
  explicit StepCost(const RowCurve& estimate = default_step_estimate());

  // A step of `sequences` sequences over `rows` rows, more than sequences if it had drafts.
  void observe(int64_t sequences, int64_t rows, double time_s);

  // Seconds of a step without drafts; in the estimate's unit if none was measured.
  double plain_s(int64_t sequences) const;
  // Seconds of steps of this many sequences with drafts; never less than plain_s().
  RowCurve drafted_s(int64_t sequences) const;

  bool measured() const { return steps_ > 0; }
  int64_t steps() const { return steps_; }  // observed
  // Steps observed since one like this; all of them if there was none.
  int64_t plain_age(int64_t sequences) const;
  int64_t drafted_age(int64_t rows) const;
  // Whether one was observed.
  bool knows_drafted(int64_t rows) const;

 private:
  // The decayed mean of measured times over the estimate.
  struct Measured {
    double ratio = 0;
    int64_t count = 0, last_step = 0;
  };
  using Table = std::array<Measured, kRowBuckets>;

  void observe(Measured& entry, double ratio) const;
  double plain_ratio(double rows) const;
  RowCurve drafted_ratios(double sequences, double ratio_of_plain) const;

  RowCurve estimate_;
  Table plain_{}, drafted_{};
  int64_t steps_ = 0;
};

}  // namespace banyan
