// Whether an engine can run a request: every value in its range, nothing that it does not support.
#pragma once

#include "banyan/engine.h"

namespace banyan {

// kInvalidArgument or kUnsupported names the first value that is wrong. Stateless.
Status check_request(const GenerateRequest& request, const EngineConfig& config,
                     const EngineInfo& info);

}  // namespace banyan
