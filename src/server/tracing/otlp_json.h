// Encodes spans as OTLP JSON, the body of a POST to a collector's /v1/traces. Stateless;
// thread-safe.
#pragma once

#include <span>
#include <string>

#include "server/tracing/span.h"

namespace banyan {

struct SpanSource {
  std::string service_name;
  std::string version;  // program version; may be empty
};

std::string otlp_json(const SpanSource& source, std::span<const Span> spans);

}  // namespace banyan
