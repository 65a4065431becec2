// Custom tools of OpenAI's two chat APIs, from the body to the bytes. The model has random weights:
// what its calls have in common is what the grammar forces.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "llm/llm_parts.h"
#include "server/openai/custom_input.h"
#include "server/openai/endpoints.h"
#include "server/openai/responses/endpoints.h"
#include "support/api.h"

namespace banyan::custom_tools_test {
namespace {

using test::ask;
using test::events_of;
using test::typed_events_of;

// Shows calls, outputs and the tools' parameters; hermes' calls.
constexpr const char* kTemplate =
    "{# <tool_call></tool_call> #}{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments.input }}]"
    "{% endfor %}{% endfor %}{% for t in tools or [] %}({{ t.function.name }}"
    "{% for p in t.function.parameters.properties %} {{ p }}{% endfor %}){% endfor %}<a>";
// Two lines, the second with quotes: both have to be escaped in JSON.
constexpr const char* kGrammar = R"("syntax":"regex","definition":"[ab]{2,4}\\n\"[cd]\"")";

bool follows_grammar(std::string_view input) {
  size_t begin = std::min(input.find_first_not_of("ab"), input.size());
  std::string_view rest = input.substr(begin);
  return begin >= 2 && begin <= 4 && (rest == "\n\"c\"" || rest == "\n\"d\"");
}

std::string decoded(std::string_view arguments, size_t piece) {
  CustomInput input;
  std::string text;
  for (size_t at = 0; at < arguments.size(); at += piece) {
    text += input.take(arguments.substr(at, piece));
  }
  return text + input.finish();
}

TEST(CustomInput, IsTheDecodedStringHoweverItComes) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"input": "plain"})", "plain"},
      {R"( { "input" : "a\n\t\"\\\/b" } )", "a\n\t\"\\/b"},
      {R"({"input":"\u00e9\ud83d\ude00\u0041"})", "é😀A"},
      {R"({"input":"\ud83d"})", "\ufffd"},
      {R"({"input":"\ud83d\n\ude00!"})", "\ufffd\n\ufffd!"},
      {R"({"input":"C:\dir \u12"})", "C:\\dir \\u12"},
      {"{\"input\":\"two\nlines\"}", "two\nlines"},
      {R"({"input":"cut)", "cut"},
      {R"({"input":"cut\u00)", "cut"},
      {R"({"inp)", ""},
      {"", ""},
      {R"({"why":"x","input":"later"})", "later"},
      {R"({"input":7})", R"({"input":7})"},
      {"[1]", "[1]"},
  };
  for (const auto& [arguments, input] : kCases) {
    EXPECT_EQ(custom_input(arguments), input);
    for (size_t piece : {1, 2, 3, 7}) EXPECT_EQ(decoded(arguments, piece), input) << piece;
  }
  std::string text = "say \"é\"\n\\ end";
  EXPECT_EQ(custom_input(custom_arguments(text)), text);
}

