// Profiling, from POST /start_profile to POST /stop_profile. The latter answers with a Chrome trace
// of steps, layers and kernels, for chrome://tracing and https://ui.perfetto.dev. Handlers run on
// the I/O thread.
#pragma once

#include "base/trace_log.h"
#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// As in SGLang and vLLM. The body may be empty or {"num_steps": N}, which ends the profile after N
// steps. The server writes no files.
void start_profile(Service& service, HttpRequest request, ResponderPtr responder);
void stop_profile(Service& service, HttpRequest request, ResponderPtr responder);

// `about` is added to the trace unchanged. Times are relative to the first event.
std::string chrome_trace(const TraceLog& log, const Json& about);

}  // namespace banyan
