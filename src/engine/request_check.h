// Checks whether an engine can run a request: every value is in range, and nothing in it is
// unsupported.
#pragma once

#include "banyan/engine.h"

namespace banyan {

// kInvalidArgument or kUnsupported names the first invalid value. Stateless.
Status check_request(const GenerateRequest& request, const EngineConfig& config,
                     const EngineInfo& info);

}  // namespace banyan
