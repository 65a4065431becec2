// Anthropic's Messages API, from the body to the bytes, without HTTP.
#include <gtest/gtest.h>

#include "llm/llm_parts.h"
#include "server/anthropic/endpoints.h"
#include "server/error.h"
#include "support/api.h"

namespace banyan::anthropic_test {
namespace {

using test::ask;
using test::ask_json;
using test::typed_events_of;

// Shows every part of a conversation, hermes' calls and qwen3's reasoning.
constexpr const char* kTemplate =
    "{# <tool_call></tool_call><think></think> #}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments.a }}]"
    "{% endfor %}{% if m.tool_call_id %}[{{ m.tool_call_id }}]{% endif %}"
    "{% if m.reasoning_content %}[{{ m.reasoning_content }}]{% endif %}{% endfor %}"
    "{% if tools %}({{ tools[0].function.name }}){% endif %}"
    "{% if add_generation_prompt %}<a>{% if enable_thinking %}<think>"
    "{% elif enable_thinking == false %}<think></think>{% endif %}{% endif %}";
constexpr const char* kTool =
    R"("tools":[{"name":"add","description":"adds","cache_control":{"type":"ephemeral"},
    "input_schema":{"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":99}},
    "required":["a"],"additionalProperties":false}}])";

class Anthropic : public testing::Test {
 protected:
  static std::string body(const std::string& fields) {
    std::string messages = R"("messages":[{"role":"user","content":"Hi"}],)";
    std::string length = R"("max_tokens":8,)";
    return "{" + (fields.find("\"messages\"") == fields.npos ? messages : "") +
           (fields.find("\"max_tokens\"") == fields.npos ? length : "") + fields + "}";
  }
  std::string message(const std::string& fields) { return ask(*llm_, plan_message, body(fields)); }
  Json message_json(const std::string& fields) {
    return ask_json(*llm_, plan_message, body(fields));
  }
  // The text that the model gets.
  std::string prompt_of(const std::string& fields) {
    auto plan = plan_message(test::context_for(*llm_), Json::parse(body(fields)));
    if (!plan) return "error " + plan.error().error.message;
    return tokenizer_of(*llm_)->decode(plan->requests[0].prompt).value();
  }

  std::unique_ptr<Llm> llm_ =
      test::tiny_llm(kTemplate, {.ends = true, .vocabulary = 800, .context = 512});
};

TEST_F(Anthropic, AMessageHasTheShapeThatClientsRead) {
  Json answer = message_json(R"("model":"claude","temperature":0)");
  EXPECT_EQ(answer["id"], "msg_0123");
  EXPECT_EQ(answer["type"], "message");
  EXPECT_EQ(answer["role"], "assistant");
  EXPECT_EQ(answer["model"], "claude");
  ASSERT_EQ(answer["content"].size(), 1u) << answer;
  EXPECT_EQ(answer["content"][0]["type"], "text");
  EXPECT_EQ(answer["stop_reason"], "max_tokens");
  EXPECT_TRUE(answer["stop_sequence"].is_null());
  EXPECT_EQ(answer["usage"]["output_tokens"], 8);
  EXPECT_EQ(answer["usage"]["cache_read_input_tokens"], 0);
  EXPECT_EQ(answer["usage"]["input_tokens"],
            tokenizer_of(*llm_)->encode("<user>Hi<a>", {.add_special_tokens = false})->size());
}

