#include "text/json_fields.h"

#include "base/json_text.h"
#include "base/quote.h"

namespace banyan {

Result<JsonFields> JsonFields::of(const Json& json, std::string place) {
  if (!json.is_object()) return corrupt("{}: expected an object, got {}", place, json.type_name());
  return JsonFields(json, std::move(place));
}

const Json* JsonFields::find(std::string_view key) const {
  const auto found = json_->find(std::string(key));
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

std::unexpected<Error> JsonFields::wrong(std::string_view key, std::string_view expected) const {
  const Json* value = find(key);
  if (value == nullptr)
    return corrupt("{}: \"{}\" is missing ({} is expected)", place_, key, expected);
  return corrupt("{}: \"{}\" is {} {}, expected {}", place_, key, value->type_name(),
                 quote(dump_json(*value)), expected);
}

Result<std::string> JsonFields::string(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_string()) return wrong(key, "a string");
  return value->get<std::string>();
}

Result<std::string> JsonFields::string_or(std::string_view key, std::string fallback) const {
  if (find(key) == nullptr) return fallback;
  return string(key);
}

Result<bool> JsonFields::boolean_or(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return wrong(key, "true or false");
  return value->get<bool>();
}

Result<int64_t> JsonFields::integer(std::string_view key) const {
  const Json* value = find(key);
  const bool fits = value != nullptr && value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX);
  if (!fits) return wrong(key, "an integer");
  return value->get<int64_t>();
}

Result<const Json*> JsonFields::array(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_array()) return wrong(key, "an array");
  return value;
}

Result<JsonFields> JsonFields::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return wrong(key, "an object");
  return of(*value, fmt::format("{}: {}", place_, key));
}

}  // namespace banyan
