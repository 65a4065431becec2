// How many threads steps use while other programs use the processors too. Every kernel waits for
// all of its threads, so two threads of which one waits for its turn may be slower than one. Only a
// trial tells: steps of the same rows with as many threads as now and with more or fewer, in turn.
// No bit of a result depends on it.
//
// Steps with few rows and with many are tried on their own, since the former spend their time
// waiting for memory and for each other. Engine's thread only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace banyan {

class ThreadChoice {
 public:
  explicit ThreadChoice(int threads);

  // Other programs leave so many processors. While that is nearly one for each thread, all threads
  // are used.
  void set_free(double processors);
  // For the next step.
  int threads_for(int64_t rows) const;
  // It took so long.
  void observe(int64_t rows, double time_s);

 private:
  // Of steps that have some power of four of rows.
  struct Kind {
    size_t level = 0;   // of levels_, in use
    size_t rival = 0;   // compared with it; equal: none
    bool up = false;    // the next trial is of more threads
    int64_t rows = 0;   // of the steps that are compared
    int64_t steps = 0;  // of the trial
    std::vector<double> times, rival_times;
    double tried_s = 0;  // time of the trial
    double rest_s = 0;   // time until the next one
  };
  static constexpr size_t kKinds = 6;
  static size_t kind_of(int64_t rows);
  bool rival_runs(const Kind& kind) const;
  void begin(Kind& kind, int64_t rows) const;
  void decide(Kind& kind);

  std::vector<int> levels_;  // numbers of threads, descending
  std::array<Kind, kKinds> kinds_;
  bool contended_ = false;
  double free_ = 0;  // processors that others leave
};

}  // namespace banyan
