#include "server/fields/constraint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "base/quote.h"

namespace banyan {
namespace {

using Kind = GrammarSource::Kind;

struct Field {
  const char* name;
  Kind kind;
};

// Fields of SGLang, older vLLM, and llama-server.
constexpr auto kFields = std::to_array<Field>({
    {"regex", Kind::kRegex},
    {"json_schema", Kind::kJsonSchema},
    {"ebnf", Kind::kEbnf},
    {"structural_tag", Kind::kStructuralTag},
    {"grammar", Kind::kEbnf},
    {"guided_json", Kind::kJsonSchema},
    {"guided_regex", Kind::kRegex},
    {"guided_choice", Kind::kChoices},
    {"guided_grammar", Kind::kEbnf},
    {"guided_json_object", Kind::kJsonObject},
});

// Members of vLLM's structured_outputs.
constexpr auto kStructuredOutputs = std::to_array<Field>({
    {"json", Kind::kJsonSchema},
    {"regex", Kind::kRegex},
    {"choice", Kind::kChoices},
    {"grammar", Kind::kEbnf},
    {"json_object", Kind::kJsonObject},
    {"structural_tag", Kind::kStructuralTag},
});

const char* expected_value(Kind kind) {
  switch (kind) {
    case Kind::kJsonObject:
      return "true or false";
    case Kind::kChoices:
      return "a list of texts";
    case Kind::kJsonSchema:
      return "a JSON schema, as an object or as its text";
    case Kind::kStructuralTag:
      return "a structural tag, as an object or as its text";
    default:
      return "a string";
  }
}

class ConstraintReader {
 public:
  ConstraintReader(RequestFields& fields, const JsonSchemaOptions& json)
      : fields_(fields), json_(json) {}

  std::optional<Constraint> read() {
    for (const Field& field : kFields) read_value(field.name, field.kind, fields_.find(field.name));
    read_structured_outputs();
    read_response_format();
    fields_.refuse({"guided_whitespace_pattern"});
    return std::move(constraint_);
  }

 private:
  // `place` names the field in errors; `value` is null if it is absent.
  void read_value(const std::string& place, Kind kind, const Json* value) {
    if (value == nullptr || value->is_null() || *value == "" || *value == false) return;
    GrammarSource source{.kind = kind, .json = json_};
    bool is_text = value->is_string();
    bool fits = is_text;
    if (kind == Kind::kJsonObject) fits = value->is_boolean();
    if (kind == Kind::kChoices) fits = value->is_array();
    if (kind == Kind::kJsonSchema || kind == Kind::kStructuralTag) fits |= value->is_object();
    if (!fits) {
      return fail(place, fmt::format(" is {}; it must be {}", show(*value), expected_value(kind)));
    }
    if (kind != Kind::kJsonObject)
      source.text = is_text ? value->get<std::string>() : dump_json(*value);
    add(place, std::move(source));
  }

  void read_structured_outputs() {
    const Json* outputs = fields_.find("structured_outputs");
    if (outputs == nullptr) return;
    if (!outputs->is_object()) {
      return fail("structured_outputs",
                  fmt::format(" is {}; it must be an object", show(*outputs)));
    }
    RequestFields inner(*outputs, "structured_outputs.");
    if (inner.flag("disable_any_whitespace", !json_.flexible_whitespace)) {
      json_.flexible_whitespace = false;
    }
    json_.disable_additional_properties =
        inner.flag("disable_additional_properties", json_.disable_additional_properties);
    inner.refuse({"whitespace_pattern"});
    if (auto done = inner.finish(); !done) {
      std::string message = done.error().error.message;
      return fail("structured_outputs",
                  message.substr(std::string_view("structured_outputs").size()),
                  done.error().error.code);
    }
    bool given = false;
    for (const Field& field : kStructuredOutputs) {
      auto found = outputs->find(field.name);
      if (found == outputs->end()) continue;
      given = true;
      read_value(fmt::format("structured_outputs.{}", field.name), field.kind, &*found);
    }
    if (!given) fail("structured_outputs", without_constraint(*outputs));
  }

  // A misspelled name would leave the output free, which nobody who asks for structure wants.
  static std::string without_constraint(const Json& outputs) {
    std::vector<std::string> given;
    for (const auto& [name, value] : outputs.items()) given.push_back(quote(name));
    std::vector<std::string_view> known;
    for (const Field& field : kStructuredOutputs) known.push_back(field.name);
    return fmt::format(
        " has {}; it must have one of {}",
        given.empty() ? "no members" : "only " + fmt::format("{}", fmt::join(given, ", ")),
        fmt::join(known, ", "));
  }

  void read_response_format() {
    const Json* format = fields_.find("response_format");
    if (format == nullptr) return;
    auto type = format->is_object() ? format->find("type") : format->end();
    if (!format->is_object() || type == format->end() || !type->is_string()) {
      return fail("response_format",
                  " must be an object with a type, such as {\"type\": \"text\"}");
    }
    const auto& name = type->get_ref<const std::string&>();
    if (name == "text") return;
    if (name == "structural_tag") {
      return add("response_format",
                 {.kind = Kind::kStructuralTag, .text = dump_json(*format), .json = json_});
    }
    // llama-server puts the schema next to the type in both.
    if (name == "json_object") {
      if (format->contains("schema")) return read_schema(*format, "response_format");
      return add("response_format", {.kind = Kind::kJsonObject, .json = json_});
    }
    if (name == "json_schema") {
      bool nested = format->contains("json_schema");
      return read_schema(nested ? (*format)["json_schema"] : *format,
                         nested ? "response_format.json_schema" : "response_format");
    }
    fail("response_format.type",
         fmt::format(" is {}; it must be text, json_object, json_schema or structural_tag",
                     quote(name)),
         ErrorCode::kUnsupported);
  }

  // {"schema": ..., "strict": ...}
  void read_schema(const Json& object, const std::string& place) {
    if (!object.is_object() || !object.contains("schema") || !object["schema"].is_object()) {
      return fail(place + ".schema", " must be a JSON schema, an object");
    }
    JsonSchemaOptions json = json_;
    if (auto strict = object.find("strict"); strict != object.end() && !strict->is_null()) {
      if (!strict->is_boolean()) return fail(place + ".strict", " must be true or false");
      json.strict = strict->get<bool>();
    }
    add(place, {.kind = Kind::kJsonSchema, .text = dump_json(object["schema"]), .json = json});
  }

  void add(const std::string& place, GrammarSource source) {
    if (constraint_) {
      return fail(place,
                  fmt::format(" and {} are both given; give only one of them", constraint_->field));
    }
    constraint_ = Constraint{std::move(source), fields_.place() + place};
  }

  void fail(const std::string& place, std::string message,
            ErrorCode code = ErrorCode::kInvalidArgument) {
    fields_.fail(place.c_str(), std::move(message), code);
  }

  RequestFields& fields_;
  JsonSchemaOptions json_;
  std::optional<Constraint> constraint_;
};

}  // namespace

std::optional<Constraint> read_constraint(RequestFields& fields, const JsonSchemaOptions& json) {
  return ConstraintReader(fields, json).read();
}

}  // namespace banyan
