// OpenAI's Responses API, from the body to the bytes, without HTTP.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "llm/llm_parts.h"
#include "server/openai/responses/endpoints.h"
#include "support/api.h"

namespace banyan::responses_test {
namespace {

using test::typed_events_of;

// Shows every part of a conversation, hermes' calls and qwen3's reasoning.
constexpr const char* kTemplate =
    "{# <tool_call></tool_call><think></think> #}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments.a }}]"
    "{% endfor %}{% if m.tool_call_id %}[{{ m.tool_call_id }}]{% endif %}"
    "{% if m.reasoning_content %}[{{ m.reasoning_content }}]{% endif %}{% endfor %}"
    "{% if tools %}({{ tools[0].function.name }}){% endif %}"
    "<a>{% if enable_thinking %}<think>{% elif enable_thinking == false %}<think></think>{% endif "
    "%}";
constexpr const char* kTool =
    R"("tools":[{"type":"function","name":"add","parameters":
    {"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":99}},
    "required":["a"],"additionalProperties":false}}])";

class Responses : public testing::Test {
 protected:
  static std::string body(const std::string& fields) {
    bool has_input = fields.find("\"input\"") != fields.npos;
    bool has_length = fields.find("max_output") != fields.npos;
    return std::string("{") + (has_input ? "" : R"("input":"Hi",)") +
           (has_length ? "" : R"("max_output_tokens":8,)") + fields + "}";
  }
  // With a store, as the server has one.
  Parsed<GenerationPlan> plan(const RequestContext& context, const std::string& fields) {
    return plan_response(context, Json::parse(body(fields)));
  }
  RequestContext context() {
    RequestContext made = test::context_for(*llm_);
    made.responses = store_;
    return made;
  }
  std::string run(const std::string& fields) {
    Parsed<GenerationPlan> made = plan(context(), fields);
    if (!made) return "error " + made.error().param + ": " + made.error().error.message;
    return test::run_plan(*llm_, *made);
  }
  std::string ask(const std::string& fields) {
    return test::ask(*llm_, plan_response, body(fields));
  }
  Json json_of(const std::string& text) {
    Json json = Json::parse(text, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << text;
    return json;
  }
  std::string prompt_of(const std::string& fields) {
    Parsed<GenerationPlan> made = plan(context(), fields);
    if (!made) return "error " + made.error().error.message;
    return tokenizer_of(*llm_)->decode(made->requests[0].prompt).value();
  }

  std::unique_ptr<Llm> llm_ =
      test::tiny_llm(kTemplate, {.ends = true, .vocabulary = 800, .context = 512});
  std::shared_ptr<ResponseStore> store_ =
      std::make_shared<ResponseStore>(ResponseStore::Limits{8, 1 << 20, std::chrono::hours(1)});
};

TEST_F(Responses, AResponseHasTheShapeThatClientsRead) {
  Json answer = json_of(ask(R"("temperature":0,"instructions":"Be","metadata":{"a":"b"})"));
  EXPECT_TRUE(answer["id"].get<std::string>().starts_with("resp_"));
  EXPECT_EQ(answer["object"], "response");
  EXPECT_EQ(answer["status"], "incomplete");
  EXPECT_EQ(answer["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_TRUE(answer["error"].is_null());
  EXPECT_EQ(answer["instructions"], "Be");
  EXPECT_EQ(answer["metadata"]["a"], "b");
  EXPECT_EQ(answer["tool_choice"], "auto");
  ASSERT_EQ(answer["output"].size(), 1u);
  const Json& message = answer["output"][0];
  EXPECT_EQ(message["type"], "message");
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_EQ(message["status"], "incomplete");
  EXPECT_EQ(message["content"][0]["type"], "output_text");
  EXPECT_TRUE(message["content"][0]["annotations"].is_array());
  EXPECT_EQ(answer["usage"]["output_tokens"], 8);
  EXPECT_EQ(answer["usage"]["input_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(answer["usage"]["total_tokens"], answer["usage"]["input_tokens"].get<int>() + 8);
}

TEST_F(Responses, TheStreamSaysWhatTheResponseSays) {
  Json whole = json_of(ask(R"("temperature":0)"));
  std::vector<Json> events = typed_events_of(ask(R"("temperature":0,"stream":true)"));
  std::vector<std::string> order;
  std::string text;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i]["sequence_number"], i);
    std::string type = events[i]["type"];
    if (order.empty() || order.back() != type) order.push_back(type);
    if (type == "response.output_text.delta") text += events[i]["delta"];
    if (type == "response.output_text.done") {
      EXPECT_EQ(events[i]["text"], whole["output"][0]["content"][0]["text"]);
    }
  }
  EXPECT_EQ(order, (std::vector<std::string>{
                       "response.created", "response.in_progress", "response.output_item.added",
                       "response.content_part.added", "response.output_text.delta",
                       "response.output_text.done", "response.content_part.done",
                       "response.output_item.done", "response.incomplete"}));
  EXPECT_EQ(Json(text), whole["output"][0]["content"][0]["text"]);
  Json last = events.back()["response"];
  EXPECT_EQ(last["usage"], whole["usage"]);
  EXPECT_EQ(last["output"][0]["content"], whole["output"][0]["content"]);
  EXPECT_EQ(events[0]["response"]["status"], "in_progress");
}

TEST_F(Responses, CallsAreItems) {
  std::string fields = kTool + std::string(R"(,"max_output_tokens":300,"seed":3,
      "tool_choice":{"type":"function","name":"add"})");
  Json answer = json_of(ask(fields));
  EXPECT_EQ(answer["status"], "completed") << answer;
  ASSERT_EQ(answer["output"].size(), 1u);
  const Json& call = answer["output"][0];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "add");
  EXPECT_TRUE(call["call_id"].get<std::string>().starts_with("call_"));
  Json arguments = Json::parse(call["arguments"].get<std::string>());
  EXPECT_TRUE(arguments["a"].is_number_integer());

  std::string streamed;
  for (const Json& event : typed_events_of(ask(fields + R"(,"stream":true)"))) {
    if (event["type"] == "response.output_item.added") {
      EXPECT_EQ(event["item"]["name"], "add");
      EXPECT_EQ(event["item"]["arguments"], "");
    }
    if (event["type"] == "response.function_call_arguments.delta") streamed += event["delta"];
    if (event["type"] == "response.function_call_arguments.done") {
      EXPECT_EQ(event["arguments"], Json(streamed));
    }
  }
  EXPECT_EQ(Json(streamed), call["arguments"]);
}

TEST_F(Responses, ReasoningIsAnItemOfItsOwn) {
  std::string fields = R"("reasoning":{"effort":"low"},"seed":4)";
  Json answer = json_of(ask(fields));
  const Json& item = answer["output"][0];
  EXPECT_EQ(item["type"], "reasoning") << answer;
  EXPECT_EQ(item["content"][0]["type"], "reasoning_text");
  EXPECT_TRUE(item["summary"].empty());
  EXPECT_EQ(answer["usage"]["output_tokens_details"]["reasoning_tokens"], 8);
  std::string text;
  for (const Json& event : typed_events_of(ask(fields + R"(,"stream":true)"))) {
    if (event["type"] == "response.reasoning_text.delta") text += event["delta"];
  }
  EXPECT_EQ(Json(text), item["content"][0]["text"]);
}

TEST_F(Responses, ItemsReachTheTemplate) {
  EXPECT_EQ(prompt_of(R"("instructions":"S")"), "<system>S<user>Hi<a>");
  EXPECT_EQ(prompt_of(R"("input":[
      {"role":"user","content":[{"type":"input_text","text":"Q"}]},
      {"type":"reasoning","id":"rs_1","summary":[],
       "content":[{"type":"reasoning_text","text":"Hm"}]},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"So"}]},
      {"type":"function_call","call_id":"c1","name":"add","arguments":"{\"a\": 7}"},
      {"type":"function_call_output","call_id":"c1","output":"8"}],)" +
                      std::string(kTool)),
            "<user>Q<assistant>So[add 7][Hm]<tool>8[c1](add)<a>");
}

