// Chats with tools and reasoning, from the body to the bytes. The model has random weights: what
// its answers have in common is what the grammar forces.
#include <gtest/gtest.h>

#include "server/fields/tools.h"
#include "server/openai/endpoints.h"
#include "support/api.h"

namespace banyan::chat_tools_test {
namespace {

using test::ask;
using test::ask_json;
using test::events_of;

// Shows hermes' calls and qwen3's reasoning, of which `think` decides.
constexpr const char* kTemplate =
    "{# <tool_call></tool_call> #}{{ messages[0].content }}{{ tools | length if tools else '' }}"
    "{% if think == 'open' %}<think>{% elif think != 'mark' %}<think></think>{% endif %}";
constexpr const char* kTools =
    R"("tools":[{"type":"function","function":{"name":"add","strict":true,"parameters":
    {"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":99},
    "b":{"enum":["x","y"]}},"required":["a","b"],"additionalProperties":false}}},
    {"type":"function","function":{"name":"now"}}])";

class ChatTools : public testing::Test {
 protected:
  std::string chat(const std::string& fields) {
    std::string length = fields.find("max_tokens") == fields.npos ? R"("max_tokens":300,)" : "";
    return ask(*llm_, plan_chat,
               R"({"messages":[{"role":"user","content":"Hi"}],)" + length + fields + "}");
  }
  Json choice(const std::string& fields) {
    std::string answer = chat(fields);
    Json json = Json::parse(answer, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << answer;
    return json.is_discarded() ? Json() : json["choices"][0];
  }
  void refused(const std::string& fields, const std::string& beginning) {
    std::string answer = chat(fields);
    EXPECT_EQ(answer.substr(0, beginning.size() + 6), "error " + beginning) << answer;
  }

  std::unique_ptr<Llm> llm_ =
      test::tiny_llm(kTemplate, {.ends = true, .vocabulary = 800, .context = 512});
};

void expect_add(const Json& call) {
  EXPECT_EQ(call["type"], "function");
  EXPECT_TRUE(call["id"].get<std::string>().starts_with("call_0123_")) << call["id"];
  EXPECT_EQ(call["function"]["name"], "add");
  Json arguments = Json::parse(call["function"]["arguments"].get<std::string>(), nullptr, false);
  ASSERT_TRUE(arguments.is_object()) << call;
  EXPECT_TRUE(arguments["a"].is_number_integer());
  EXPECT_TRUE(arguments["b"] == "x" || arguments["b"] == "y");
  EXPECT_EQ(arguments.size(), 2u);
}

constexpr const char* kAdd =
    R"(,"tool_choice":{"type":"function","function":{"name":"add"}},"seed":)";

TEST_F(ChatTools, ANamedToolIsCalledWithValidArguments) {
  for (int seed = 0; seed < 6; ++seed) {
    Json answer = choice(kTools + std::string(kAdd) + std::to_string(seed));
    ASSERT_EQ(answer["finish_reason"], "tool_calls") << answer;
    const Json& message = answer["message"];
    EXPECT_TRUE(message["content"].is_null());
    ASSERT_EQ(message["tool_calls"].size(), 1u);
    expect_add(message["tool_calls"][0]);
  }
}

TEST_F(ChatTools, AStreamedCallHasItsNameFirst) {
  std::string fields = kTools + std::string(kAdd) + "3";
  Json whole = choice(fields);
  std::string arguments;
  size_t pieces = 0;
  auto events = events_of(chat(fields + R"(,"stream":true)"));
  for (const Json& event : events) {
    const Json& delta = event["choices"][0]["delta"];
    EXPECT_TRUE(!delta.contains("content") || delta["content"].is_null()) << delta;
    if (!delta.contains("tool_calls")) continue;
    const Json& call = delta["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    EXPECT_EQ(call.contains("id"), pieces == 0);
    EXPECT_EQ(call["function"].contains("name"), pieces == 0);
    EXPECT_EQ(call["function"]["arguments"] == "", pieces == 0);
    ++pieces;
    arguments += call["function"]["arguments"];
  }
  EXPECT_GT(pieces, 2u);
  EXPECT_EQ(Json(arguments), whole["message"]["tool_calls"][0]["function"]["arguments"]);
  EXPECT_EQ(events.back()["choices"][0]["finish_reason"], "tool_calls");
}

TEST_F(ChatTools, RequiredMakesOneCallOrMoreOfAnyTool) {
  for (int seed = 0; seed < 6; ++seed) {
    Json answer =
        choice(kTools + std::string(R"(,"tool_choice":"required","seed":)") + std::to_string(seed));
    const Json& calls = answer["message"]["tool_calls"];
    ASSERT_FALSE(calls.is_null()) << answer;
    for (const Json& call : calls) {
      const Json& name = call["function"]["name"];
      EXPECT_TRUE(name == "add" || name == "now") << call;
    }
  }
  Json one = choice(kTools + std::string(R"(,"tool_choice":"required","parallel_tool_calls":false,
      "seed":2)"));
  EXPECT_EQ(one["message"]["tool_calls"].size(), 1u);
}

TEST_F(ChatTools, NoneAndNoToolsLeaveTheTextAlone) {
  std::string none = kTools + std::string(R"(,"tool_choice":"none","seed":1)");
  EXPECT_TRUE(choice(none)["message"]["tool_calls"].is_null());
  EXPECT_EQ(choice(none)["message"]["content"], choice(R"("seed":1)")["message"]["content"]);
  // The template gets the tools with auto only: it writes how many there are.
  Json body = Json::parse(R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":1,)" +
                          std::string(kTools) + "}");
  size_t with = plan_chat(test::context_for(*llm_), body)->requests[0].prompt.size();
  body["tool_choice"] = "none";
  EXPECT_LT(plan_chat(test::context_for(*llm_), body)->requests[0].prompt.size(), with);
}

TEST_F(ChatTools, AResponseFormatAndToolsGiveOneOrTheOther) {
  std::string fields = kTools + std::string(R"(,"regex":"[0-9]{3}","seed":)");
  bool called = false, answered = false;
  for (int seed = 0; seed < 40 && !(called && answered); ++seed) {
    Json message = choice(fields + std::to_string(seed))["message"];
    if (message["tool_calls"].is_null()) {
      answered = true;
      std::string text = message["content"];
      EXPECT_EQ(text.find_first_not_of("0123456789"), std::string::npos) << text;
    } else {
      called = true;
    }
  }
  EXPECT_TRUE(answered);
}

TEST_F(ChatTools, AGrammarWaitsForTheEndOfReasoning) {
  auto answer = [&](const char* think, const std::string& more) {
    return choice(std::string(R"("regex":"[0-9]{3}","chat_template_kwargs":{"think":")") + think +
                  R"("},)" + more);
  };
  Json closed = answer("closed", R"("seed":1)")["message"];
  EXPECT_EQ(closed["content"].get<std::string>().size(), 3u);
  EXPECT_TRUE(closed["reasoning"].is_null());
  ASSERT_TRUE(closed.contains("reasoning_content"));
  // Inside: free text until the mark, so that nothing forces an end.
  Json open = choice(R"("regex":"[0-9]{3}","chat_template_kwargs":{"think":"open"},"seed":1,
      "max_tokens":20)");
  EXPECT_EQ(open["finish_reason"], "length");
  EXPECT_TRUE(open["message"]["content"].is_null()) << open;
  EXPECT_EQ(open["message"]["reasoning"], open["message"]["reasoning_content"]);
  EXPECT_FALSE(open["message"]["reasoning"].get<std::string>().empty());
  Json together = choice(R"("chat_template_kwargs":{"think":"open"},"seed":1,"max_tokens":20,
      "separate_reasoning":false)");
  EXPECT_TRUE(together["message"]["reasoning"].is_null());
  EXPECT_FALSE(together["message"]["content"].get<std::string>().empty());
}

TEST_F(ChatTools, ReasoningIsStreamedUnderBothNamesOrInOnePiece) {
  std::string fields =
      R"("chat_template_kwargs":{"think":"open"},"seed":4,"max_tokens":20,"stream":true)";
  auto reasoning = [&](const std::string& more, size_t& pieces) {
    std::string text;
    for (const Json& event : events_of(chat(fields + more))) {
      const Json& delta = event["choices"][0]["delta"];
      if (!delta.contains("reasoning")) continue;
      EXPECT_EQ(delta["reasoning"], delta["reasoning_content"]);
      text += delta["reasoning"];
      ++pieces;
    }
    return text;
  };
  size_t many = 0, one = 0;
  std::string streamed = reasoning("", many);
  EXPECT_EQ(reasoning(R"(,"stream_reasoning":false)", one), streamed);
  EXPECT_GT(many, 1u);
  EXPECT_EQ(one, 1u);
}

TEST_F(ChatTools, ReasoningMayBeLeftOut) {
  std::string fields = R"("chat_template_kwargs":{"think":"open"},"seed":4,"max_tokens":20,
      "include_reasoning":false)";
  for (const char* more : {"", R"(,"separate_reasoning":false)"}) {
    Json message = choice(fields + more)["message"];
    EXPECT_TRUE(message["reasoning"].is_null()) << message;
    EXPECT_TRUE(message["content"] == "") << message;
    std::string stream = chat(fields + more + R"(,"stream":true)");
    EXPECT_FALSE(stream.contains("reasoning\":\"")) << stream;
  }
  // Log-probabilities and token ids leave its tokens out, too.
  const std::string tokens = R"(,"logprobs":true,"return_token_ids":true)";
  Json answer = choice(fields + tokens);
  EXPECT_TRUE(answer["logprobs"]["content"].empty()) << answer;
  EXPECT_TRUE(answer["token_ids"].empty()) << answer;
  for (const Json& event : events_of(chat(fields + tokens + R"(,"stream":true)"))) {
    for (const Json& each : event["choices"]) {
      EXPECT_TRUE(each["logprobs"].is_null()) << event;
      EXPECT_TRUE(!each.contains("token_ids") || each["token_ids"].empty()) << event;
    }
  }
}

TEST_F(ChatTools, UsageCountsTheTokensOfReasoning) {
  auto usage = [&](const std::string& think, const std::string& more) {
    std::string answer = chat(R"("seed":4,"max_tokens":20,"chat_template_kwargs":{"think":")" +
                              think + R"("})" + more);
    Json last = answer.starts_with("data: ") ? events_of(answer).back() : Json::parse(answer);
    EXPECT_EQ(last["usage"]["reasoning_tokens"],
              last["usage"]["completion_tokens_details"]["reasoning_tokens"]);
    return last["usage"];
  };
  const std::string stream = R"(,"stream":true,"stream_options":{"include_usage":true})";
  for (const std::string& more : {std::string(), stream}) {
    EXPECT_EQ(usage("open", more)["reasoning_tokens"], 20);
    EXPECT_EQ(usage("open", R"(,"n":2)" + more)["reasoning_tokens"], 40);
    EXPECT_EQ(usage("open", R"(,"separate_reasoning":false)" + more)["reasoning_tokens"], 20);
    EXPECT_EQ(usage("closed", more)["reasoning_tokens"], 0);
  }
  // What the model wrote decides where neither template nor grammar does.
  auto counted = [&](const std::vector<std::string>& pieces) {
    Json body = Json::parse(R"({"messages":[{"role":"user","content":"Hi"}],
        "chat_template_kwargs":{"think":"mark"}})");
    GenerationPlan plan = plan_chat(test::context_for(*llm_), body).value();
    std::string none;
    for (const std::string& piece : pieces) {
      plan.answer->take(plan.choices[0], TokenEvent{}, {.text = piece, .counted = true}, none);
    }
    return Json::parse(plan.answer->whole(plan.choices))["usage"]["reasoning_tokens"];
  };
  EXPECT_EQ(counted({"<th", "ink>", "Hm.", "", "</think>", "Yes", "!"}), 5);
  EXPECT_EQ(counted({"<th", "in>", "Yes"}), 0);
}

