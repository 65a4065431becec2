// GET /radix_tree: what the prefix cache holds, for people to look at.
#pragma once

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// ?limit=N branches, 512 by default. Texts are shown only where all who may ask are one: on
// loopback without keys, or with one key; and never those of a namespace with a salt.
void radix_tree_info(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
