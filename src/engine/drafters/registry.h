// The table of drafters, by the names that EngineConfig::drafters uses.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/config.h"
#include "banyan/status.h"
#include "engine/drafters/drafter.h"
#include "engine/runner.h"

namespace banyan {

// The models that drafters run on.
struct DrafterModels {
  Runner& runner;                 // the engine's model
  std::unique_ptr<Runner> draft;  // from load_draft_model(); null: none
};

struct DrafterKind {
  std::string_view name;
  std::unique_ptr<Drafter> (*make)(const EngineConfig& config, DrafterModels& models);
};

// In the order in which they are asked: cheapest first.
std::span<const DrafterKind> registered_drafters();

// EngineConfig::drafters, or the one implied by draft_model_path. Errors: an unknown name (lists
// the known ones), a draft model without its drafter, or the drafter without a model.
Result<std::vector<std::string>> chosen_drafters(const EngineConfig& config);

// Makes the drafters in config.drafters, plus `ngram` for requests with a predicted output.
std::vector<NamedDrafter> make_drafters(const EngineConfig& config, DrafterModels models);

}  // namespace banyan
