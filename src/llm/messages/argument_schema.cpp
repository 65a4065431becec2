#include "llm/messages/argument_schema.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/space.h"

namespace banyan {
namespace {

constexpr int kReferencesMax = 16;
constexpr int kUnionDepthMax = 3;
constexpr size_t kWaysMax = 64;

// Null if there is none.
const Json* find_key(const Json* object, std::string_view key) {
  if (object == nullptr || !object->is_object()) return nullptr;
  auto found = object->find(key);
  return found == object->end() ? nullptr : &*found;
}

// What a schema refers to, itself if nothing.
const Json* follow(const Json& root, const Json* schema) {
  for (int i = 0; i < kReferencesMax; ++i) {
    const Json* reference = find_key(schema, "$ref");
    if (reference == nullptr || !reference->is_string()) return schema;
    const auto& path = reference->get_ref<const std::string&>();
    schema = nullptr;
    for (std::string_view scope : {"$defs", "definitions"}) {
      std::string prefix = "#/" + std::string(scope) + "/";
      if (path.starts_with(prefix)) {
        schema = find_key(find_key(&root, scope), path.substr(prefix.size()));
      }
    }
  }
  return nullptr;
}

std::vector<Json> types_of(const Json& schema) {
  const Json* type = find_key(&schema, "type");
  if (type != nullptr && type->is_array()) return {type->begin(), type->end()};
  if (type != nullptr) return {*type};
  if (schema.contains("properties")) return {"object"};
  if (schema.contains("items")) return {"array"};
  return {};
}

bool lists(const Json& schema, std::string_view value) {
  const Json* values = find_key(&schema, "enum");
  const Json* only = find_key(&schema, "const");
  return (only != nullptr && *only == value) ||
         (values != nullptr && values->is_array() &&
          std::ranges::find(*values, Json(value)) != values->end());
}

}  // namespace

ArgumentSchema::ArgumentSchema(const Json& root, const Json* schema) : root_(&root) {
  add(schema, 0);
}

void ArgumentSchema::add(const Json* schema, int depth) {
  schema = follow(*root_, schema);
  if (schema == nullptr || !schema->is_object() || ways_.size() >= kWaysMax) return;
  bool alternatives = false;
  for (std::string_view key : {"anyOf", "oneOf"}) {
    const Json* list = find_key(schema, key);
    if (list == nullptr || !list->is_array() || depth == kUnionDepthMax) continue;
    alternatives = true;
    for (const Json& one : *list) add(&one, depth + 1);
  }
  if (!alternatives) ways_.push_back(schema);
}

ArgumentSchema ArgumentSchema::member(std::string_view key) const {
  const Json* others = nullptr;
  for (const Json* way : ways_) {
    const Json* found = find_key(find_key(way, "properties"), key);
    if (found != nullptr) return {*root_, found};
    if (others == nullptr) others = find_key(way, "additionalProperties");
  }
  return {*root_, others};
}

ArgumentSchema ArgumentSchema::item() const {
  for (const Json* way : ways_) {
    const Json* found = find_key(way, "items");
    if (found != nullptr) return {*root_, found};
  }
  return {*root_, nullptr};
}

bool ArgumentSchema::has_type(std::string_view type) const {
  return std::ranges::any_of(ways_, [&](const Json* way) {
    std::vector<Json> types = types_of(*way);
    return std::ranges::find(types, Json(type)) != types.end();
  });
}

bool ArgumentSchema::is_string(std::string_view value) const {
  if (std::ranges::any_of(ways_, [&](const Json* way) { return lists(*way, value); })) return true;
  if (value == "null" && has_type("null")) return false;
  bool string = false;
  for (const Json* way : ways_) {
    std::vector<Json> types = types_of(*way);
    if (types.empty()) return false;
    for (const Json& type : types) {
      if (type != "string" && type != "null") return false;
      string |= type == "string";
    }
  }
  return string;
}

Json value_of_text(std::string_view text, const ArgumentSchema& schema) {
  if (!schema.is_string(text)) {
    Result<Json> parsed = parse_json(trim_space(text), "argument");
    if (parsed) return *std::move(parsed);
  }
  return Json(text);
}

}  // namespace banyan
