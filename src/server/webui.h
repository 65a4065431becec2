// The web page at `/`: one file, built from web/ by scripts/web and embedded compressed.
#pragma once

#include <string_view>

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// A gzip file of HTML. The comment of its header is what a Content-Security-Policy has to say of
// its inline script and style: "script-src 'sha256-...'; style-src 'sha256-...'".
struct WebPage {
  std::string_view gzip;
  std::string_view sha256;  // of `gzip`, in hexadecimal
};

// The page of this build; src/CMakeLists.txt makes the file that defines it.
WebPage embedded_web_page();

// The comment of a gzip file's header; empty if it has none.
std::string_view gzip_comment(std::string_view gzip);

// 404 with --no-webui, 304 where If-None-Match has it, 406 where gzip is not accepted.
void web_page(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
