// What `banyan serve` fetches models with for its clients.
#pragma once

#include <functional>
#include <string>

#include "banyan/status.h"
#include "server/pull_queue.h"

namespace banyan::cli {

// A ModelPuller: OWNER/NAME, with :GGUF and @REVISION or without, into the cache of the hub.
Status pull_for_clients(const std::string& name,
                        const std::function<bool(const PullProgress& progress)>& progress);

}  // namespace banyan::cli