TEST_F(ChatTools, OnlyAllowedToolsAreCalled) {
  std::string fields = kTools + std::string(R"(,"tool_choice":{"type":"allowed_tools",
      "allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"now"}}]}},
      "seed":)");
  for (int seed = 0; seed < 3; ++seed) {
    for (const Json& call : choice(fields + std::to_string(seed))["message"]["tool_calls"]) {
      EXPECT_EQ(call["function"]["name"], "now");
    }
  }
  refused(kTools + std::string(R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":
      {"mode":"auto","tools":[{"type":"function","function":{"name":"never"}}]}})"),
          "tool_choice: tool_choice names");
  refused(kTools + std::string(R"(,"tool_choice":{"type":"allowed_tools"})"), "tool_choice: ");
}

TEST_F(ChatTools, AToolWithoutParametersTakesNoArguments) {
  Json answer = choice(R"("tools":[{"type":"function","function":{"name":"now"}}],"seed":1,
      "tool_choice":{"type":"function","function":{"name":"now"}})");
  std::string arguments = answer["message"]["tool_calls"][0]["function"]["arguments"];
  EXPECT_EQ(Json::parse(arguments), Json::object()) << arguments;
}

TEST_F(ChatTools, FunctionsAreCalledTheOldWay) {
  std::string fields = R"("functions":[{"name":"add","parameters":{"type":"object","properties":
      {"a":{"enum":[1,2]}},"required":["a"],"additionalProperties":false}}],
      "function_call":{"name":"add"},"seed":1)";
  Json answer = choice(fields);
  EXPECT_EQ(answer["finish_reason"], "function_call") << answer;
  EXPECT_EQ(answer["message"]["function_call"]["name"], "add");
  EXPECT_TRUE(answer["message"]["tool_calls"].is_null());
  std::string name, arguments;
  for (const Json& event : events_of(chat(fields + R"(,"stream":true)"))) {
    Json call = event["choices"][0]["delta"].value("function_call", Json::object());
    name += call.value("name", "");
    arguments += call.value("arguments", "");
  }
  EXPECT_EQ(name, "add");
  EXPECT_EQ(Json(arguments), answer["message"]["function_call"]["arguments"]);
  refused(fields + R"(,"tools":[])", "functions: ");
}

