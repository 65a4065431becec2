// Steps that compute nothing and take as long as a model's steps take elsewhere. For tests of
// routers and fleets, in which one machine runs more workers than it otherwise could.
//
// Draws are those of a model to which every token is equally likely. A token follows from the seed,
// the sample and the position (at temperature 0 from the position alone), is one that the
// constraint allows, and has the log-probability -ln(vocabulary). Parameters that reshape a
// distribution have no effect. Engine's thread only.
#pragma once

#include <chrono>

#include "banyan/config.h"
#include "ops/batch.h"
#include "ops/draw.h"

namespace banyan {

class StepEmulator {
 public:
  StepEmulator(const StepTimes& times, int64_t vocabulary)
      : times_(times), vocabulary_(vocabulary) {}

  // Begins when the previous step ends. One other step may be in flight.
  void launch(const Batch& batch, const DrawBatch& draws);
  // Sleeps until the oldest step in flight ends. Valid until the second launch after this call.
  const DrawResults& collect();

 private:
  using Clock = std::chrono::steady_clock;
  struct Flight {
    DrawResults results;
    Clock::time_point end;
  };

  DrawResult draw(const DrawRow& row, const DrawBatch& draws, DrawResults& results) const;
  TokenId token_of(const DrawRow& row, const DrawBatch& draws) const;

  const StepTimes times_;
  const int64_t vocabulary_;
  Flight flights_[2];  // steps with even and with odd numbers
  int64_t launched_ = 0, collected_ = 0;
  Clock::time_point busy_until_;
};

}  // namespace banyan
