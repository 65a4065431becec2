// Reading the fields of a JSON object with its place in every message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace banyan {

// An object inside a file; `place` names both, for example "tokenizer.json: pre_tokenizer".
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

}  // namespace banyan