class CustomTools : public testing::Test {
 protected:
  static std::string response_body(const std::string& fields) {
    std::string input = fields.find("\"input\":") == fields.npos ? R"("input":"Hi",)" : "";
    return "{" + input + R"("max_output_tokens":300,"seed":3,)" + fields + "}";
  }
  static std::string chat_body(const std::string& fields) {
    return R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":300,"seed":3,)" + fields +
           "}";
  }
  // With a store, as the server has one.
  static Parsed<GenerationPlan> plan_stored(const RequestContext& context, const Json& body) {
    RequestContext with_store = context;
    with_store.responses = store_;
    return plan_response(with_store, body);
  }
  std::string respond_to(const std::string& body) { return ask(*llm_, plan_stored, body); }
  std::string respond(const std::string& fields) { return respond_to(response_body(fields)); }
  std::string prompt_of(Planner planner, const std::string& body) {
    Parsed<GenerationPlan> made = planner(test::context_for(*llm_), Json::parse(body));
    if (!made) return "error " + made.error().error.message;
    return tokenizer_of(*llm_)->decode(made->requests[0].prompt).value();
  }
  Json json_of(const std::string& text) {
    Json json = Json::parse(text, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << text;
    return json.is_discarded() ? Json() : json;
  }

  std::unique_ptr<Llm> llm_ =
      test::tiny_llm(kTemplate, {.ends = true, .vocabulary = 800, .context = 512});
  static inline const std::shared_ptr<ResponseStore> store_ =
      std::make_shared<ResponseStore>(ResponseStore::Limits{8, 1 << 20, std::chrono::hours(1)});
};

const std::string kResponseTool = R"("tools":[{"type":"custom","name":"edit","description":"E",
    "format":{"type":"grammar",)" +
                                  std::string(kGrammar) + "}}]";
const std::string kChatTool = R"("tools":[{"type":"custom","custom":{"name":"edit",
    "format":{"type":"grammar","grammar":{)" +
                              std::string(kGrammar) + "}}}}]";

TEST_F(CustomTools, AResponseHasTheirInput) {
  std::string fields = kResponseTool + R"(,"tool_choice":{"type":"custom","name":"edit"})";
  Json answer = json_of(respond(fields));
  ASSERT_EQ(answer["output"].size(), 1u) << answer;
  const Json& call = answer["output"][0];
  EXPECT_EQ(call["type"], "custom_tool_call");
  EXPECT_EQ(call["status"], "completed");
  EXPECT_EQ(call["name"], "edit");
  EXPECT_TRUE(call["id"].get<std::string>().starts_with("ctc_"));
  EXPECT_TRUE(call["call_id"].get<std::string>().starts_with("call_"));
  EXPECT_TRUE(follows_grammar(call["input"].get<std::string>())) << call;

  std::string streamed;
  std::vector<std::string> order;
  for (const Json& event :
       typed_events_of(ask(*llm_, plan_response, response_body(fields + R"(,"stream":true)")))) {
    std::string type = event["type"];
    if (order.empty() || order.back() != type) order.push_back(type);
    if (type == "response.output_item.added") {
      EXPECT_EQ(event["item"]["input"], "");
    }
    if (type == "response.custom_tool_call_input.delta") streamed += event["delta"];
    if (type == "response.custom_tool_call_input.done") {
      EXPECT_EQ(event["input"], Json(streamed));
    }
    if (type == "response.output_item.done") {
      EXPECT_EQ(event["item"]["input"], Json(streamed));
    }
  }
  EXPECT_EQ(Json(streamed), call["input"]);
  EXPECT_EQ(order,
            (std::vector<std::string>{
                "response.created", "response.in_progress", "response.output_item.added",
                "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done",
                "response.output_item.done", "response.completed"}));
}

TEST_F(CustomTools, ItemsAndStoredTurnsReachTheTemplate) {
  EXPECT_EQ(prompt_of(plan_stored, response_body(R"("input":[{"role":"user","content":"Q"},
      {"type":"custom_tool_call","call_id":"c1","name":"edit","input":"x \"y\""},
      {"type":"custom_tool_call_output","call_id":"c1","output":"8"}],
      "tools":[{"type":"custom","name":"edit"}])")),
            "<user>Q<assistant>[edit x \"y\"]<tool>8(edit input)<a>");
  // A text that must be escaped; a call is stored as the model will see it.
  Json tool = {{"type", "custom"}, {"name", "edit"}};
  tool["format"] = {{"type", "grammar"}, {"syntax", "regex"}, {"definition", "a\n\"[bc]\""}};
  Json fields = {{"tools", {tool}},
                 {"tool_choice", "required"},
                 {"parallel_tool_calls", false},
                 {"input", "Hi"},
                 {"max_output_tokens", 300}};
  Json first = json_of(respond_to(fields.dump()));
  Json call = first["output"][0];
  Json then = {{"previous_response_id", first["id"]}};
  then["input"] = Json::array(
      {{{"type", "custom_tool_call_output"}, {"call_id", call["call_id"]}, {"output", "ok"}}});
  EXPECT_EQ(prompt_of(plan_stored, then.dump()),
            "<user>Hi<assistant>[edit " + call["input"].get<std::string>() + "]<tool>ok<a>");
}

TEST_F(CustomTools, AChatHasTheirInput) {
  std::string fields = kChatTool + R"(,"tool_choice":{"type":"custom","custom":{"name":"edit"}})";
  Json answer = json_of(ask(*llm_, plan_chat, chat_body(fields)))["choices"][0];
  EXPECT_EQ(answer["finish_reason"], "tool_calls") << answer;
  const Json& call = answer["message"]["tool_calls"][0];
  EXPECT_EQ(call["type"], "custom");
  EXPECT_EQ(call["custom"]["name"], "edit");
  std::string input = call["custom"]["input"];
  EXPECT_TRUE(follows_grammar(input)) << input;

  std::string streamed;
  size_t pieces = 0;
  for (const Json& event :
       events_of(ask(*llm_, plan_chat, chat_body(fields + R"(,"stream":true)")))) {
    const Json& delta = event["choices"][0]["delta"];
    if (!delta.contains("tool_calls")) continue;
    const Json& part = delta["tool_calls"][0];
    EXPECT_EQ(part.contains("id"), pieces == 0);
    EXPECT_EQ(part["custom"].contains("name"), pieces == 0);
    streamed += part["custom"]["input"];
    ++pieces;
  }
  EXPECT_GT(pieces, 1u);
  EXPECT_EQ(streamed, input);
}

TEST_F(CustomTools, StandNextToFunctions) {
  std::string tools = R"("tools":[{"type":"function","function":{"name":"now","parameters":
      {"type":"object","properties":{},"additionalProperties":false}}},
      {"type":"custom","custom":{"name":"edit","format":{"type":"text"}}}])";
  EXPECT_EQ(prompt_of(plan_chat, R"({"messages":[{"role":"user","content":"Q"},
      {"role":"assistant","tool_calls":[{"id":"c1","type":"custom",
       "custom":{"name":"edit","input":"x\ny"}}]},
      {"role":"tool","tool_call_id":"c1","content":"8"}],)" +
                                     tools + "}"),
            "<user>Q<assistant>[edit x\ny]<tool>8(now)(edit input)<a>");
  std::string now = R"(,"tool_choice":{"type":"function","function":{"name":"now"}})";
  Json called = json_of(ask(*llm_, plan_chat, chat_body(tools + now)))["choices"][0];
  EXPECT_EQ(called["message"]["tool_calls"][0]["type"], "function") << called;
  std::string allowed = R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":
      {"mode":"required","tools":[{"type":"custom","custom":{"name":"edit"}}]}})";
  Json answer = json_of(ask(*llm_, plan_chat, chat_body(kChatTool + allowed)));
  EXPECT_EQ(answer["choices"][0]["message"]["tool_calls"][0]["type"], "custom") << answer;
}

