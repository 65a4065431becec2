// The drafters that there are.
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

// What drafters are made over, besides the config.
struct DrafterModels {
  Runner& runner;                 // of the engine's model
  std::unique_ptr<Runner> draft;  // load_draft_model(); null without
};

struct DrafterKind {
  std::string_view name;
  std::unique_ptr<Drafter> (*make)(const EngineConfig& config, DrafterModels& models);
};

// In the order in which they are asked: those that cost least first.
std::span<const DrafterKind> registered_drafters();

// EngineConfig::drafters, or the one that its draft_model_path means. Errors: an unknown name, with
// the known ones; a draft model without its drafter, or the other way round.
Result<std::vector<std::string>> chosen_drafters(const EngineConfig& config);

// Those that config.drafters has, and always `ngram`, for requests that predict their output.
std::vector<NamedDrafter> make_drafters(const EngineConfig& config, DrafterModels models);

}  // namespace banyan
