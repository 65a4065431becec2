// Draws of the tokens of drafts, from logits of the drafter: with the noise, filters, penalties and
// mask that the sequence's own token at that position will be drawn with. So both draws mostly
// agree where the logits do, at any temperature (kernels/race.h).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/drafters/drafter.h"
#include "ops/draw.h"

namespace banyan {

class CoupledDraws {
 public:
  // The drafter's logits are of `logits` tokens, the model draws from `vocabulary`: of the same
  // ones, but each may have padding.
  CoupledDraws(int64_t logits, int64_t vocabulary);

  void clear() { draws_.clear(); }
  // One row: the token after those that the task has so far.
  void add(const DraftTask& task);
  const DrawBatch& draws() const { return draws_; }

  // Adds what was drawn to the task. False where nothing can follow.
  bool take(const DrawResult& result, DraftTask& task) const;

 private:
  void walk(const DraftTask& task);
  bool allows(Sequence& s, TokenId token);
  void walk_back(const DraftTask& task);
  ArrayPart add_biases(const Sequence& s);
  ArrayPart add_counts(const Sequence& s);
  int32_t add_mask(const Sequence& s);

  const int64_t logits_, vocabulary_;
  DrawBatch draws_;
  std::vector<uint32_t> mask_;  // of the model's vocabulary
  int walked_ = 0;              // tokens that the constraint accepted
};

}  // namespace banyan