TEST_F(CustomTools, MistakesAreNamed) {
  auto refused = [&](const std::string& answer, const std::string& beginning) {
    EXPECT_TRUE(answer.starts_with("error " + beginning)) << answer;
  };
  auto format = [&](const std::string& text) {
    return respond(R"("tools":[{"type":"custom","name":"a","format":)" + text + "}]");
  };
  refused(respond(R"("tools":[{"type":"custom"}])"), "tools: tools[0].name");
  refused(format(R"({"type":"grammar","syntax":"lark","definition":"start: A"})"),
          "tools: tools[0].format: the syntax lark is not supported");
  refused(format(R"({"type":"grammar","syntax":"peg","definition":""})"), "tools: ");
  refused(format(R"({"type":"grammar","syntax":"regex"})"), "tools: ");
  refused(format(R"({"type":"grammar","syntax":"regex","definition":"a)|(b"})"),
          "tools: tools[0].format: ");
  refused(format(R"({"type":"xml"})"), "tools: tools[0].format is");
  refused(format("7"), "tools: tools[0].format is");
  refused(respond(kResponseTool + R"(,"tool_choice":{"type":"custom","name":"b"})"),
          "tool_choice: tool_choice names");
  auto chat = [&](const std::string& fields) { return ask(*llm_, plan_chat, chat_body(fields)); };
  refused(chat(R"("tools":[{"type":"custom","custom":{}}])"), "tools: tools[0].custom.name");
  refused(chat(R"("tools":[{"type":"custom","custom":{"name":"a","format":{"type":"grammar",
      "grammar":{"syntax":"lark","definition":""}}}}])"),
          "tools: tools[0].custom.format: the syntax lark");
  refused(chat(kChatTool + R"(,"tool_choice":{"type":"custom","custom":{"name":"b"}})"),
          "tool_choice: tool_choice names");
  refused(ask(*llm_, plan_chat, R"({"messages":[{"role":"assistant","tool_calls":[
      {"type":"custom","custom":{"name":"a"}}]}]})"),
          "messages: messages[0].tool_calls[0].custom");
}

}  // namespace
}  // namespace banyan::custom_tools_test
