#include "base/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/check.h"

namespace banyan {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kExhausted:
      return "exhausted";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kIo:
      return "io";
  }
  return "unknown";
}

std::unexpected<Error> make_error(ErrorCode code, std::string message) {
  size_t end = std::min(message.size(), kErrorBytesMax);
  // Do not cut inside a UTF-8 character.
  while (end < message.size() && end > 0 && (message[end] & 0xc0) == 0x80) --end;
  std::string clean;
  for (char c : std::string_view(message).substr(0, end)) {
    auto byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\t') {
      clean += c;
    } else {
      clean += fmt::format("\\x{:02x}", byte);
    }
  }
  if (message.size() > kErrorBytesMax) clean += fmt::format("... ({} bytes)", message.size());
  return std::unexpected(Error{code, std::move(clean)});
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s%s%s\n", file, line, condition,
               message.empty() ? "" : ": ", message.c_str());
  std::abort();
}

}  // namespace banyan
