// Where a model is: a folder here, or a name on a hub that is fetched once.
#pragma once

#include <string>

#include "banyan/status.h"
#include "hub/settings.h"

namespace banyan::cli {

// The folder, or GGUF file, of a model that was named on the command line. A path that exists wins.
// OWNER/NAME, with @REVISION and :GGUF or without, is then looked for in the cache of
// huggingface_hub; what is not there is asked of the hub, which stderr says first, unless there is
// a folder OWNER here.
Result<std::string> locate_model(const std::string& name);

// Asks the hub, with a progress line; what is in the cache already is not fetched again. Gives the
// folder or the GGUF file.
Result<std::string> pull_model(const HubModel& model);

}  // namespace banyan::cli
