// Where a request stands in its caller's trace: W3C's headers traceparent and tracestate.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace banyan {

struct TraceContext {
  std::string trace_id;        // 32 hexadecimal digits
  std::string parent_id = {};  // 16, or empty: the trace begins here
  std::string state = {};      // tracestate, as it came
};

// A new trace where the header is absent or wrong, as the standard asks; nothing where the caller
// says that it does not record the trace.
std::optional<TraceContext> trace_context(std::optional<std::string_view> traceparent,
                                          std::optional<std::string_view> tracestate);

// So many random bytes in hexadecimal, not all of them zero. From any thread.
std::string random_trace_id(size_t bytes);

}  // namespace banyan
