// GET /kv/events: what the prefix cache gains and loses, and the engine's load, for routers.
// Handlers run on the I/O thread.
#pragma once

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// A stream of frames (router/event_stream.h) that lasts until the client disconnects or the server
// drains: events some 10 ms after they happen, a load report every 100 ms.
//
// ?epoch=E&from=N: events of that epoch from number N on. Without these parameters, or if those
// events are no longer kept, a snapshot of the whole cache comes first. Needs --state-digest.
void kv_events(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