TEST_F(Anthropic, TheStreamSaysWhatTheMessageSays) {
  std::string fields = R"("temperature":0)";
  Json whole = message_json(fields);
  std::vector<Json> events = typed_events_of(message(fields + R"(,"stream":true)"));
  std::vector<std::string> order;
  std::string text;
  for (const Json& event : events) {
    std::string type = event["type"];
    if (order.empty() || order.back() != type) order.push_back(type);
    if (type == "content_block_delta") text += event["delta"]["text"];
    if (event.contains("index")) {
      EXPECT_EQ(event["index"], 0);
    }
  }
  EXPECT_EQ(order, (std::vector<std::string>{"message_start", "ping", "content_block_start",
                                             "content_block_delta", "content_block_stop",
                                             "message_delta", "message_stop"}));
  EXPECT_EQ(Json(text), whole["content"][0]["text"]);
  EXPECT_EQ(events[0]["message"]["usage"]["input_tokens"], whole["usage"]["input_tokens"]);
  EXPECT_TRUE(events[0]["message"]["content"].empty());
  const Json& last = events[events.size() - 2];
  EXPECT_EQ(last["usage"], whole["usage"]);
  EXPECT_EQ(last["delta"]["stop_reason"], "max_tokens");
}

TEST_F(Anthropic, AStopSequenceIsNamed) {
  std::string text = message_json(R"("temperature":0)")["content"][0]["text"];
  size_t end = text.size() / 2;
  while (end < text.size() && (text[end] & 0xc0) == 0x80) ++end;
  size_t next = end + 1;
  while (next < text.size() && (text[next] & 0xc0) == 0x80) ++next;
  Json stop = text.substr(end, next - end);
  Json answer = message_json(R"("temperature":0,"stop_sequences":["zz",)" + stop.dump() + "]");
  EXPECT_EQ(answer["stop_reason"], "stop_sequence");
  EXPECT_EQ(answer["stop_sequence"], stop);
}

TEST_F(Anthropic, AForcedCallIsAToolUseBlock) {
  std::string fields = kTool + std::string(R"(,"max_tokens":300,"seed":3,"tool_choice":
      {"type":"tool","name":"add"})");
  Json answer = message_json(fields);
  EXPECT_EQ(answer["stop_reason"], "tool_use") << answer;
  ASSERT_EQ(answer["content"].size(), 1u);
  const Json& call = answer["content"][0];
  EXPECT_EQ(call["type"], "tool_use");
  EXPECT_EQ(call["id"], "toolu_0123_0");
  EXPECT_EQ(call["name"], "add");
  EXPECT_TRUE(call["input"]["a"].is_number_integer());

  std::string arguments;
  for (const Json& event : typed_events_of(message(fields + R"(,"stream":true)"))) {
    if (event["type"] == "content_block_start") {
      EXPECT_EQ(event["content_block"]["name"], "add");
      EXPECT_EQ(event["content_block"]["input"], Json::object());
    }
    if (event["type"] == "content_block_delta") arguments += event["delta"]["partial_json"];
  }
  EXPECT_EQ(Json::parse(arguments), call["input"]);
  EXPECT_EQ(message_json(kTool + std::string(R"(,"max_tokens":300,"tool_choice":{"type":"any",
      "disable_parallel_tool_use":true})"))["content"]
                .size(),
            1u);
}

TEST_F(Anthropic, ThinkingIsABlockOfItsOwn) {
  std::string fields = R"("thinking":{"type":"enabled","budget_tokens":1024},"seed":4)";
  Json answer = message_json(fields);
  EXPECT_EQ(answer["content"][0]["type"], "thinking") << answer;
  EXPECT_EQ(answer["content"][0]["signature"], "");
  EXPECT_EQ(answer["usage"]["output_tokens_details"]["thinking_tokens"], 8);
  std::string thinking;
  std::vector<Json> events = typed_events_of(message(fields + R"(,"stream":true)"));
  bool signature = false;
  for (const Json& event : events) {
    if (event["type"] != "content_block_delta") continue;
    if (event["delta"]["type"] == "thinking_delta") thinking += event["delta"]["thinking"];
    signature |= event["delta"]["type"] == "signature_delta";
  }
  EXPECT_EQ(Json(thinking), answer["content"][0]["thinking"]);
  EXPECT_TRUE(signature);
}

TEST_F(Anthropic, TheEndOfTheContextIsNamed) {
  Json answer = message_json(R"("max_tokens":100000,"temperature":0,"ignore_eos":true)");
  EXPECT_EQ(answer["stop_reason"], "model_context_window_exceeded");
}