TEST_F(ChatTools, MistakesAreNamed) {
  refused(R"("tools":7)", "tools: ");
  refused(R"("tools":[{"type":"custom"}])", "tools: tools[0] must be");
  refused(R"("tools":[{"type":"function","function":{}}])", "tools: tools[0].function.name");
  refused(R"("tools":[{"type":"function","function":{"name":"a b"}}])", "tools: ");
  refused(R"("tools":[{"type":"function","function":{"name":"a","parameters":7}}])", "tools: ");
  refused(R"("tools":[{"type":"function","function":{"name":"a"}},
                      {"type":"function","function":{"name":"a"}}])",
          "tools: tools[1].function.name");
  refused(R"("tool_choice":"required")", "tool_choice: ");
  refused(R"("tool_choice":"sometimes")", "tool_choice: ");
  refused(kTools + std::string(R"(,"tool_choice":{"type":"function","function":{"name":"b"}})"),
          "tool_choice: tool_choice names");
  refused(R"("tool_choice":"required","tools":[{"type":"function","function":{"name":"a",
      "strict":true,"parameters":{"type":"object","not":{}}}}])",
          "tools: ");
}

TEST_F(ChatTools, AnyModelCanBeMadeToCall) {
  auto plain = test::tiny_llm("{{ messages[0].content }}",
                              {.ends = true, .vocabulary = 800, .context = 512});
  Json answer = ask_json(
      *plain, plan_chat,
      R"({"messages":[{"role":"user","content":"Hi"}],)" + std::string(kTools) + kAdd + "5}");
  ASSERT_EQ(answer["choices"][0]["finish_reason"], "tool_calls") << answer;
  expect_add(answer["choices"][0]["message"]["tool_calls"][0]);
}

}  // namespace
}  // namespace banyan::chat_tools_test
