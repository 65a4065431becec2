// From a plan (sequences and positions) to a Batch (arrays).
#pragma once

#include <vector>

#include "engine/schedule/scheduler.h"
#include "ops/batch.h"

namespace banyan {

// What the logits of one row of the batch are for.
struct LogitRowUse {
  Sequence* sequence = nullptr;
  int64_t position = 0;  // of the row; its logits are those of the token after it
  TokenId token = 0;     // the row's token: known, or a draft
  bool samples = false;  // whether the next token is to be drawn
  int path = 0;          // which draft of the sequence it belongs to: Sequence::Draft::path
};

// Fills `batch` and `uses` (one entry per batch.logit_rows) from `plan`.
void build_batch(const StepPlan& plan, const StateClasses& classes, Batch& batch,
                 std::vector<LogitRowUse>& uses);

}  // namespace banyan
