#include "base/quote.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include "base/signed.h"

namespace banyan {
namespace {

bool is_control(utf8proc_int32_t code) {
  // C0, DEL and C1 control terminals; U+2028..U+202E and U+2066..U+2069 break or reorder lines.
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string quote(std::string_view text, size_t bytes_max) {
  std::string quoted = "\"";
  size_t at = 0;
  while (at < text.size() && at < bytes_max) {
    utf8proc_int32_t code = 0;
    auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
    utf8proc_ssize_t length =
        utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    size_t count = length > 0 ? as_size(length) : 1;
    if (length <= 0 || is_control(code)) {
      for (size_t i = 0; i < count; ++i) quoted += fmt::format("\\x{:02x}", bytes[i]);
    } else {
      if (code == '"' || code == '\\') quoted += '\\';
      quoted += text.substr(at, count);
    }
    at += count;
  }
  quoted += '"';
  if (at < text.size()) quoted += fmt::format("... ({} bytes)", text.size());
  return quoted;
}

}  // namespace banyan
