// GET /radix_tree: a readable dump of the prefix cache. Handlers run on the I/O thread.
#pragma once

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// ?limit=N branches, 512 by default. Texts are shown only if there is a single user, that is, on
// loopback without keys or with one key, and never for namespaces with a salt.
void radix_tree_info(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
