#include "engine/drafters/acceptance.h"

#include <algorithm>

#include "base/signed.h"

namespace banyan {
namespace {

// Decay per token of the counts over all sequences, and of one sequence's.
constexpr double kMemory = 0.995, kOwnMemory = 0.98;
// ... and of one sequence's per step in which nothing of it was verified.
constexpr double kIdleMemory = 0.98;
// How many tokens a prior counts for, that of one position, and rejections of one sequence.
constexpr double kPriorTokens = 4, kPositionPrior = 12, kOwnPrior = 1.5;
// Even a hopeless source keeps this chance: one that is never tried could not recover.
constexpr double kChanceMin = 0.02, kChanceMax = 0.999;
// Chances before anything is measured. The first source is text that a constraint forces.
constexpr double kForcedPrior = 0.99, kDraftPrior = 0.8;

}  // namespace

void OwnAcceptance::observe(double chance, bool accepted) {
  rejected = rejected * kOwnMemory + (accepted ? 0 : 1);
  expected = expected * kOwnMemory + 1 - chance;
}

void OwnAcceptance::fade() {
  rejected *= kIdleMemory;
  expected *= kIdleMemory;
}

double OwnAcceptance::correct(double chance) const {
  double factor = (rejected + kOwnPrior) / (expected + kOwnPrior);
  return std::clamp(1 - (1 - chance) * factor, kChanceMin, kChanceMax);
}

void Acceptance::Count::observe(bool kept) {
  accepted = accepted * kMemory + (kept ? 1 : 0);
  seen = seen * kMemory + 1;
}

double Acceptance::Count::rate(double prior, double tokens) const {
  return (accepted + prior * tokens) / (seen + tokens);
}

size_t Acceptance::position_of(int64_t position) {
  return std::min(as_size(position), kPositions - 1);
}

size_t Acceptance::confidence_of(float confidence) {
  auto index = static_cast<size_t>(std::clamp(confidence, 0.f, 1.f) * kConfidences);
  return std::min(index, kConfidences - 1);
}

double Acceptance::rate(int source) const {
  return at(sources_, source).all.rate(source == 0 ? kForcedPrior : kDraftPrior, kPriorTokens);
}

double Acceptance::common(int source, const DraftToken& token) const {
  if (filter_ != nullptr && source != 0) return filter_->chance(token);
  const Source& of = at(sources_, source);
  size_t bucket = confidence_of(token.confidence);
  double prior = (rate(source) + std::clamp<double>(token.confidence, 0, kForcedPrior)) / 2;
  double alike = of.by_confidence[bucket].rate(prior, kPriorTokens);
  return of.by_position[position_of(token.position)][bucket].rate(alike, kPositionPrior);
}

double Acceptance::chance(int source, const DraftToken& token, const OwnAcceptance& own) const {
  return own.correct(common(source, token));
}

double Acceptance::branch_chance(float confidence) const {
  double prior = std::clamp(confidence, 0.f, 1.f);
  double chance = branches_[confidence_of(confidence)].rate(prior, kPriorTokens);
  return std::clamp(chance, kChanceMin, kChanceMax);
}

void Acceptance::observe_branch(float confidence, bool accepted) {
  branches_[confidence_of(confidence)].observe(accepted);
}

void Acceptance::observe(int source, const DraftToken& token, bool accepted, OwnAcceptance& own) {
  own.observe(common(source, token), accepted);
  Source& of = at(sources_, source);
  size_t bucket = confidence_of(token.confidence);
  of.all.observe(accepted);
  of.by_confidence[bucket].observe(accepted);
  of.by_position[position_of(token.position)][bucket].observe(accepted);
}

}  // namespace banyan
