// Fetches models for clients of `banyan serve`.
#pragma once

#include <functional>
#include <string>

#include "banyan/status.h"
#include "server/pull_queue.h"

namespace banyan::cli {

// A ModelPuller: fetches OWNER/NAME, optionally with :GGUF and @REVISION, into the hub's cache.
Status pull_for_clients(const std::string& name,
                        const std::function<bool(const PullProgress& progress)>& progress);

}  // namespace banyan::cli
