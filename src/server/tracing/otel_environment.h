// Reads OpenTelemetry's environment variables about the collector. Variables for traces take
// precedence over general ones (OTEL_EXPORTER_OTLP_TRACES_HEADERS, OTEL_EXPORTER_OTLP_HEADERS).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "banyan/status.h"

namespace banyan {

struct OtelEnvironment {
  std::string endpoint;      // OTEL_EXPORTER_OTLP_[TRACES_]ENDPOINT; empty: unset
  std::string service_name;  // OTEL_SERVICE_NAME; empty: unset
  std::vector<std::pair<std::string, std::string>> headers;  // OTEL_EXPORTER_OTLP_[TRACES_]HEADERS
  bool gzip = false;  // OTEL_EXPORTER_OTLP_[TRACES_]COMPRESSION

  // `variable` returns the value of a name, empty if unset. kInvalidArgument names the variable.
  static Result<OtelEnvironment> read(
      const std::function<std::string(const std::string& name)>& variable);
};

}  // namespace banyan
