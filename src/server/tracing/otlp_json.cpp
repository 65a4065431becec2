#include "server/tracing/otlp_json.h"

#include <utility>

#include "base/json_text.h"

namespace banyan {
namespace {

// Span flags. kSampled is W3C's. The others say whether the parent span is known to be in another
// process, and whether it is.
constexpr int kSampled = 1, kRemoteKnown = 1 << 8, kRemote = 1 << 9;
constexpr int kStatusError = 2;

// OTLP writes 64-bit integers as strings.
Json value_json(const std::string& text) {
  return {{"stringValue", text}};
}
Json value_json(int64_t integer) {
  return {{"intValue", std::to_string(integer)}};
}
Json value_json(double real) {
  return {{"doubleValue", real}};
}
Json value_json(const std::vector<std::string>& texts) {
  Json values = Json::array();
  for (const std::string& text : texts) values.push_back(value_json(text));
  Json list = Json::object();
  list["values"] = std::move(values);
  return {{"arrayValue", std::move(list)}};
}

Json attribute_json(std::string_view name, Json value) {
  return {{"key", name}, {"value", std::move(value)}};
}

Json span_json(const Span& span) {
  Json json = {{"traceId", span.trace_id}, {"spanId", span.span_id}};
  if (!span.trace_state.empty()) json["traceState"] = span.trace_state;
  if (!span.parent_id.empty()) json["parentSpanId"] = span.parent_id;
  json["flags"] = kSampled | kRemoteKnown | (span.parent_is_remote ? kRemote : 0);
  json["name"] = span.name;
  json["kind"] = static_cast<int>(span.kind);
  json["startTimeUnixNano"] = std::to_string(span.start_ns);
  json["endTimeUnixNano"] = std::to_string(span.end_ns);
  Json attributes = Json::array();
  for (const auto& [name, value] : span.attributes) {
    attributes.push_back(attribute_json(
        name, std::visit([](const auto& known) { return value_json(known); }, value)));
  }
  if (!attributes.empty()) json["attributes"] = std::move(attributes);
  if (span.error) json["status"] = {{"message", *span.error}, {"code", kStatusError}};
  return json;
}

}  // namespace

std::string otlp_json(const SpanSource& source, std::span<const Span> spans) {
  Json resource_attributes = Json::array();
  resource_attributes.push_back(attribute_json("service.name", value_json(source.service_name)));
  Json scope = {{"name", "banyan"}};
  if (!source.version.empty()) {
    resource_attributes.push_back(attribute_json("service.version", value_json(source.version)));
    scope["version"] = source.version;
  }
  Json span_list = Json::array();
  for (const Span& span : spans) span_list.push_back(span_json(span));

  Json scope_spans = Json::object();
  scope_spans["scope"] = std::move(scope);
  scope_spans["spans"] = std::move(span_list);
  Json resource_spans = Json::object();
  resource_spans["resource"]["attributes"] = std::move(resource_attributes);
  resource_spans["scopeSpans"].push_back(std::move(scope_spans));
  Json body = Json::object();
  body["resourceSpans"].push_back(std::move(resource_spans));
  return dump_json(body);
}

}  // namespace banyan
