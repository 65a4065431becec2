// Locates a model: a local path, or a name on a hub that is fetched once.
#pragma once

#include <string>

#include "banyan/config.h"
#include "banyan/status.h"
#include "hub/settings.h"

namespace banyan::cli {

// The folder or GGUF file of a model given on the command line. An existing path wins. Otherwise
// OWNER/NAME, optionally with @REVISION and :GGUF, is looked up in huggingface_hub's cache. If it
// is not there, it is fetched from the hub after a note on stderr, unless a folder OWNER exists
// here.
Result<std::string> locate_model(const std::string& name);

// Replaces the paths of adapters that are names on a hub, likewise. An existing path wins.
Status locate_adapters(EngineConfig& config);

// Fetches a model from the hub with a progress line; skips files already in the cache. Returns the
// folder or the GGUF file.
Result<std::string> pull_model(const HubModel& model);

}  // namespace banyan::cli
