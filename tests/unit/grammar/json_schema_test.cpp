// JSON schemas: the published test suites (an invalid instance is never accepted), and refusals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "banyan/grammar.h"
#include "base/file.h"
#include "base/json.h"
#include "support/shared.h"

namespace banyan::json_schema_test {
namespace {

struct Tally {
  int schemas = 0, compiled = 0, passed = 0, invalid = 0, tests = 0, tests_passed = 0;
};

// Runs the tests of `group`; none may accept an invalid instance.
void run_group(const Json& group, const std::string& where, Tally& tally) {
  ++tally.schemas;
  tally.tests += static_cast<int>(group["tests"].size());
  auto grammar =
      Grammar::from_json_schema(group["schema"].dump(), {.disable_additional_properties = false});
  if (!grammar) return;
  ++tally.compiled;
  bool all = true;
  for (const Json& test : group["tests"]) {
    bool accepted = grammar->matches(test["data"].dump());
    bool valid = test["valid"];
    if (!valid) {
      ++tally.invalid;
      EXPECT_FALSE(accepted) << where << ": " << test["data"].dump() << "\n  "
                             << group["schema"].dump();
    }
    if (accepted == valid) ++tally.tests_passed;
    all = all && accepted == valid;
  }
  tally.passed += all ? 1 : 0;
}

Tally run_folder(const std::string& folder) {
  Tally tally;
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::recursive_directory_iterator(test::shared_path(folder))) {
    // What contentEncoding and contentMediaType say is an annotation.
    bool annotations = e.path().filename() == "content.json";
    if (e.path().extension() == ".json" && !annotations) files.push_back(e.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    Json document = Json::parse(*read_file(file));
    if (document.is_array()) {
      for (const Json& group : document) run_group(group, file.filename(), tally);
    } else {
      run_group(document, file.filename(), tally);
    }
  }
  fmt::print("{}: {} schemas, {} compiled, {} pass fully, {} of {} tests; {} invalid instances\n",
             folder, tally.schemas, tally.compiled, tally.passed, tally.tests_passed, tally.tests,
             tally.invalid);
  return tally;
}

TEST(JsonSchema, AcceptsNothingInvalidOfTheTestSuite) {
  for (const char* draft : {"draft2020-12", "draft7"}) {
    std::string folder = fmt::format("data/json-schema-test-suite/tests/{}", draft);
    REQUIRE_SHARED(folder);
    Tally tally = run_folder(folder);
    EXPECT_GT(tally.compiled * 2, tally.schemas);
    EXPECT_GT(tally.tests_passed * 10, tally.tests * 5);
  }
}

TEST(JsonSchema, AcceptsNothingInvalidOfTheBenchSamples) {
  REQUIRE_SHARED("data/grammar/jsonschemabench");
  Tally tally = run_folder("data/grammar/jsonschemabench");
  EXPECT_GE(tally.passed * 100, tally.schemas * 85);
}

bool accepts(std::string_view schema, std::string_view text) {
  auto grammar = Grammar::from_json_schema(schema);
  EXPECT_TRUE(grammar.has_value()) << grammar.error().message;
  return grammar && grammar->matches(text);
}

std::string refusal(std::string_view schema, JsonSchemaOptions options = {}) {
  auto grammar = Grammar::from_json_schema(schema, options);
  return grammar ? "accepted" : grammar.error().message;
}

TEST(JsonSchema, RefusesByNameAndPath) {
  const std::string relaxing = "strict: false in response_format.json_schema, or --relaxed-schema,";
  EXPECT_EQ(refusal(R"({"properties": {"a": {"not": {"type": "null"}}}})"),
            R"(#/properties/a/not: the keyword "not" cannot be enforced)");
  EXPECT_EQ(refusal(R"({"type": "array", "uniqueItems": true})"),
            R"(#/uniqueItems: the keyword "uniqueItems" cannot be enforced; )" + relaxing +
                " leaves it out");
  EXPECT_EQ(refusal(R"({"oneOf": [{"minimum": 1}, {"maximum": 2}]})"),
            "#/oneOf: branches 0 and 1 overlap, so oneOf cannot be enforced; " + relaxing +
                " treats it as anyOf");
  EXPECT_EQ(refusal(R"({"$ref": "http://example.com/x"})"),
            R"(#/$ref: "http://example.com/x" is not in this document)");
  EXPECT_EQ(refusal(R"({"$ref": "#/$defs/x"})"), R"(#/$ref: "#/$defs/x" does not exist)");
  EXPECT_TRUE(refusal(R"({"type": "text"})").starts_with(R"(#/type: "text" is not a JSON Schema)"));
  EXPECT_EQ(refusal(R"({"format": "blue"})"),
            R"(#/format: the keyword "format" cannot be enforced; )" + relaxing + " leaves it out");
  EXPECT_EQ(refusal("false"), "the grammar accepts no text at all");
  EXPECT_EQ(refusal(R"({"type": "string", "minLength": 3, "maxLength": 2})"),
            "the grammar accepts no text at all");
}

TEST(JsonSchema, NegationsFilterListedValuesAndUndoEachOther) {
  const char* listed = R"({"enum": [1, "a", null, {"b": 1, "c": 2}, [1]], "not": {"anyOf":
    [{"type": "null"}, {"minimum": 1, "type": "number"}, {"const": {"c": 2, "b": 1}}]}})";
  EXPECT_TRUE(accepts(listed, R"("a")"));
  EXPECT_TRUE(accepts(listed, "[1]"));
  for (const char* text : {"1", "null", R"({"b":1,"c":2})"}) {
    EXPECT_FALSE(accepts(listed, text)) << text;
  }
  EXPECT_TRUE(refusal(R"({"enum": [1e33, 1], "not": {"multipleOf": 2}})").contains("32 digits"));
  // The branch that nothing can be needs no list of values.
  const char* branches = R"({"type": "string", "anyOf": [{"type": "null"}, {"enum": ["a", "b"]}],
    "not": {"const": "b"}})";
  EXPECT_TRUE(accepts(branches, R"("a")"));
  EXPECT_FALSE(accepts(branches, R"("b")"));
  const char* apart = R"({"allOf": [{"not": {"type": "null"}}, {"anyOf": [{"const": null},
    {"const": {}}]}]})";
  EXPECT_TRUE(accepts(apart, "{}"));
  EXPECT_FALSE(accepts(apart, "null"));
  const char* twice = R"({"not": {"not": {"type": "integer", "minimum": 5}}})";
  EXPECT_TRUE(accepts(twice, "5"));
  EXPECT_FALSE(accepts(twice, "4"));
  EXPECT_FALSE(accepts(twice, "null"));
  EXPECT_EQ(refusal(R"({"enum": ["a"], "not": {"format": "email"}})"),
            R"(#/not/format: the keyword "format" cannot be enforced)");
  EXPECT_EQ(refusal(R"({"enum": [1], "not": {"anyOf": [{"$ref": "#"}, {"const": 2}]}})"),
            "negations are nested too deeply");
}

