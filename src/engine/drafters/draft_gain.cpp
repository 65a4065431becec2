#include "engine/drafters/draft_gain.h"

#include <algorithm>

#include "base/signed.h"

namespace banyan {
namespace {

// Estimate before anything is measured: large dense models are far above it, small models below.
constexpr double kStepRows = 8;
constexpr double kStepRowsMin = 0.25, kStepRowsMax = 256;
// Decay of the moving averages per step.
constexpr double kPlainMemory = 0.9, kDraftedMemory = 0.97;
// Steps that take this many times the average are discarded as interrupted.
constexpr double kOutlier = 3;
constexpr int kVerdictSteps = 16;   // steps with drafts between decisions
constexpr int kYardstickSteps = 8;  // steps without drafts to run if none were measured
// The speedup below which drafting is not worth it.
constexpr double kGainMin = 1.01;
// Drafting pauses for 64, 128, ... 4096 steps.
constexpr int kPauseSteps = 64, kLossesMax = 6;

}  // namespace

double DraftGain::step_rows(int64_t sequences) const {
  double plain_s = sequences <= kSequencesMax ? at(plain_s_, sequences) : 0;
  if (plain_s == 0 || more_rows_ < 1) return kStepRows;
  double row_s = std::max(more_s_ / more_rows_, plain_s / kStepRowsMax);
  return std::clamp(plain_s / row_s - static_cast<double>(sequences), kStepRowsMin, kStepRowsMax);
}

void DraftGain::observe(const Step& step) {
  if (step.sequences == 0 || step.sequences > kSequencesMax || step.time_s <= 0) return;
  if (step.rows == step.sequences) {
    observe_plain(step);
  } else {
    observe_drafted(step);
  }
}

void DraftGain::observe_plain(const Step& step) {
  double& plain_s = at(plain_s_, step.sequences);
  if (plain_s == 0) plain_s = step.time_s;
  plain_s = kPlainMemory * plain_s + (1 - kPlainMemory) * std::min(step.time_s, kOutlier * plain_s);
  if (pause_ > 0) --pause_;
}

void DraftGain::observe_drafted(const Step& step) {
  if (pause_ > 0) return;  // drafts that were already in flight
  double plain_s = at(plain_s_, step.sequences);
  if (plain_s == 0) {
    if (++unknown_ >= kVerdictSteps) {
      unknown_ = 0;
      pause_ = kYardstickSteps;
    }
    return;
  }
  auto rows = static_cast<double>(step.rows), sequences = static_cast<double>(step.sequences);
  double time_s = std::min(step.time_s, kOutlier * plain_s * rows / sequences);
  more_s_ = kDraftedMemory * more_s_ + time_s - plain_s;
  more_rows_ = kDraftedMemory * more_rows_ + rows - sequences;
  worth_s_ = kDraftedMemory * worth_s_ + plain_s * static_cast<double>(step.tokens) / sequences;
  spent_s_ = kDraftedMemory * spent_s_ + time_s;
  if (++drafted_ < kVerdictSteps) return;
  if (worth_s_ >= kGainMin * spent_s_) {
    losses_ = 0;
    return;
  }
  pause_ = kPauseSteps << std::min(losses_++, kLossesMax);
  drafted_ = 0;
  worth_s_ = spent_s_ = 0;
}

}  // namespace banyan
