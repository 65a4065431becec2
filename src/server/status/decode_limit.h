// GET /decode_limit: upper bound on this machine's decode speed, in tokens/s. Handlers run on the
// I/O thread.
#pragma once

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// ?sequences=N&context=N, both 1 by default. The bound follows from memory bandwidth and arithmetic
// throughput. Answers 503 until the engine has been idle long enough to measure them.
void decode_limit(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