TEST_F(Responses, AFormatIsFollowed) {
  Json answer = json_of(ask(
      R"("reasoning":{"effort":"none"},"text":{"format":{"type":"json_schema","name":"n",
      "strict":true,"schema":{"enum":["x","y"]}}})"));
  Json text = answer["output"][0]["content"][0]["text"];
  EXPECT_TRUE(text == "\"x\"" || text == "\"y\"") << text;
}

TEST_F(Responses, ALaterRequestGoesOnFromAStoredOne) {
  Json first = json_of(run(R"("temperature":0,"input":"One","instructions":"Be")"));
  std::string id = first["id"];
  std::string said = first["output"][0]["content"][0]["text"];
  // Instructions are not carried over.
  EXPECT_EQ(prompt_of(R"("input":"Two","previous_response_id":")" + id + "\""),
            "<user>One<assistant>" + said + "<user>Two<a>");
  auto stored = store_->find(id, "");
  ASSERT_TRUE(stored);
  EXPECT_EQ(Json::parse(stored->response), first);
  EXPECT_EQ(Json::parse(stored->input)[0]["content"][0]["text"], "One");
  // Streams are kept too, and what asks not to be is not.
  std::string streamed = run(R"("stream":true)");
  EXPECT_TRUE(store_->find(typed_events_of(streamed)[0]["response"]["id"].get<std::string>(), ""));
  Json forgotten = json_of(run(R"("store":false)"));
  EXPECT_FALSE(store_->find(forgotten["id"].get<std::string>(), ""));
  EXPECT_TRUE(run(R"("previous_response_id":"resp_x")")
                  .starts_with("error previous_response_id: previous_response_id: there is no"));
}

