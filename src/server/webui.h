// The web page at `/`: one file, built from web/ by scripts/web and embedded compressed. Handlers
// run on the I/O thread.
#pragma once

#include <string_view>

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// A gzip file of HTML. The comment in its gzip header is the Content-Security-Policy for its inline
// script and style: "script-src 'sha256-...'; style-src 'sha256-...'".
struct WebPage {
  std::string_view gzip;
  std::string_view sha256;  // of `gzip`, in hexadecimal
};

// The page of this build; defined in a file that src/CMakeLists.txt generates.
WebPage embedded_web_page();

// The comment in a gzip file's header; empty if there is none.
std::string_view gzip_comment(std::string_view gzip);

// Answers 404 with --no-webui, 304 if If-None-Match matches, 406 if the client does not accept
// gzip.
void web_page(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