TEST_F(Anthropic, AConversationReachesTheTemplate) {
  EXPECT_EQ(prompt_of(R"("system":"S")"), "<system>S<user>Hi<a>");
  // The first block of Claude Code differs in every request, and would hide the rest from the
  // cache.
  EXPECT_EQ(prompt_of(R"("system":[{"type":"text","text":"x-anthropic-billing-header: cch=1"},
      {"type":"text","text":"A","cache_control":{"type":"ephemeral"}},
      {"type":"text","text":"B"}])"),
            "<system>A\nB<user>Hi<a>");
  EXPECT_EQ(prompt_of(R"("messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]},
      {"role":"assistant","content":[{"type":"thinking","thinking":"Hm","signature":""},
        {"type":"text","text":"So"},{"type":"tool_use","id":"t1","name":"add","input":{"a":7}}]},
      {"role":"user","content":[
        {"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"8"}]},
        {"type":"text","text":"And?"}]}],)" +
                      std::string(kTool)),
            "<user>Hi<assistant>So[add 7][Hm]<tool>8[t1]<user>And?(add)<a>");
  EXPECT_EQ(prompt_of(R"("messages":[{"role":"user","content":"Hi"},
      {"role":"assistant","content":"It is"}])"),
            "<user>Hi<a>It is");
}

TEST_F(Anthropic, TokensAreCountedAsTheyWouldBeGiven) {
  Json body = Json::parse(R"({"model":"m","messages":[{"role":"user","content":"Hi"}]})");
  Json counted = count_message_tokens(test::context_for(*llm_), body).value();
  EXPECT_EQ(counted["input_tokens"], message_json(R"("temperature":0)")["usage"]["input_tokens"]);
}

TEST_F(Anthropic, AnOutputFormatIsFollowed) {
  for (const char* fields :
       {R"("output_config":{"format":{"type":"json_schema","schema":{"enum":["x","y"]}}})",
        R"("output_format":{"type":"json_schema","schema":{"enum":["x","y"]}})"}) {
    Json text = message_json(R"("thinking":{"type":"disabled"},)" +
                             std::string(fields))["content"][0]["text"];
    EXPECT_TRUE(text == "\"x\"" || text == "\"y\"") << text;
  }
}

TEST_F(Anthropic, ToolsThatItCannotRunAreLeftOut) {
  std::string search = R"({"type":"web_search_20250305","name":"web_search"})";
  std::string find = R"({"type":"tool_search_tool_regex_20251119","name":"find"})";
  std::string tools = kTool;
  tools.insert(tools.find('[') + 1, search + "," + find + ",");
  EXPECT_EQ(prompt_of(tools), prompt_of(kTool));
  Json answer = message_json(tools);
  ASSERT_EQ(answer["warnings"].size(), 2U) << answer;
  EXPECT_TRUE(answer["warnings"][0].get<std::string>().starts_with(
      "tools[0]: web_search_20250305 is not offered to the model"))
      << answer;
  EXPECT_EQ(prompt_of("\"tools\":[" + search + "]"), prompt_of(R"("stream":false)"));
  for (const char* choice : {R"({"type":"any"})", R"({"type":"tool","name":"web_search"})"}) {
    std::string demanded = message("\"tools\":[" + search + R"(],"tool_choice":)" + choice);
    EXPECT_TRUE(demanded.starts_with("error tool_choice: ")) << demanded;
  }
}

