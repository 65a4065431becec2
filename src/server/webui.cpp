#include "server/webui.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace banyan {
namespace {

constexpr size_t kGzipHeader = 10;  // bytes
constexpr size_t kGzipFlags = 3;    // their offset
constexpr char kCommentFlag = 0x10;

// Whether a comma-separated header lists this value with a quality other than 0. Parameters are
// ignored.
bool lists(std::string_view header, std::string_view wanted) {
  while (!header.empty()) {
    std::string_view item = header.substr(0, header.find(','));
    header.remove_prefix(std::min(header.size(), item.size() + 1));
    item.remove_prefix(std::min(item.size(), item.find_first_not_of(" \t")));
    std::string_view name = item.substr(0, item.find_first_of("; \t"));
    if (name != wanted && name != "*") continue;
    return !item.ends_with("q=0") && !item.ends_with("q=0.0");
  }
  return false;
}

bool is_fresh(const HttpRequest& request, std::string_view tag) {
  std::string_view known = request.header("if-none-match").value_or("");
  if (known.starts_with("W/")) known.remove_prefix(2);
  return known == tag;
}

// The page is self-contained, connects to this server only, and must not be framed.
std::string security_policy(std::string_view inline_sources) {
  return fmt::format(
      "default-src 'none'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'; {}",
      inline_sources);
}

}  // namespace

std::string_view gzip_comment(std::string_view gzip) {
  // The build script writes no optional header field but the comment.
  if (gzip.size() < kGzipHeader || gzip[kGzipFlags] != kCommentFlag) return {};
  std::string_view rest = gzip.substr(kGzipHeader);
  size_t end = rest.find('\0');
  return end == rest.npos ? std::string_view() : rest.substr(0, end);
}

void web_page(Service& service, HttpRequest request, ResponderPtr responder) {
  if (!service.config().webui) {
    return responder->respond_error(404, "the web UI is disabled (--no-webui)", {}, "unknown_url");
  }
  WebPage page = embedded_web_page();
  std::string_view encodings = request.header("accept-encoding").value_or("gzip");
  if (!lists(encodings, "gzip")) {
    return responder->respond_error(406, "the page at / is sent with Content-Encoding gzip alone");
  }
  std::string tag = fmt::format("\"{}\"", page.sha256.substr(0, 32));
  HttpHeaders headers = {{"ETag", tag},
                         {"Cache-Control", "no-cache"},  // stored, but revalidated each time
                         {"Vary", "Accept-Encoding"},
                         {"Content-Security-Policy", security_policy(gzip_comment(page.gzip))},
                         {"X-Content-Type-Options", "nosniff"},
                         {"Referrer-Policy", "no-referrer"}};
  constexpr std::string_view kHtml = "text/html; charset=utf-8";
  if (is_fresh(request, tag)) return responder->respond(304, std::string(), kHtml, headers);
  headers.emplace_back("Content-Encoding", "gzip");
  responder->respond(200, std::string(page.gzip), kHtml, headers);
}

}  // namespace banyan
