// A profile of the engine, from POST /start_profile to POST /stop_profile, which answers with it: a
// Chrome trace of steps, layers and kernels, for chrome://tracing and https://ui.perfetto.dev.
#pragma once

#include "base/trace_log.h"
#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// SGLang's and vLLM's. The body may be empty or {"num_steps": N}: the profile then ends by itself
// after so many steps. Nothing is written to files of the server.
void start_profile(Service& service, HttpRequest request, ResponderPtr responder);
void stop_profile(Service& service, HttpRequest request, ResponderPtr responder);

// `about` is added to the trace as it is. Times count from the first event.
std::string chrome_trace(const TraceLog& log, const Json& about);

}  // namespace banyan
