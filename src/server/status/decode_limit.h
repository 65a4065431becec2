// GET /decode_limit: how many tokens a second this machine could write at most.
#pragma once

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// ?sequences=N&context=N, 1 and 1 by default. A step can be no faster than its bytes come from
// memory and its products are computed; 503 as long as the machine has never been idle.
void decode_limit(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
