// The fields that constrain an output, under all of their names.
#include <gtest/gtest.h>

#include "server/fields/constraint.h"
#include "server/openai/endpoints.h"
#include "server/sglang/endpoints.h"
#include "support/api.h"

namespace banyan::constraint_test {
namespace {

using test::ask;
using test::ask_json;
using test::events_of;

constexpr const char* kDigit = R"({"type":"integer","minimum":3,"maximum":3})";
constexpr const char* kTag =
    R"({"type":"structural_tag","format":{"type":"const_string","value":"3"}})";

std::string json_text(const std::string& text) {
  return Json(text).dump();
}

// Every field, asking for the text 3.
std::vector<std::string> spellings() {
  std::vector<std::string> all;
  for (const char* name : {"regex", "guided_regex"}) all.push_back(json_text(name) + R"(:"3")");
  for (const char* name : {"ebnf", "grammar", "guided_grammar"}) {
    all.push_back(json_text(name) + ":" + json_text(R"(root ::= "3")"));
  }
  for (const char* name : {"json_schema", "guided_json"}) {
    all.push_back(json_text(name) + ":" + kDigit);
    all.push_back(json_text(name) + ":" + json_text(kDigit));
  }
  all.push_back(R"("guided_choice":["3"])");
  all.push_back(std::string(R"("structural_tag":)") + kTag);
  all.push_back(R"("structural_tag":)" + json_text(kTag));
  for (std::string inner : {R"("regex":"3")", R"("choice":["3"],"json_object":false)",
                            R"("grammar":"root ::= \"3\"")", R"("json":{"const":3})"}) {
    all.push_back(R"("structured_outputs":{)" + inner + "}");
  }
  all.push_back(std::string(R"("structured_outputs":{"structural_tag":)") + kTag + "}");
  return all;
}

class Constraints : public testing::Test {
 protected:
  std::string complete(const std::string& fields) {
    return ask(*llm_, plan_completion, R"({"prompt":"Hi","max_tokens":60,)" + fields + "}");
  }
  Json completed(const std::string& fields) {
    return ask_json(*llm_, plan_completion, R"({"prompt":"Hi","max_tokens":60,)" + fields + "}");
  }
  void refused(const std::string& fields, const std::string& beginning) {
    std::string answer = complete(fields);
    EXPECT_EQ(answer.substr(0, beginning.size() + 6), "error " + beginning) << answer;
  }

