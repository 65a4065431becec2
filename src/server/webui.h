// The web page at `/`: one file, built from web/ by scripts/web and embedded compressed. Handlers
// run on the I/O thread.
#pragma once

#include <string_view>

#include "server/embedded_page.h"
#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// The comment in a gzip file's header; empty if there is none.
std::string_view gzip_comment(std::string_view gzip);

// Answers 404 with --no-webui, 304 if If-None-Match matches, 406 if the client does not accept
// gzip.
void web_page(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
