// Samples draft tokens from a drafter's logits with the same noise, filters, penalties and mask
// that the target model will use at that position. Where the logits are close, both therefore pick
// the same token at any temperature (kernels/race.h). Engine's thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/drafters/drafter.h"
#include "ops/draw.h"

namespace banyan {

class CoupledDraws {
 public:
  // `logits` is the width of the drafter's logits, `vocabulary` that of the model's. Both have the
  // same tokens, but either may be padded.
  CoupledDraws(int64_t logits, int64_t vocabulary);

  void clear() { draws_.clear(); }
  // Adds a row: the token after the task's tokens so far.
  void add(const DraftTask& task);
  const DrawBatch& draws() const { return draws_; }

  // Appends the token drawn in `row` to the task, and other likely ones as branches. False if
  // nothing can follow it.
  bool take(const DrawResults& results, size_t row, DraftTask& task) const;

 private:
  void branch(const DrawResults& results, size_t row, DraftTask& task) const;
  bool may_follow(TokenId token, const DraftTask& task) const;
  void walk(const DraftTask& task);
  bool allows(Sequence& s, TokenId token);
  void walk_back(const DraftTask& task);
  ArrayPart add_counts(const Sequence& s);
  int32_t add_mask(const Sequence& s);

  const int64_t logits_, vocabulary_;
  DrawBatch draws_;
  std::vector<uint32_t> mask_;  // over the model's vocabulary
  int walked_ = 0;              // tokens the constraint has accepted
};

}  // namespace banyan
