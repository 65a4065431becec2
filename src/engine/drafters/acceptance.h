// How likely draft tokens are to be accepted, learned from verified drafts.
//
// Tokens are counted by source, position in the draft, and the drafter's own confidence; old counts
// decay. The fewer were seen, the more weight has the rate of all positions, and before that the
// mean of the source's rate and the confidence. On top of that each sequence has a factor on
// rejections, for text that is easier or harder than the average. Cutting a draft where its tokens
// become unlikely is the filter of C2T (Huo et al. 2025, arXiv:2502.13652) as a table: it is
// indexed by what that network takes as its input. A trained network may take its place
// (draft_filter.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "banyan/engine.h"
#include "engine/drafters/draft_filter.h"

namespace banyan {

// Rejected tokens of one sequence and source, and how many were expected.
struct OwnAcceptance {
  double rejected = 0, expected = 0;

  void observe(double chance, bool accepted);
  // Without new drafts the counts decay, since the text may have changed.
  void fade();
  // A chance over all sequences, corrected for this one.
  double correct(double chance) const;
};

class Acceptance {
 public:
  // With a filter for the tokens of drafters; null: none.
  explicit Acceptance(std::shared_ptr<const DraftFilter> filter = nullptr)
      : filter_(std::move(filter)) {}

  // The probability that a drafter's token is accepted, given that all before it are.
  double chance(int source, const DraftToken& token, const OwnAcceptance& own) const;
  // Records a token that was reached by verification.
  void observe(int source, const DraftToken& token, bool accepted, OwnAcceptance& own);
  // The same of the first token of a branch, which competes with the trunk's token.
  double branch_chance(float confidence) const;
  void observe_branch(float confidence, bool accepted);
  // The mean over all tokens of a source.
  double rate(int source) const;

 private:
  static constexpr size_t kSources = EngineStats::kDraftersMax, kPositions = 8, kConfidences = 16;

  struct Count {
    double accepted = 0, seen = 0;
    void observe(bool kept);
    // With a prior that counts for so many tokens.
    double rate(double prior, double tokens) const;
  };
  struct Source {
    Count all;
    std::array<Count, kConfidences> by_confidence;
    std::array<std::array<Count, kConfidences>, kPositions> by_position;
  };

  static size_t position_of(int64_t position);
  static size_t confidence_of(float confidence);
  double common(int source, const DraftToken& token) const;

  const std::shared_ptr<const DraftFilter> filter_;
  std::array<Source, kSources> sources_;
  std::array<Count, kConfidences> branches_;  // of all sources, by confidence
};

}  // namespace banyan
