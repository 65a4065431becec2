// A request's place in its caller's trace: W3C's headers traceparent and tracestate. Stateless;
// thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace banyan {

struct TraceContext {
  std::string trace_id;        // 32 hexadecimal digits
  std::string parent_id = {};  // 16, or empty for the root
  std::string state = {};      // tracestate, unchanged
};

// Starts a new trace if the header is absent or invalid, as the standard requires. Nothing if the
// caller does not record the trace.
std::optional<TraceContext> trace_context(std::optional<std::string_view> traceparent,
                                          std::optional<std::string_view> tracestate);

// `bytes` random bytes in hexadecimal, not all zero. Safe from any thread.
std::string random_trace_id(size_t bytes);

}  // namespace banyan
