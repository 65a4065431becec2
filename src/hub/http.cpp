#include "hub/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/error.h"
#include "base/space.h"

namespace banyan {
namespace {

constexpr size_t kBodyBytesMax = 64 << 20;
constexpr size_t kHeaderBytesMax = 1 << 16;
constexpr long kConnectSeconds = 20;
constexpr long kSilentSeconds = 30;  // a transfer without data for this long has failed
constexpr long kRedirectsMax = 8;

struct Transfer {
  HubReply reply;
  const BodySink* sink = nullptr;
  size_t header_bytes = 0;
  bool refused = false;  // by the sink, or as too large
};

size_t take_header(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string_view line(data, size * count);
  transfer.header_bytes += line.size();
  if (transfer.header_bytes > kHeaderBytesMax) return 0;
  if (line.starts_with("HTTP/")) transfer.reply.headers.clear();  // the next hop
  size_t colon = line.find(':');
  if (colon == line.npos) return line.size();
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  transfer.reply.headers[name] = trim_space(line.substr(colon + 1));
  return line.size();
}

struct CurlDeleter {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Curl = std::unique_ptr<CURL, CurlDeleter>;

struct BodyContext {
  Transfer* transfer;
  CURL* curl;
};

size_t take_body(char* data, size_t size, size_t count, void* user) {
  auto& context = *static_cast<BodyContext*>(user);
  Transfer& transfer = *context.transfer;
  std::string_view piece(data, size * count);
  long status = 0;
  curl_easy_getinfo(context.curl, CURLINFO_RESPONSE_CODE, &status);
  transfer.reply.status = static_cast<int>(status);
  bool to_sink = *transfer.sink != nullptr && status >= 200 && status < 300;
  if (to_sink && !(*transfer.sink)(transfer.reply, piece)) transfer.refused = true;
  if (!to_sink) {
    if (transfer.reply.body.size() + piece.size() > kBodyBytesMax) transfer.refused = true;
    if (!transfer.refused) transfer.reply.body += piece;
  }
  return transfer.refused ? 0 : piece.size();
}

void set_options(CURL* curl, const HubRequest& request, char* error) {
  const char* protocols = request.url.starts_with("https:") ? "https" : "http,https";
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, request.follow ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kRedirectsMax);
  curl_easy_setopt(curl, CURLOPT_NOBODY, request.head ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "banyan");
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
}

}  // namespace

std::string HubReply::header(const std::string& name) const {
  auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

Result<HubReply> send_to_hub(const HubRequest& request, const BodySink& sink) {
  static const CURLcode kStarted = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(kStarted == CURLE_OK, "libcurl does not start");
  Curl curl(curl_easy_init());
  CHECK(curl != nullptr, "libcurl has no memory");
  char error[CURL_ERROR_SIZE] = {};
  set_options(curl.get(), request, error);
  std::unique_ptr<curl_slist, CurlDeleter> headers;
  if (!request.token.empty()) {  // libcurl does not send it to other hosts
    headers.reset(
        curl_slist_append(nullptr, fmt::format("Authorization: Bearer {}", request.token).c_str()));
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  }
  if (request.begin >= 0) {
    std::string range = fmt::format("{}-{}", request.begin, request.end - 1);
    curl_easy_setopt(curl.get(), CURLOPT_RANGE, range.c_str());  // libcurl copies it
  }
  Transfer transfer{.sink = &sink};
  BodyContext context{.transfer = &transfer, .curl = curl.get()};
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &context);
  CURLcode code = curl_easy_perform(curl.get());
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  transfer.reply.status = static_cast<int>(status);
  if (code != CURLE_OK && !transfer.refused) {
    return io_error("{}: {}", request.url, *error != '\0' ? error : curl_easy_strerror(code));
  }
  if (transfer.refused && !sink) {
    return corrupt("{}: the reply is longer than {} bytes", request.url, kBodyBytesMax);
  }
  return std::move(transfer.reply);
}

}  // namespace banyan
