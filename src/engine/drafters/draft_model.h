// Speculation with a smaller model of the same vocabulary. It runs in its own state pools and radix
// tree (cache/radix_tree.h), so prefixes are shared within a namespace, and a retracted sequence
// resumes where it was. Before drafting it prefills what it is missing of a sequence, at most one
// batch per step. A sequence that does not fit into its pools gets no drafts.
//
// Draft tokens are drawn with the noise of their positions, as the target model's will be. The
// drafter owns its Runner; engine's thread only.
#pragma once

#include <memory>
#include <span>

#include "banyan/config.h"
#include "banyan/status.h"
#include "engine/drafters/drafter.h"
#include "engine/runner.h"
#include "models/registry.h"

namespace banyan {

// Whether a drafter needs it; the other that has a path, eagle3, is a part of the model.
bool loads_draft_model(const EngineConfig& config);
// Loads EngineConfig::draft_model_path. Error if its vocabulary differs from that of
// config.model_path by more than padding. Load it before the main model: it splits the memory for
// states so that both hold the same number of tokens.
Result<std::unique_ptr<Runner>> load_draft_model(const EngineConfig& config,
                                                 std::span<const Family> families);

// A drafter for sequences of a model with `vocabulary` tokens.
std::unique_ptr<Drafter> make_draft_model_drafter(const EngineConfig& config,
                                                  std::unique_ptr<Runner> draft,
                                                  int64_t vocabulary);

}  // namespace banyan
