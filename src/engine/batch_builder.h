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

// A row whose hidden state becomes a part of its sequence's embedding.
struct HiddenRowUse {
  Sequence* sequence = nullptr;
  int64_t position = 0;
};

// Fills `batch` and `uses` (one entry per batch.logit_rows) from `plan`.
void build_batch(const StepPlan& plan, const StateClasses& classes, Batch& batch,
                 std::vector<LogitRowUse>& uses);

// Fills the hidden_rows of such a batch, and `uses` (one entry for each).
void add_hidden_rows(const StepPlan& plan, Batch& batch, std::vector<HiddenRowUse>& uses);

// The same for a step that follows one which is not read yet (Scheduler::follow()): its tokens, and
// where exactly its rows are, become known on the device.
void build_following(const StepPlan& plan, const StateClasses& classes, Batch& batch,
                     std::vector<LogitRowUse>& uses);

// A row of each span of such a plan, whose token is the one drawn in that row before, at most
// `ahead` positions into the span.
void build_draft_rows(const StepPlan& plan, int64_t ahead, const StateClasses& classes,
                      Batch& batch);

}  // namespace banyan
