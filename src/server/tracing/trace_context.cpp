#include "server/tracing/trace_context.h"

#include <algorithm>
#include <cstdint>
#include <random>

namespace banyan {
namespace {

constexpr size_t kTraceIdBytes = 16;
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr size_t kTraceStateBytesMax = 512;

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return kHexDigits.find(c) != kHexDigits.npos; });
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != text.npos;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

// "00-<32 digits>-<16 digits>-<2 digits>"; later versions may append fields.
bool is_traceparent(std::string_view header) {
  constexpr size_t kBytes = 55;
  if (header.size() < kBytes || header[2] != '-' || header[35] != '-' || header[52] != '-') {
    return false;
  }
  std::string_view version = header.substr(0, 2);
  if (!is_hex(version) || version == "ff") return false;
  if (header.size() > kBytes && (version == "00" || header[kBytes] != '-')) return false;
  return is_id(header.substr(3, 32)) && is_id(header.substr(36, 16)) &&
         is_hex(header.substr(53, 2));
}

}  // namespace

std::optional<TraceContext> trace_context(std::optional<std::string_view> traceparent,
                                          std::optional<std::string_view> tracestate) {
  if (!traceparent || !is_traceparent(*traceparent)) {
    return TraceContext{.trace_id = random_trace_id(kTraceIdBytes)};
  }
  bool sampled = kHexDigits.find((*traceparent)[54]) % 2 == 1;
  if (!sampled) return std::nullopt;
  TraceContext context = {.trace_id = std::string(traceparent->substr(3, 32)),
                          .parent_id = std::string(traceparent->substr(36, 16))};
  bool usable =
      tracestate && tracestate->size() <= kTraceStateBytesMax && is_printable(*tracestate);
  if (usable) context.state = *tracestate;
  return context;
}

std::string random_trace_id(size_t bytes) {
  thread_local std::random_device device;
  std::string id(bytes * 2, '0');
  while (!is_id(id)) {
    for (size_t i = 0; i < id.size(); i += 8) {
      uint32_t bits = device();
      for (size_t digit = i; digit < std::min(i + 8, id.size()); ++digit, bits >>= 4) {
        id[digit] = kHexDigits[bits & 15];
      }
    }
  }
  return id;
}

}  // namespace banyan