// Codex sends several with every request.
TEST_F(Responses, HostedToolsAreLeftOut) {
  std::string hosted = R"({"type":"web_search","external_web_access":true},
      {"type":"image_generation"},{"type":"namespace","name":"n","tools":[]},
      {"type":"local_shell"},{"type":"tool_search"})";
  std::string tools = kTool;
  tools.insert(tools.find('[') + 1, hosted + ",");
  EXPECT_EQ(prompt_of(tools), prompt_of(kTool));
  Json answer = json_of(run(tools));
  ASSERT_EQ(answer["warnings"].size(), 5U) << answer;
  EXPECT_EQ(answer["warnings"][0],
            "tools[0]: web_search is not offered to the model, since this server cannot run it");
  EXPECT_EQ(
      answer["warnings"][3],
      "tools[3]: local_shell is not offered to the model, since only OpenAI's models know its "
      "input; declare it as a function");
  EXPECT_EQ(prompt_of("\"tools\":[" + hosted + "]"), prompt_of(R"("stream":false)"));
  for (const char* choice :
       {"\"required\"", R"({"type":"web_search"})",
        R"({"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"}]})"}) {
    std::string demanded = ask("\"tools\":[" + hosted + R"(],"tool_choice":)" + choice);
    EXPECT_TRUE(demanded.starts_with("error tool_choice: ")) << demanded;
  }
  std::string input = R"("input":[{"type":"web_search_call","id":"ws_1","status":"completed",
                "action":{"type":"search","query":"q"}},{"role":"user","content":"Hi"}])";
  EXPECT_EQ(prompt_of(input), prompt_of(R"("input":"Hi")"));
  EXPECT_EQ(json_of(run(input))["warnings"],
            Json({"input[0]: an item of type \"web_search_call\" is not shown to the model"}));
  for (const char* type : {"web_search_preview_2025_03_11", "computer_use_preview"}) {
    EXPECT_TRUE(json_of(run(fmt::format(R"("tools":[{{"type":"{}"}}])", type)))["warnings"][0]
                    .get<std::string>()
                    .contains(type));
  }
  EXPECT_TRUE(ask(R"("tools":[{"type":"shellfish"}])").starts_with("error tools: "));
}

