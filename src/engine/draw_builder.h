// From the rows that are asked for logits to what the draw of each depends on, so that it depends
// on nothing else: parameters, noise, and masks and counts as they are at the row's position.
//
// Rows of a draft follow tokens that nobody has drawn yet. For their masks the constraint walks
// along the draft and back again, as far as its masks allow the tokens. A row after a token that
// cannot come, or that ends the sequence, is never on the path and draws nothing.
#pragma once

#include <cstdint>
#include <span>

#include "engine/batch_builder.h"
#include "ops/draw.h"

namespace banyan {

// The parameters alone: no mask, counts, biases nor tops.
DrawRow draw_row(const SamplingParams& params, int64_t position);

// Fills `draws`, one row for each of `uses`. Sequences are as before when it returns.
void build_draws(std::span<const LogitRowUse> uses, int64_t vocabulary, DrawBatch& draws);

}  // namespace banyan
