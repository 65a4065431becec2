// The endpoints of a worker for routers (server/route) and for other workers (server/prefill).
#pragma once

#include "server/service.h"

namespace banyan {

// POST: one request as tokens; the answer consists of lines as in server/worker/wire.h. Closing the
// connection cancels it.
void worker_generate(Service& service, HttpRequest request, ResponderPtr responder);

// POST: records of states that memory has, as server/worker/states_wire.h says.
void worker_states(Service& service, HttpRequest request, ResponderPtr responder);

// GET: WorkerInfo, in every state of the server; a 503 with kEngineHangsCode while its engine
// hangs.
void worker_info(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
