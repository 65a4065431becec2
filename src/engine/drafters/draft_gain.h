// Whether drafts gain time on this machine and model, and what a row costs there: by the times of
// the steps themselves.
//
// A step without drafts is the yardstick, by how many sequences were in it. One with drafts is
// worth as much of it as it draws tokens for each sequence; where steps with drafts take longer
// than they are worth, none are proposed for a while, and ever longer while that does not change.
// What such steps take longer, for each row that they have more, says how long a draft may be.
// Prompts make steps longer than either, so a step with one says nothing.
//
// Times differ from run to run, so the number of steps may; what is drawn does not depend on it.
#pragma once

#include <array>
#include <cstdint>

namespace banyan {

class DraftGain {
 public:
  struct Step {
    int64_t sequences = 0;  // 0: the step says nothing
    int64_t rows = 0;       // of drafts and of what is computed again, too
    int64_t tokens = 0;     // that were drawn
    double time_s = 0;
  };

  void observe(const Step& step);
  // Tokens may be proposed for the next step.
  bool allows() const { return pause_ == 0; }
  // What a step of so many sequences costs besides its rows, in rows.
  double step_rows(int64_t sequences) const;

 private:
  static constexpr int kSequencesMax = 64;  // more: nothing is measured, drafts are hardly proposed

  void observe_plain(const Step& step);
  void observe_drafted(const Step& step);

  std::array<double, kSequencesMax + 1> plain_s_{};  // by sequences; 0: not known
  double worth_s_ = 0, spent_s_ = 0;                 // of the last steps with drafts
  double more_s_ = 0, more_rows_ = 0;                // than steps without
  int drafted_ = 0;  // steps with drafts since the last verdict, plain ones being known
  int unknown_ = 0;  // steps with drafts that nothing could be compared with
  int losses_ = 0;   // in a row
  int pause_ = 0;    // steps that are left of one
};

}  // namespace banyan
