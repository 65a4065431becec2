#include "server/tracing/otel_environment.h"

#include <algorithm>

#include "base/error.h"
#include "base/percent.h"
#include "base/quote.h"

namespace banyan {
namespace {

std::string_view trimmed(std::string_view text) {
  size_t begin = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

bool is_header_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' ||
           c == '_';
  });
}

bool is_header_value(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return c >= 0x20 && c < 0x7f; });
}

// "name=value,name=value", as in W3C's baggage. A value is often a key, so errors do not show it.
Status read_headers(std::string_view variable, std::string_view text,
                    std::vector<std::pair<std::string, std::string>>& headers) {
  while (!text.empty()) {
    std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    if (trimmed(one).empty()) continue;
    size_t equals = std::min(one.find('='), one.size());
    std::string_view name = trimmed(one.substr(0, equals));
    std::string_view text = trimmed(one.substr(std::min(equals + 1, one.size())));
    // As in W3C's baggage, a % that begins no escape stands for itself.
    std::string value = percent_decode(text).value_or(std::string(text));
    if (equals == one.size() || !is_header_name(name) || !is_header_value(value)) {
      return invalid_argument("{}: {} is not a header of the form name=value", variable,
                              quote(name.substr(0, 64)));
    }
    headers.emplace_back(name, std::move(value));
  }
  return {};
}

}  // namespace

Result<OtelEnvironment> OtelEnvironment::read(
    const std::function<std::string(const std::string& name)>& variable) {
  const std::string traces = "OTEL_EXPORTER_OTLP_TRACES_", all = "OTEL_EXPORTER_OTLP_";
  auto name_of = [&](const std::string& what) {
    return (variable(traces + what).empty() ? all : traces) + what;
  };
  OtelEnvironment read{.endpoint = variable(traces + "ENDPOINT"),
                       .service_name = variable("OTEL_SERVICE_NAME")};
  if (read.endpoint.empty()) {
    read.endpoint = variable(all + "ENDPOINT");
    while (read.endpoint.ends_with('/')) read.endpoint.pop_back();
    if (!read.endpoint.empty()) read.endpoint += "/v1/traces";
  }
  std::string headers = name_of("HEADERS");
  TRY(read_headers(headers, variable(headers), read.headers));
  std::string compression = name_of("COMPRESSION"), value = variable(compression);
  read.gzip = value == "gzip";
  if (read.gzip || value.empty() || value == "none") return read;
  return invalid_argument("{}: {} is not supported; gzip and none are", compression, quote(value));
}

}  // namespace banyan
