// GET /kv/events: what the prefix cache gains and loses, and how busy the engine is, for routers.
// Handlers run on the I/O thread.
#pragma once

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// A stream of frames (router/event_stream.h) that lasts until the client goes or the server drains:
// events some 10 ms after they happen, a report of load each 100 ms.
//
// ?epoch=E&from=N: events of that epoch from number N on. Without them, and where those are not
// kept any more, a snapshot of all that is there comes first. Needs --state-digest.
void kv_events(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
