// Grammars of arguments as literals. In Python's syntax values are those of JSON, which are
// Python's too, but for True and False. With a quotation mark of the format's own, strings are free
// text between two of them, and objects are written like the arguments themselves.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/signed.h"
#include "llm/messages/argument_grammar.h"
#include "llm/structural.h"

namespace banyan {
namespace {

using namespace structural;

Json regex(std::string_view pattern) {
  return {{"type", "regex"}, {"pattern", pattern}};
}

class LiteralGrammar {
 public:
  LiteralGrammar(const ToolCallFormat& format, const Tool& tool) : format_(format), tool_(tool) {}

  Result<Json> members(const Json& schema, const std::string& place) const {
    Members members = TRY(members_of(schema, place));
    std::vector<Member> all;
    std::string key_end(1, format_.literals.key_end);
    for (const auto& [key, value_schema] : members.properties.items()) {
      Json value = TRY(this->value(value_schema, place + "/properties/" + key));
      all.push_back({sequence({constant(key + key_end), std::move(value)}), members.must(key)});
    }
    return in_order(all);
  }

  // Any arguments with balanced strings.
  Json anything() const {
    std::string_view quote = format_.literals.quote;
    if (quote.empty()) {
      return regex(R"((?s)(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^"'()])*)");
    }
    return separated(either({string(), regex("[^<>]")}), "");
  }

 private:
  struct Member {
    Json text;
    bool must;
  };

  // Members in their order, separated by commas; those that need not be may be left out.
  static Json in_order(const std::vector<Member>& all) {
    const Json comma = regex(", ?");
    auto rest_of = [&](size_t from) {
      Json rest = Json::array();
      for (size_t i = from; i < all.size(); ++i) {
        Json next = sequence({comma, all[i].text});
        rest.push_back(all[i].must ? std::move(next) : optional(std::move(next)));
      }
      return rest;
    };
    size_t must = as_size(std::ranges::find_if(all, &Member::must) - all.begin());
    Json elements = Json::array();
    if (must < all.size()) {
      for (size_t i = 0; i < must; ++i)
        elements.push_back(optional(sequence({all[i].text, comma})));
      elements.push_back(all[must].text);
      for (Json& next : rest_of(must + 1)) elements.push_back(std::move(next));
      return sequence(std::move(elements));
    }
    Json ways = Json::array({constant("")});
    for (size_t i = 0; i < all.size(); ++i) {
      Json way = Json::array({all[i].text});
      for (Json& next : rest_of(i + 1)) way.push_back(std::move(next));
      ways.push_back(sequence(std::move(way)));
    }
    return either(std::move(ways));
  }

  Result<Json> value(const Json& schema, const std::string& place) const {
    bool python = format_.literals.quote.empty();
    const Json type = schema.is_object() ? schema.value("type", Json()) : Json();
    if (python && type == "boolean") return either({constant("True"), constant("False")});
    if (python) return json_value(schema, tool_.parameters);
    if (!schema.is_object()) return any_value();
    if (tool_.strict) TRY(check_enforceable(format_, schema, kStructureRules, place));
    if (schema.contains("const")) return constants(Json::array({schema["const"]}), place);
    if (schema.contains("enum")) return constants(schema["enum"], place);
    if (type.is_array()) {
      Json ways = Json::array();
      for (const Json& one : type) {
        Json way = schema;
        way["type"] = one;
        ways.push_back(TRY(value(way, place)));
      }
      if (ways.empty()) return invalid_argument("{}: type must not be empty", place);
      return either(std::move(ways));
    }
    if (type == "string") {
      if (tool_.strict) TRY(check_enforceable(format_, schema, kStringRules, place));
      return string();
    }
    if (type == "array") {
      Json item = TRY(value(schema.value("items", Json(true)), place + "/items"));
      return sequence({constant("["), separated(std::move(item), ","), constant("]")});
    }
    if (type == "object") {
      bool known = schema.contains("properties");
      Json content = known ? TRY(members(schema, place)) : anything();
      return sequence({constant("{"), std::move(content), constant("}")});
    }
    return type.is_null() ? any_value() : json_value(schema, tool_.parameters);
  }

  Json string() const { return tag(format_.literals.quote, any_text(), format_.literals.quote); }

  Json any_value() const {
    return either({string(), json_value({{"type", {"number", "boolean", "null"}}}, {}),
                   sequence({constant("["), anything(), constant("]")}),
                   sequence({constant("{"), anything(), constant("}")})});
  }

  Result<Json> constants(const Json& values, const std::string& place) const {
    Json ways = Json::array();
    std::string_view quote = format_.literals.quote;
    for (const Json& value : values) {
      if (value.is_string()) {
        ways.push_back(tag(quote, constant(value.get<std::string>()), quote));
      } else if (value.is_structured()) {
        return unsupported("{}: calls of the format {} cannot enforce the value {}", place,
                           format_.name, value.dump());
      } else {
        ways.push_back(constant(value.dump()));
      }
    }
    if (ways.empty()) return invalid_argument("{}: enum must not be empty", place);
    return either(std::move(ways));
  }

  const ToolCallFormat& format_;
  const Tool& tool_;
};

}  // namespace

Result<Json> literal_arguments(const ToolCallFormat& format, const Tool& tool, bool enforced) {
  LiteralGrammar grammar(format, tool);
  return enforced ? grammar.members(tool.parameters, tool.name) : grammar.anything();
}

}  // namespace banyan