TEST_F(Responses, HintsWithoutEffectAreAccepted) {
  std::string plain = prompt_of(R"("stream":false)");
  for (const char* hint :
       {R"("text":{"verbosity":"low"})", R"("truncation":"auto")", R"("service_tier":"flex")",
        R"("include":["reasoning.encrypted_content","web_search_call.action.sources"])"}) {
    EXPECT_EQ(prompt_of(hint), plain) << hint;
  }
  EXPECT_EQ(json_of(run(R"("truncation":"auto")"))["truncation"], "disabled");
}

TEST_F(Responses, MistakesAreNamed) {
  auto refused = [&](const std::string& fields, const std::string& beginning) {
    std::string answer = ask(fields);
    EXPECT_TRUE(answer.starts_with("error " + beginning)) << answer;
  };
  refused(R"("input":null)", "input: input is missing");
  refused(R"("input":[])", "input: input has no items");
  refused(R"("input":[{"role":"user","content":[{"type":"input_image"}]}])",
          "input: input[0].content[0]: a part of type \"input_image\"");
  refused(R"("input":[{"type":"item_reference","id":"msg_1"}])",
          "input: input[0]: an item of type \"item_reference\"");
  refused(R"("tools":[{"type":"telepathy"}])", "tools: tools[0]: a tool of type \"telepathy\"");
  refused(R"("background":true)", "background: ");
  refused(R"("truncation":"middle")", "truncation: ");
  refused(R"("text":{"verbosity":"loud"})", "text: ");
  refused(R"("include":["message.output_text.logprobs"])", "include: ");
  refused(R"("text":{"format":{"type":"xml"}})", "text: ");
  refused(R"("max_output_tokens":0)", "max_output_tokens: ");
}

StoredResponse stored(const std::string& id, size_t bytes = 10, const std::string& owner = "") {
  return {
      .id = id, .owner = owner, .response = std::string(bytes, 'x'), .input = {}, .messages = {}};
}

TEST(ResponseStore, KeepsSoManySoManyBytesAndSoLong) {
  using std::chrono::seconds;
  ResponseStore::Clock::time_point now{};
  ResponseStore store({.count_max = 2, .bytes_max = 100, .age_max = seconds(10)});
  store.put(stored("a"), now);
  store.put(stored("b"), now + seconds(5));
  EXPECT_TRUE(store.find("a", "", now + seconds(9)));
  EXPECT_FALSE(store.find("a", "", now + seconds(10)));
  store.put(stored("c"), now + seconds(11));
  store.put(stored("d"), now + seconds(11));
  EXPECT_FALSE(store.find("b", "", now + seconds(12)));
  store.put(stored("e", 95), now + seconds(12));
  EXPECT_FALSE(store.find("d", "", now + seconds(12)));
  EXPECT_TRUE(store.find("e", "", now + seconds(12)));
  store.put(stored("f", 200), now + seconds(12));
  EXPECT_FALSE(store.find("f", "", now + seconds(12)));
  EXPECT_TRUE(store.erase("e", ""));
  EXPECT_FALSE(store.erase("e", ""));
}

TEST(ResponseStore, TellsOwnersApart) {
  ResponseStore store({.count_max = 2, .bytes_max = 100, .age_max = std::chrono::hours(1)});
  store.put(stored("a", 10, "key"));
  EXPECT_FALSE(store.find("a", "other"));
  EXPECT_FALSE(store.erase("a", "other"));
  EXPECT_TRUE(store.find("a", "key"));
}

}  // namespace
}  // namespace banyan::responses_test
