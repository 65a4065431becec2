// Builders for structural tag formats (Grammar::from_structural_tag) as JSON. Stateless;
// thread-safe.
#pragma once

#include <string_view>
#include <utility>

#include "base/json.h"

namespace banyan::structural {

inline Json constant(std::string_view text) {
  return {{"type", "const_string"}, {"value", text}};
}
inline Json sequence(Json elements) {
  return {{"type", "sequence"}, {"elements", std::move(elements)}};
}
inline Json either(Json ways) {
  return {{"type", "or"}, {"elements", std::move(ways)}};
}
inline Json optional(Json part) {
  return either({std::move(part), constant("")});
}
inline Json any_text() {
  return {{"type", "any_text"}};
}
inline Json schema(const Json& json_schema) {
  return {{"type", "json_schema"}, {"json_schema", json_schema}};
}
inline Json tag(std::string_view begin, Json content, std::string_view end) {
  return {{"type", "tag"}, {"begin", begin}, {"content", std::move(content)}, {"end", end}};
}
// Any number of `item`.
inline Json separated(Json item, std::string_view separator) {
  return {{"type", "tags_with_separator"},
          {"tags", Json::array({tag("", std::move(item), "")})},
          {"separator", separator},
          {"at_least_one", false},
          {"stop_after_first", false}};
}

}  // namespace banyan::structural