  std::unique_ptr<Llm> llm_ =
      test::tiny_llm("{{ messages[0].content }}", {.ends = true, .context = 512});
};

TEST_F(Constraints, AreReadUnderEveryNameByEveryEndpoint) {
  for (const std::string& field : spellings()) {
    EXPECT_EQ(completed(field)["choices"][0]["text"], "3") << field;
    Json chat = ask_json(*llm_, plan_chat,
                         R"({"messages":[{"role":"user","content":"Hi"}],)" + field + "}");
    EXPECT_EQ(chat["choices"][0]["message"]["content"], "3") << field;
    EXPECT_EQ(chat["choices"][0]["finish_reason"], "stop");
    Json native =
        ask_json(*llm_, plan_generate, R"({"text":"Hi","sampling_params":{)" + field + "}}");
    EXPECT_EQ(native["text"], "3") << field;
  }
}

TEST_F(Constraints, ResponseFormatIsReadInAllItsForms) {
  auto text = [&](const std::string& format) {
    return completed(R"("seed":3,"response_format":)" + format)["choices"][0];
  };
  std::string schema = kDigit;
  EXPECT_EQ(text(R"({"type":"json_schema","json_schema":{"name":"n","schema":)" + schema +
                 R"(,"strict":true}})")["text"],
            "3");
  EXPECT_EQ(text(R"({"type":"json_schema","schema":)" + schema + "}")["text"], "3");
  EXPECT_EQ(text(R"({"type":"json_object","schema":)" + schema + "}")["text"], "3");
  EXPECT_EQ(text(kTag)["text"], "3");
  Json object = text(R"({"type":"json_object"})");
  EXPECT_EQ(object["text"].get<std::string>().front(), '{');
  if (object["finish_reason"] == "stop") {
    EXPECT_TRUE(Json::parse(object["text"].get<std::string>(), nullptr, false).is_object());
  }
}

TEST_F(Constraints, EachSampleAndEachPromptFollows) {
  Json answer =
      ask_json(*llm_, plan_completion, R"({"prompt":["a","b"],"n":3,"regex":"[0-9]{4}","seed":1})");
  ASSERT_EQ(answer["choices"].size(), 6u);
  for (const Json& choice : answer["choices"]) {
    std::string text = choice["text"];
    EXPECT_EQ(text.size(), 4u);
    EXPECT_EQ(text.find_first_not_of("0123456789"), std::string::npos) << text;
  }
  EXPECT_EQ(llm_->grammar_stats().misses, 1u);
}

TEST_F(Constraints, TwoAtOnceAreRefusedByBothNames) {
  refused(R"("regex":"a","json_schema":{})", "json_schema: json_schema and regex are both given");
  refused(R"("structured_outputs":{"regex":"a","choice":["b"]})",
          "structured_outputs.choice: structured_outputs.choice and structured_outputs.regex");
  refused(R"("ebnf":"root ::= \"a\"","response_format":{"type":"json_object"})",
          "response_format: response_format and ebnf are both given");
  std::string native =
      ask(*llm_, plan_generate, R"({"text":"a","sampling_params":{"regex":"a","ebnf":"b"}})");
  EXPECT_EQ(native.substr(0, native.find(" are both")),
            "error sampling_params.ebnf: sampling_params.ebnf and sampling_params.regex");
}

TEST_F(Constraints, WhatIsWrongIsNamed) {
  refused(R"("regex":7)", "regex: regex is 7; it must be a string");
  refused(R"("regex":"(a")", "regex: ");
  refused(R"("regex":"(?=a)b")", "regex: ");
  refused(R"("guided_choice":"a")", "guided_choice: ");
  refused(R"("guided_choice":[1])", "guided_choice: ");
  refused(R"("json_schema":"{")", "json_schema: ");
  refused(R"("json_schema":{"not":{}})", "json_schema: ");
  refused(R"("guided_json_object":1)", "guided_json_object: ");
  refused(R"("guided_whitespace_pattern":" ")", "guided_whitespace_pattern: ");
  refused(R"("structured_outputs":7)", "structured_outputs: ");
  refused(R"("structured_outputs":{"whitespace_pattern":" "})",
          "structured_outputs: structured_outputs.whitespace_pattern is not supported");
  refused(R"("response_format":7)", "response_format: ");
  refused(R"("response_format":{"type":"xml"})", "response_format.type: ");
  refused(R"("response_format":{"type":"json_schema"})", "response_format.schema: ");
  refused(R"("response_format":{"type":"json_schema","json_schema":{"schema":{},"strict":1}})",
          "response_format.json_schema.strict: ");
  // What asks for nothing is nothing.
  EXPECT_EQ(completed(R"("regex":"","grammar":null,"guided_json_object":false,
      "structured_outputs":{"json_object":false},"response_format":{"type":"text"})")["choices"]
                .size(),
            1u);
}

TEST_F(Constraints, StructuredOutputsWithoutAConstraintAreRefused) {
  std::string known =
      "it must have one of json, regex, choice, grammar, json_object, structural_tag";
  refused(R"("structured_outputs":{"regexp":"a"})",
          "structured_outputs: structured_outputs has only \"regexp\"; " + known);
  refused(R"("structured_outputs":{})",
          "structured_outputs: structured_outputs has no members; " + known);
  refused(R"("structured_outputs":{"disable_any_whitespace":true})",
          "structured_outputs: structured_outputs has only \"disable_any_whitespace\"; ");
}

TEST_F(Constraints, ObjectsHaveOnlyTheirPropertiesUnlessToldOtherwise) {
  std::string schema = R"({"type":"object","properties":{"a":{"const":1}}})";
  auto may_have_more = [&](const std::string& fields) {
    Json body = Json::parse("{" + fields + "}");
    RequestFields read(body);
    auto constraint = read_constraint(read, {});
    EXPECT_TRUE(read.finish() && constraint) << fields;
    return Grammar::from_source(constraint->grammar)->matches(R"({"a":1,"b":2})");
  };
  EXPECT_FALSE(may_have_more(R"("json_schema":)" + schema));
  for (const char* strict : {"true", "false", "null"}) {
    EXPECT_FALSE(
        may_have_more(R"("response_format":{"type":"json_schema","json_schema":{"strict":)" +
                      std::string(strict) + R"(,"schema":)" + schema + "}}"));
  }
  std::string outputs = R"("structured_outputs":{"json":)" + schema;
  EXPECT_FALSE(may_have_more(outputs + "}"));
  EXPECT_FALSE(may_have_more(outputs + R"(,"disable_additional_properties":true})"));
  EXPECT_TRUE(may_have_more(outputs + R"(,"disable_additional_properties":false})"));
}

TEST_F(Constraints, TooLargeAGrammarIsTheClientsToMend) {
  std::string pattern = std::string(200, '(') + "a" + std::string(200, ')');
  std::string answer = complete(R"("regex":)" + json_text(pattern));
  EXPECT_NE(answer.find("error regex: "), std::string::npos) << answer;
}

TEST_F(Constraints, RelaxedSchemasWarnInTheAnswerAndInEachEvent) {
  std::string schema = R"({"type":"array","items":{"const":1},"maxItems":2,"uniqueItems":true})";
  std::string format = R"("response_format":{"type":"json_schema","json_schema":{"schema":)" +
                       schema + R"(,"strict":false}})";
  refused(R"("json_schema":)" + schema, "json_schema: ");
  Json answer = completed(format);
  ASSERT_EQ(answer["warnings"].size(), 1u);
  EXPECT_NE(answer["warnings"][0].get<std::string>().find("uniqueItems"), std::string::npos);
  for (const Json& event : events_of(complete(format + R"(,"stream":true)"))) {
    EXPECT_EQ(event["warnings"], answer["warnings"]);
  }
  EXPECT_FALSE(completed(R"("regex":"a")").contains("warnings"));
}

TEST_F(Constraints, WhitespaceIsAsTheServerOrTheRequestSays) {
  auto may_have_space = [&](const std::string& fields, bool flexible) {
    Json body = Json::parse(R"({"prompt":"a",)" + fields + "}");
    RequestFields read(body);
    auto constraint = read_constraint(read, {.flexible_whitespace = flexible});
    EXPECT_TRUE(read.finish() && constraint);
    return Grammar::from_source(constraint->grammar)->matches("[1, 2]");
  };
  EXPECT_FALSE(may_have_space(R"("json_schema":{"type":"array"})", false));
  EXPECT_TRUE(may_have_space(R"("json_schema":{"type":"array"})", true));
  std::string outputs = R"("structured_outputs":{"json":{"type":"array"},)";
  EXPECT_TRUE(may_have_space(outputs + R"("disable_any_whitespace":false})", true));
  EXPECT_FALSE(may_have_space(outputs + R"("disable_any_whitespace":true})", true));
}

}  // namespace
}  // namespace banyan::constraint_test
