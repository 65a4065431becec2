// Collects the inputs of sampling for each logit row: parameters, random counter, and masks and
// counts at the row's position. A draw depends on nothing else.
//
// Rows after draft tokens need masks for text that is not accepted yet. The constraint advances
// along the draft as far as its masks allow, then rolls back. A row after a forbidden or final
// token can never be used, so it draws nothing. Engine's thread only.
#pragma once

#include <cstdint>
#include <span>

#include "engine/batch_builder.h"
#include "ops/draw.h"

namespace banyan {

// Sets sampling parameters only: no mask, counts, biases or top logprobs.
DrawRow draw_row(const SamplingParams& params, int64_t position);

// Fills `draws`, one row for each of `uses`. The state of sequences is restored before it returns.
void build_draws(std::span<const LogitRowUse> uses, int64_t vocabulary, DrawBatch& draws);

// The same for a step that follows one which is not read yet: requests whose draws depend on no
// token before them. Kernels set the noise's position.
void build_following_draws(std::span<const LogitRowUse> uses, int64_t vocabulary, DrawBatch& draws);

// For tokens that a model drafts for such a step: rows [drafts, plan.spans] over the first `logits`
// tokens.
void build_draft_draws(const StepPlan& plan, int64_t drafts, int64_t logits, DrawBatch& draws);

// Appends the request's biases of the first `vocabulary` tokens.
ArrayPart add_biases(const SamplingParams& params, int64_t vocabulary, DrawBatch& draws);

}  // namespace banyan
