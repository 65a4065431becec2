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

struct DrafterKind {
  std::string_view name;
  std::unique_ptr<Drafter> (*make)(const EngineConfig& config, Runner& runner);
};

// In the order in which they are asked: those that cost least first.
std::span<const DrafterKind> registered_drafters();

// An unknown name among EngineConfig::drafters is an error that lists the known ones.
Status check_drafters(std::span<const std::string> names);

// Those that `config` names, and always `ngram`, for requests that predict their output.
std::vector<NamedDrafter> make_drafters(const EngineConfig& config, Runner& runner);

}  // namespace banyan
