// Decides from measured step times whether speculation is faster on this machine and model, and
// what a draft row costs.
//
// The baseline is the time of steps without drafts, per number of sequences. A step with drafts is
// worth as many baseline steps as it draws tokens per sequence. If such steps take longer than they
// are worth, drafting pauses, and longer after each further loss. Their extra time per extra row
// bounds the draft length. Steps with prefill are ignored, since prompts dominate their time.
//
// Times vary from run to run, and so may the number of steps; the tokens do not. Engine's thread
// only.
#pragma once

#include <array>
#include <cstdint>

namespace banyan {

class DraftGain {
 public:
  struct Step {
    int64_t sequences = 0;  // 0: not measured
    int64_t rows = 0;       // including drafts and recomputed rows
    int64_t tokens = 0;     // tokens drawn
    double time_s = 0;
  };

  void observe(const Step& step);
  // Whether the next step may have drafts.
  bool allows() const { return pause_ == 0; }
  // The fixed cost of a step of this many sequences, in rows.
  double step_rows(int64_t sequences) const;

 private:
  static constexpr int kSequencesMax = 64;  // above this, drafting hardly pays: not measured

  void observe_plain(const Step& step);
  void observe_drafted(const Step& step);

  std::array<double, kSequencesMax + 1> plain_s_{};  // baseline by number of sequences; 0: unknown
  double worth_s_ = 0, spent_s_ = 0;                 // of recent steps with drafts
  double more_s_ = 0, more_rows_ = 0;                // in excess of steps without drafts
  int drafted_ = 0;  // steps with drafts and a known baseline since the last decision
  int unknown_ = 0;  // steps with drafts but no baseline
  int losses_ = 0;   // consecutive ones
  int pause_ = 0;    // remaining steps of a pause
};

}  // namespace banyan