TEST(JsonSchema, LongListsOfValuesAreNotComparedForEver) {
  std::string a, b;
  for (int i = 0; i < 5000; ++i) {
    a += (i > 0 ? "," : "") + std::to_string(i);
    b += (i > 0 ? "," : "") + std::to_string(-i - 1);
  }
  for (const char* all : {R"({"allOf": [{"enum": [)", R"({"oneOf": [{"enum": [)"}) {
    EXPECT_TRUE(refusal(all + a + "]}, {\"enum\": [" + b + "]}]}").contains("lists of values"));
  }
}

TEST(JsonSchema, RefusesQuotedRunsInPatterns) {
  // RE2 has \Q...\E, ECMAScript does not.
  EXPECT_TRUE(refusal(R"({"pattern": "a\\Qb"})").contains("the escape \\Q at byte 1"));
}

TEST(JsonSchema, SaysWhatItLeavesOut) {
  auto grammar = Grammar::from_json_schema(
      R"({"type": "array", "items": {"format": "blue"}, "uniqueItems": true})", {.strict = false});
  ASSERT_TRUE(grammar.has_value());
  EXPECT_EQ(grammar->notes(), (std::vector<std::string>{"#/uniqueItems is not enforced",
                                                        "#/items/format is not enforced"}));
}

TEST(JsonSchema, KeepsPropertiesInOrder) {
  const char* schema = R"({"type": "object", "properties": {"a": {"type": "integer"},
    "b": {"type": "boolean"}, "c": {"type": "null"}}, "required": ["b"],
    "additionalProperties": {"type": "string"}})";
  EXPECT_TRUE(accepts(schema, R"({"a":1,"b":true,"c":null,"x":"y","z":""})"));
  EXPECT_TRUE(accepts(schema, R"({"b":true})"));
  EXPECT_TRUE(accepts(schema, R"({"b":true,"c":null})"));
  EXPECT_FALSE(accepts(schema, R"({"b":true,"a":1})"));
  EXPECT_FALSE(accepts(schema, R"({"a":1,"c":null})"));
  EXPECT_FALSE(accepts(schema, R"({"b":true,"x":1})"));
  EXPECT_FALSE(accepts(schema, R"({"b":true,"\u0061":"y"})"));  // the name a, spelled otherwise
  EXPECT_FALSE(accepts(schema, R"({"b":true,"a":"y"})"));
}

