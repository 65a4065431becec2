// Drafts of a smaller model of the same vocabulary, which runs over the sequences' tokens in pools
// and in a tree of its own (the scheduler's, cache/radix_tree.h): so it shares prefixes within a
// namespace as the model does, and goes on where it was when a sequence is retracted and comes
// back. What it lacks of a sequence it reads when it is asked for drafts, at most one batch of rows
// a step; where its pools have no room for a sequence, that one gets no drafts.
//
// Its tokens are drawn with the noise of their positions, as the model's will be.
#pragma once

#include <memory>
#include <span>

#include "banyan/config.h"
#include "banyan/status.h"
#include "engine/drafters/drafter.h"
#include "engine/runner.h"
#include "models/registry.h"

namespace banyan {

// The model in EngineConfig::draft_model_path. Refused where its vocabulary is not that of
// config.model_path: sizes may differ by padding alone. To be loaded first: the memory for states
// is divided between both so that they hold as many tokens.
Result<std::unique_ptr<Runner>> load_draft_model(const EngineConfig& config,
                                                 std::span<const Family> families);

// Drafts for sequences of a model that draws from so many tokens.
std::unique_ptr<Drafter> make_draft_model_drafter(const EngineConfig& config,
                                                  std::unique_ptr<Runner> draft,
                                                  int64_t vocabulary);

}  // namespace banyan
