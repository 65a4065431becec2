// HTTP requests from any bytes: the first byte of the input decides how the rest is cut. However it
// is cut, the same request is read or refused (only the time of a refusal may differ), and whatever
// was read is within the limits.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "server/http/request_reader.h"

namespace banyan {
namespace {

constexpr RequestLimits kLimits = {
    .header_bytes_max = 512, .body_bytes_max = 1024, .body_chunks_max = 16};

// Reads as a connection does; the request as text, empty unless it is complete.
std::string read(std::string_view bytes, size_t part) {
  std::string left;
  RequestReader reader(kLimits);
  for (size_t at = 0; at < bytes.size(); at += part) {
    if (reader.state() == RequestReader::State::kDone) break;
    left += bytes.substr(at, part);
    while (!left.empty() && reader.state() != RequestReader::State::kDone) {
      RequestReader::State before = reader.state();
      auto used = reader.feed(left);
      if (!used) return "";
      CHECK(*used <= left.size());
      CHECK(reader.body_bytes() <= kLimits.body_bytes_max);
      left.erase(0, *used);
      if (reader.state() == before) break;
    }
    CHECK(static_cast<int64_t>(left.size()) <=
          kLimits.header_bytes_max + static_cast<int64_t>(part));
  }
  if (reader.state() != RequestReader::State::kDone) return "";
  HttpRequest& request = reader.request();
  std::string text = request.method + ' ' + request.path + '\n';
  for (const auto& [name, value] : request.headers) text += name + ": " + value + '\n';
  for (const auto& [name, value] : request.query) text += name + '=' + value + '\n';
  return text + request.body;
}

}  // namespace
}  // namespace banyan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  size_t part = std::max<size_t>(1, data[0]);
  CHECK(banyan::read(bytes, part) == banyan::read(bytes, 1));
  return 0;
}
