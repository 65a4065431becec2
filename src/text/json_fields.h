// Reads the fields of a JSON object; every error names the object's location.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"

namespace banyan {

// An object in a file. `place` names both, for example "tokenizer.json: pre_tokenizer".
class JsonFields {
 public:
  static Result<JsonFields> of(const Json& json, std::string place);

  const std::string& place() const { return place_; }
  const Json& json() const { return *json_; }
  // Null if the key is absent or its value is null.
  const Json* find(std::string_view key) const;

  Result<std::string> string(std::string_view key) const;
  Result<std::string> string_or(std::string_view key, std::string fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<int64_t> integer(std::string_view key) const;
  Result<const Json*> array(std::string_view key) const;
  Result<JsonFields> object(std::string_view key) const;

  std::unexpected<Error> wrong(std::string_view key, std::string_view expected) const;

 private:
  JsonFields(const Json& json, std::string place) : json_(&json), place_(std::move(place)) {}

  const Json* json_;
  std::string place_;
};

// A part of a tokenizer.json is an object with a "type", or a "Sequence" of such objects under
// `list`. Calls `visit(kind, fields)` for each object in order, with the entry of `kinds` named by
// its type. An unknown type is rejected as an unsupported `noun`.
template <class Kinds, class Visit>
Status for_each_part(const Json& json, const std::string& place, std::string_view noun,
                     std::string_view list, const Kinds& kinds, Visit visit, int depth = 0) {
  constexpr int kDepthMax = 8;
  if (depth > kDepthMax) return exhausted("{}: nested deeper than {}", place, kDepthMax);
  const JsonFields fields = TRY(JsonFields::of(json, place));
  const std::string type = TRY(fields.string("type"));
  if (type == "Sequence") {
    for (const Json& part : *TRY(fields.array(list))) {
      TRY(for_each_part(part, place, noun, list, kinds, visit, depth + 1));
    }
    return {};
  }
  for (const auto& kind : kinds) {
    if (kind.name == type) return visit(kind, fields);
  }
  return unsupported("{}: the {} {} is not supported", place, noun, quote(type));
}

}  // namespace banyan
