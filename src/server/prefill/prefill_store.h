// The store of a decode worker (`--disaggregation-mode decode`): prefill workers compute what it is
// asked for.
//
// It finds what memory lacks of a prompt, if that is long enough, and has it computed by one of the
// workers once the first unit is read (prefill_run.h). Workers are chosen, watched and replaced as
// a router does (server/route). A thread of its own does all that; the engine never waits for a
// worker: while none answers, nothing is found, and prompts are computed here.
#pragma once

#include <memory>

#include "server/route/route_config.h"
#include "tier/registry.h"

namespace banyan {

struct PrefillConfig {
  RouteConfig route;  // the prefill workers
  // A prompt of which memory lacks fewer tokens is computed here.
  int64_t tokens_min = 2048;
};

// Errors: as RemoteGenerator::open().
Result<std::unique_ptr<TierStore>> make_prefill_store(const PrefillConfig& config,
                                                      const TierStates& states);

}  // namespace banyan