TEST(JsonSchema, ObjectsHaveOnlyThePropertiesThatTheyName) {
  const char* one = R"({"type": "object", "properties": {"a": {"type": "integer"}}})";
  EXPECT_TRUE(accepts(one, R"({"a":1})"));
  EXPECT_TRUE(accepts(one, "{}"));
  EXPECT_FALSE(accepts(one, R"({"a":1,"b":2})"));
  auto open = Grammar::from_json_schema(one, {.disable_additional_properties = false});
  EXPECT_TRUE(open->matches(R"({"a":1,"b":2})"));
  EXPECT_FALSE(accepts(R"({"type": "object", "properties": {}})", R"({"b":2})"));
  EXPECT_TRUE(accepts(R"({"properties": {"a": {}, "b": {}}, "required": ["c"]})", R"({"c":2})"));
  // Parts of one object: what each of them names.
  const char* parts = R"({"properties": {"a": true}, "allOf": [{"properties": {"b": true}}],
    "anyOf": [{"properties": {"c": {"type": "null"}}, "required": ["c"]}, {"required": ["a"]}]})";
  EXPECT_TRUE(accepts(parts, R"({"a":1,"b":2})"));
  EXPECT_TRUE(accepts(parts, R"({"a":1,"b":2,"c":null})"));
  EXPECT_FALSE(accepts(parts, R"({"a":1,"d":2})"));
  // Those that say more of others.
  EXPECT_TRUE(accepts(R"({"type": "object"})", R"({"b":2})"));
  EXPECT_TRUE(accepts(R"({"properties": {"a": {}}, "additionalProperties": true})", R"({"b":2})"));
  EXPECT_TRUE(accepts(R"({"properties": {"a": {}}, "unevaluatedProperties": true})", R"({"b":2})"));
  const char* unevaluated = R"({"properties": {"a": {}}, "unevaluatedProperties": {}})";
  EXPECT_FALSE(Grammar::from_json_schema(unevaluated, {.strict = false})->matches(R"({"b":2})"));
  EXPECT_TRUE(accepts(R"({"properties": {"a": {}}, "minProperties": 2})", R"({"a":1,"b":2})"));
  EXPECT_TRUE(accepts(R"({"properties": {"a": {}}, "propertyNames": {"maxLength": 2}})",
                      R"({"a":1,"bc":2})"));
  const char* patterns = R"({"properties": {"a": {}}, "patternProperties": {"^x": {}}})";
  EXPECT_TRUE(accepts(patterns, R"({"a":1,"xy":2})"));
  EXPECT_FALSE(accepts(patterns, R"({"a":1,"y":2})"));
}

TEST(JsonSchema, BoundsNumbersExactly) {
  auto grammar = [](const char* schema) { return Grammar::from_json_schema(schema).value(); };
  Grammar integer = grammar(R"({"type": "integer", "minimum": -7, "exclusiveMaximum": 120})");
  for (int i = -300; i < 300; ++i) {
    EXPECT_EQ(integer.matches(fmt::format("{}", i)), i >= -7 && i < 120) << i;
  }
  Grammar real = grammar(R"({"type": "number", "exclusiveMinimum": -1.5, "maximum": 2.25})");
  for (int i = -400; i < 400; ++i) {
    double value = i / 100.0;
    EXPECT_EQ(real.matches(fmt::format("{}", value)), value > -1.5 && value <= 2.25) << value;
  }
  Grammar multiple = grammar(R"({"type": "number", "multipleOf": 0.25, "minimum": 0})");
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(multiple.matches(fmt::format("{}", i / 100.0)), i % 25 == 0) << i;
  }
  EXPECT_TRUE(accepts(R"({"type": "integer", "multipleOf": 7})", "-7000007"));
  EXPECT_FALSE(accepts(R"({"type": "integer", "multipleOf": 7})",
                       "700"
                       "1"));
}

