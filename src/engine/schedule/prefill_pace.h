// How many rows of prompts a step reads while other sequences decode, so that their next tokens
// come in time. Results do not depend on it. Engine's thread only.
#pragma once

#include <cstdint>

namespace banyan {

class PrefillPace {
 public:
  // Steps should take `step_ms`; 0: they read `rows_max` rows. Rows are multiples of `alignment`.
  PrefillPace(double step_ms, int64_t rows_max, int64_t alignment);

  int64_t rows() const;
  // A step that read this many rows of prompts took so long, with everything else that it did.
  void observe(int64_t rows, double time_s);

 private:
  const double step_s_;
  const int64_t rows_max_, rows_min_, alignment_;
  double row_s_ = 0;  // of a step's time, for each row of prompts; 0: not measured yet
};

}  // namespace banyan
