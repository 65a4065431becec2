// One operation of a trace, as defined by OpenTelemetry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace banyan {

struct Span {
  using Value = std::variant<std::string, int64_t, double, std::vector<std::string>>;
  enum class Kind : uint8_t { kInternal = 1, kServer = 2 };  // OTLP's values

  std::string trace_id;          // 32 hexadecimal digits
  std::string span_id;           // 16
  std::string parent_id = {};    // 16, or empty for the root span
  std::string trace_state = {};  // of other vendors, passed through unchanged
  bool parent_is_remote = false;
  std::string_view name = {};  // a string literal, like attribute names
  Kind kind = Kind::kInternal;
  int64_t start_ns = 0, end_ns = 0;  // Unix time
  std::vector<std::pair<std::string_view, Value>> attributes = {};
  std::optional<std::string> error = {};  // set if it failed
};

// Spans accepted by the collector, and spans lost.
struct SpanCounts {
  int64_t exported = 0;
  int64_t dropped = 0;
};

}  // namespace banyan