TEST_F(Anthropic, EditsOfTheContextWithoutEffectAreAccepted) {
  std::string messages = R"("messages":[{"role":"user","content":"Hi"},{"role":"assistant",
      "content":[{"type":"thinking","thinking":"a"},{"type":"text","text":"b"}]},
      {"role":"user","content":"c"}],"context_management":)";
  auto edited = [&](const std::string& edit) {
    return message(messages + "{\"edits\":[" + edit + "]}");
  };
  for (const char* edit :
       {"", R"({"type":"clear_thinking_20251015","keep":"all"})",
        R"({"type":"clear_thinking_20251015","keep":{"type":"all"}})",
        R"({"type":"clear_thinking_20251015"})", R"({"type":"clear_tool_uses_20250919"})",
        R"({"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":1}})",
        R"({"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":512}})"}) {
    Json answer = Json::parse(edited(edit), nullptr, false);
    ASSERT_TRUE(answer.is_object()) << edit << edited(edit);
    EXPECT_EQ(answer["context_management"]["applied_edits"], Json::array()) << answer;
  }
  std::string stream = message(messages + R"({"edits":[]},"stream":true)");
  EXPECT_TRUE(stream.contains(R"("context_management":{"applied_edits":[]})")) << stream;
  for (const char* edit :
       {R"({"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":0}})",
        R"({"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":511}})",
        R"({"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":9999}})",
        R"({"type":"forget_all"})"}) {
    std::string refused = edited(edit);
    EXPECT_TRUE(refused.starts_with("error context_management: context_management.edits[0]: "))
        << refused;
  }
  for (const char* wrong :
       {"7", R"({"edits":7})", R"({"edits":{}})", R"({"edits":[7]})",
        R"({"edits":[{"type":"clear_thinking_20251015","keep":"banana"}]})",
        R"({"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens"}}]})"}) {
    std::string refused = message(messages + wrong);
    EXPECT_TRUE(refused.starts_with("error context_management: ") && refused.contains(", not an "))
        << refused;
  }
  Json asked = Json::parse(body(messages + R"({"edits":[]})"));
  Json counted = count_message_tokens(test::context_for(*llm_), asked).value();
  EXPECT_EQ(counted["context_management"]["original_input_tokens"], counted["input_tokens"]);
}

TEST_F(Anthropic, MistakesAreNamed) {
  auto refused = [&](const std::string& fields, const std::string& beginning) {
    std::string answer = message(fields);
    EXPECT_TRUE(answer.starts_with("error " + beginning)) << answer;
  };
  refused(R"("max_tokens":null)", "max_tokens: max_tokens is missing");
  refused(R"("max_tokens":0)", "max_tokens: ");
  refused(R"("messages":[])", "messages: messages must be a list");
  refused(R"("messages":[{"role":"robot","content":"a"}])", "messages: messages[0].role");
  refused(R"("messages":[{"role":"user","content":[{"type":"image","source":{}}]}])",
          "messages: messages[0].content[0]: a block of type \"image\"");
  refused(R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]}])",
          "messages: messages[0].content[0].input");
  refused(R"("system":7)", "system: system is 7");
  refused(R"("tools":[{"type":"bash_20250124","name":"bash"}])",
          "tools: tools[0]: a tool of type \"bash_20250124\", whose input only Anthropic's");
  refused(R"("tools":[{"name":"a"}])", "tools: tools[0].input_schema");
  refused(R"("tool_choice":{"type":"any"})", "tool_choice: ");
  refused(kTool + std::string(R"(,"tool_choice":{"type":"tool","name":"b"})"),
          "tool_choice: tool_choice names");
  refused(R"("thinking":{"type":"much"})", "thinking: ");
  refused(R"("mcp_servers":[{"url":"x"}])", "mcp_servers: ");
}

TEST(AnthropicErrors, HaveAnthropicsShapeOnItsPaths) {
  Json error = error_json(401, "who", {}, {}, "/v1/messages/count_tokens");
  EXPECT_EQ(error, (Json{{"type", "error"},
                         {"error", {{"type", "authentication_error"}, {"message", "who"}}}}));
  EXPECT_EQ(error_json(503, "later", {}, {}, "/v1/messages")["error"]["type"], "overloaded_error");
  std::string message = error_json(400, "why", "prompt", "context_length_exceeded",
                                   "/v1/messages")["error"]["message"];
  EXPECT_EQ(message, "prompt is too long: why");
  EXPECT_TRUE(error_json(401, "who", {}, {}, "/v1/models").contains("object"));
}

}  // namespace
}  // namespace banyan::anthropic_test