TEST(JsonSchema, CountsCharactersNatively) {
  const char* schema = R"({"type": "string", "minLength": 2, "maxLength": 10000})";
  auto text = [](size_t n, const char* character) {
    std::string s = "\"";
    for (size_t i = 0; i < n; ++i) s += character;
    return s + "\"";
  };
  for (const char* character : {"a", "é", "😀", "\\n", "\\u00e9", "\\ud83d\\ude00"}) {
    EXPECT_FALSE(accepts(schema, text(1, character))) << character;
    EXPECT_TRUE(accepts(schema, text(2, character))) << character;
    EXPECT_TRUE(accepts(schema, text(10'000, character))) << character;
    EXPECT_FALSE(accepts(schema, text(10'001, character))) << character;
  }
  const char* pattern = R"({"type": "string", "pattern": "^[ab]+$", "maxLength": 5000})";
  EXPECT_TRUE(accepts(pattern, text(5000, "a")));
  EXPECT_FALSE(accepts(pattern, text(5001, "a")));
}

TEST(JsonSchema, CountsItemsAndProperties) {
  const char* items = R"({"type": "array", "items": {"type": "integer"}, "minItems": 2,
                          "maxItems": 300})";
  auto list = [](int n) {
    std::string s = "[";
    for (int i = 0; i < n; ++i) s += i == 0 ? "7" : ",7";
    return s + "]";
  };
  for (int n : {0, 1, 2, 3, 299, 300, 301}) {
    EXPECT_EQ(accepts(items, list(n)), n >= 2 && n <= 300) << n;
  }
  const char* object = R"({"type": "object", "properties": {"a": true, "b": true, "c": true},
    "additionalProperties": false, "minProperties": 1, "maxProperties": 2})";
  EXPECT_FALSE(accepts(object, "{}"));
  EXPECT_TRUE(accepts(object, R"({"b":1})"));
  EXPECT_TRUE(accepts(object, R"({"a":1,"c":1})"));
  EXPECT_FALSE(accepts(object, R"({"a":1,"b":1,"c":1})"));
}

TEST(JsonSchema, FollowsReferencesIntoThemselves) {
  const char* tree = R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"},
    {"type": "null"}]}}, "required": ["value", "next"], "additionalProperties": false}}})";
  EXPECT_TRUE(accepts(tree, R"({"value":1,"next":{"value":2,"next":null}})"));
  EXPECT_FALSE(accepts(tree, R"({"value":1,"next":{"value":2,"next":3}})"));
  EXPECT_EQ(refusal(R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})"),
            "the grammar accepts no text at all");
}

TEST(JsonSchema, AllowsWhitespaceOnlyWhenAsked) {
  const char* schema = R"({"type": "object", "properties": {"a": {"const": [1, {"b": 2}]}},
                           "required": ["a"], "additionalProperties": false})";
  const char* spaced = "{ \"a\" : [\n1 , {\"b\": 2} ]}";
  EXPECT_TRUE(accepts(schema, R"({"a":[1,{"b":2}]})"));
  EXPECT_FALSE(accepts(schema, spaced));
  auto flexible = Grammar::from_json_schema(schema, {.flexible_whitespace = true});
  ASSERT_TRUE(flexible.has_value());
  EXPECT_TRUE(flexible->matches(spaced));
  EXPECT_TRUE(flexible->matches(R"({"a":[1,{"b":2}]})"));
  EXPECT_FALSE(flexible->matches("{" + std::string(1000, ' ') + R"("a":[1,{"b":2}]})"));
}

TEST(JsonSchema, HostileSchemasEndSoon) {
  std::string deep = "true";
  for (int i = 0; i < 100; ++i) deep = R"({"items": )" + deep + "}";
  EXPECT_TRUE(Grammar::from_json_schema(deep).has_value());
  for (int i = 0; i < 100'000; ++i) deep += "]";
  EXPECT_FALSE(Grammar::from_json_schema(deep).has_value());
  std::string loop = R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})";
  Grammar::from_json_schema(loop);
  std::string doubling = R"({"$ref": "#/$defs/d0", "$defs": {)";
  for (int i = 0; i < 30; ++i) {
    doubling += fmt::format(
        R"("d{}": {{"anyOf": [{{"$ref": "#/$defs/d{}"}}, {{"$ref": "#/$defs/d{}"}}]}},)", i, i + 1,
        i + 1);
  }
  doubling += R"("d30": {"type": "null"}}})";
  EXPECT_FALSE(Grammar::from_json_schema(doubling).has_value());  // too large, or too long
  std::string values = R"({"enum": [)";
  for (int i = 0; i < 20'000; ++i) values += fmt::format("\"value number {}\",", i * 7919);
  values += "0]}";
  auto grammar = Grammar::from_json_schema(values);
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  EXPECT_TRUE(grammar->matches("\"value number 7919\""));
}

}  // namespace
}  // namespace banyan::json_schema_test
