// The web page of this build, in a file that src/CMakeLists.txt generates from web/. Apart from
// webui.h, so that it compiles without a server.
#pragma once

#include <string_view>

namespace banyan {

// A gzip file of HTML. The comment in its gzip header is the Content-Security-Policy for its inline
// script and style: "script-src 'sha256-...'; style-src 'sha256-...'".
struct WebPage {
  std::string_view gzip;
  std::string_view sha256;  // of `gzip`, in hexadecimal
};

// The page of this build; defined in a file that src/CMakeLists.txt generates.
WebPage embedded_web_page();

}  // namespace banyan
