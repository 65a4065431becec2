// Ollama's API, from the body to the bytes, without HTTP.
#include <gtest/gtest.h>

#include <sstream>

#include "llm/llm_parts.h"
#include "server/error.h"
#include "server/ollama/endpoints.h"
#include "support/api.h"

namespace banyan::ollama_test {
namespace {

using test::ask;
using test::ask_json;

// Shows every part of a conversation, hermes' calls and qwen3's reasoning.
constexpr const char* kTemplate =
    "{# <tool_call></tool_call><think></think> #}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments.a }}]"
    "{% endfor %}{% if m.name %}[{{ m.name }}]{% endif %}{% endfor %}"
    "{% if tools %}({{ tools[0].function.name }}){% endif %}<a>"
    "{% if enable_thinking %}<think>{% elif enable_thinking == false %}<think></think>{% endif %}";
constexpr const char* kTool =
    R"("tools":[{"type":"function","function":{"name":"add","strict":true,"parameters":
    {"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":99}},
    "required":["a"],"additionalProperties":false}}}])";

class Ollama : public testing::Test {
 protected:
  std::string chat(const std::string& fields) {
    return ask(*llm_, plan_ollama_chat,
               R"({"model":"tiny","messages":[{"role":"user","content":"Hi"}],)" + fields + "}");
  }
  std::string complete(const std::string& fields) {
    return ask(*llm_, plan_ollama_generate, R"({"model":"tiny",)" + fields + "}");
  }
  static std::vector<Json> lines_of(const std::string& stream) {
    std::vector<Json> lines;
    std::istringstream text(stream);
    for (std::string line; std::getline(text, line);) {
      lines.push_back(Json::parse(line, nullptr, false));
      EXPECT_FALSE(lines.back().is_discarded()) << line;
    }
    return lines;
  }
  static Json json_of(const std::string& text) {
    Json json = Json::parse(text, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << text;
    return json;
  }
  std::string prompt_of(Planner planner, const std::string& fields) {
    auto plan =
        planner(test::context_for(*llm_), Json::parse(R"({"model":"tiny",)" + fields + "}"));
    if (!plan) return "error " + plan.error().error.message;
    return tokenizer_of(*llm_)->decode(plan->requests[0].prompt).value();
  }

  std::unique_ptr<Llm> llm_ =
      test::tiny_llm(kTemplate, {.ends = true, .vocabulary = 800, .context = 512});
};

constexpr const char* kEight = R"("options":{"num_predict":8,"temperature":0})";

TEST_F(Ollama, AChatHasTheShapeThatClientsRead) {
  Json answer = json_of(chat(std::string(R"("stream":false,)") + kEight));
  EXPECT_EQ(answer["model"], "tiny");
  EXPECT_EQ(answer["message"]["role"], "assistant");
  EXPECT_FALSE(answer["message"]["content"].get<std::string>().empty());
  EXPECT_EQ(answer["done"], true);
  EXPECT_EQ(answer["done_reason"], "length");
  EXPECT_EQ(answer["eval_count"], 8);
  EXPECT_EQ(answer["prompt_eval_count"],
            tokenizer_of(*llm_)->encode("<user>Hi<a>", {.add_special_tokens = false})->size());
  for (const char* name : {"total_duration", "prompt_eval_duration", "eval_duration"}) {
    EXPECT_GT(answer[name].get<int64_t>(), 0) << name;
  }
  EXPECT_TRUE(answer["created_at"].get<std::string>().ends_with("Z"));
}

TEST_F(Ollama, AnswersAreStreamedUnlessARequestSaysOtherwise) {
  Json whole = json_of(chat(std::string(R"("stream":false,)") + kEight));
  std::vector<Json> lines = lines_of(chat(kEight));
  std::string text;
  for (const Json& line : lines) {
    text += line["message"]["content"];
    EXPECT_EQ(line["done"], &line == &lines.back());
  }
  EXPECT_GT(lines.size(), 2u);
  EXPECT_EQ(Json(text), whole["message"]["content"]);
  EXPECT_EQ(lines.back()["eval_count"], 8);

  std::string prompt = R"("prompt":"Hello",)";
  Json one = json_of(complete(prompt + R"("stream":false,)" + kEight));
  text.clear();
  for (const Json& line : lines_of(complete(prompt + kEight))) text += line["response"];
  EXPECT_EQ(Json(text), one["response"]);
}

TEST_F(Ollama, PromptsAreWrittenByTheTemplateUnlessTheyAreRaw) {
  EXPECT_EQ(prompt_of(plan_ollama_generate, R"("prompt":"P","system":"S")"), "<system>S<user>P<a>");
  EXPECT_EQ(prompt_of(plan_ollama_generate, R"("prompt":"P","raw":true)"), "<s>P</s>");
  EXPECT_EQ(prompt_of(plan_ollama_chat, R"("messages":[{"role":"user","content":"Hi"},
      {"role":"assistant","content":"","tool_calls":[{"function":{"name":"add",
      "arguments":{"a":7}}}]},{"role":"tool","content":"8","tool_name":"add"}],)" +
                                            std::string(kTool)),
            "<user>Hi<assistant>[add 7]<tool>8[add](add)<a>");
}

TEST_F(Ollama, OptionsReachTheSampler) {
  auto sampling = [&](const std::string& options) {
    Json body =
        Json::parse(R"({"model":"tiny","prompt":"a","raw":true,"options":{)" + options + "}}");
    return plan_ollama_generate(test::context_for(*llm_), body)->requests[0];
  };
  GenerateRequest request = sampling(R"("temperature":0.5,"top_k":3,"top_p":0.9,"min_p":0.1,
      "repeat_penalty":1.5,"seed":7,"num_predict":5)");
  EXPECT_FLOAT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_k, 3);
  EXPECT_FLOAT_EQ(request.sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(request.sampling.seed, 7u);
  EXPECT_EQ(request.options.max_new_tokens, 5);
  EXPECT_GT(sampling(R"("num_predict":-1)").options.max_new_tokens, 400);
  EXPECT_EQ(sampling(R"("repeat_penalty":1.5,"repeat_last_n":64)").sampling.repeat_last_n, 64);
}

TEST_F(Ollama, AFormatIsFollowed) {
  for (const char* format : {R"({"enum":["x","y"]})", "\"json\""}) {
    std::string fields = R"("stream":false,"think":false,"options":{"num_predict":60},"format":)";
    std::string text = json_of(chat(fields + format))["message"]["content"];
    bool is_schema = *format == '{';
    EXPECT_TRUE(is_schema ? text == "\"x\"" || text == "\"y\"" : text.starts_with("{")) << text;
  }
}

TEST_F(Ollama, CallsComeWholeWithTheirArgumentsAsAnObject) {
  std::string fields = kTool + std::string(R"(,"options":{"num_predict":300,"seed":3},
      "tool_choice":"required","parallel_tool_calls":false)");
  Json call = json_of(chat(R"("stream":false,)" + fields))["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "add");
  EXPECT_TRUE(call["function"]["arguments"]["a"].is_number_integer());
  std::vector<Json> lines = lines_of(chat(fields));
  Json streamed;
  for (const Json& line : lines) {
    if (line["message"].contains("tool_calls")) streamed = line["message"]["tool_calls"][0];
  }
  EXPECT_EQ(streamed, call);
}

TEST_F(Ollama, ThinkingIsToldApart) {
  Json answer = json_of(chat(std::string(R"("stream":false,"think":true,)") + kEight));
  EXPECT_FALSE(answer["message"]["thinking"].get<std::string>().empty()) << answer;
  EXPECT_EQ(answer["message"]["content"], "");
  auto plain = test::tiny_llm("{{ messages[0].content }}");
  std::string refused = ask(*plain, plan_ollama_chat, R"({"model":"tiny","think":true,
      "messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_TRUE(refused.starts_with("error think: ")) << refused;
}

TEST_F(Ollama, WithoutAPromptTheModelIsThere) {
  Json loaded = json_of(ask(*llm_, plan_ollama_generate, R"({"model":"tiny:latest"})"));
  EXPECT_EQ(loaded["done_reason"], "load");
  EXPECT_EQ(loaded["response"], "");
  EXPECT_TRUE(ask(*llm_, plan_ollama_chat, R"({"model":"tiny","keep_alive":0})")
                  .starts_with("error keep_alive: "));
}

TEST_F(Ollama, AModelIsShownWithWhatItCanDo) {
  Json shown = show_ollama_model(test::context_for(*llm_), {{"name", "tiny"}}).value();
  EXPECT_EQ(shown["capabilities"], Json::array({"completion", "tools", "thinking"}));
  EXPECT_EQ(shown["details"]["family"], "llama");
  EXPECT_EQ(shown["model_info"]["llama.context_length"], 512);
  EXPECT_EQ(shown["template"], kTemplate);
}

// Clients send the context that they were set up with, often of another server.
TEST_F(Ollama, TheContextStaysWhereMoreIsWanted) {
  std::string plain = R"("messages":[{"role":"user","content":"Hi"}])";
  EXPECT_EQ(prompt_of(plan_ollama_chat, plain + R"(,"options":{"num_ctx":131072.0})"),
            prompt_of(plan_ollama_chat, plain));
}

TEST_F(Ollama, MistakesAreNamed) {
  auto refused = [&](const std::string& answer, const std::string& beginning) {
    EXPECT_TRUE(answer.starts_with("error " + beginning)) << answer;
  };
  refused(ask(*llm_, plan_ollama_chat, R"({"messages":[]})"), "model: model is missing");
  refused(chat(R"("options":{"temperature":-1})"), "options.temperature: ");
  refused(chat(R"("options":{"repeat_penalty":1.1,"repeat_last_n":-2})"),
          "options.repeat_last_n: ");
  refused(chat(R"("options":{"num_ctx":0})"), "options.num_ctx: ");
  refused(chat(R"("format":"xml")"), "format: ");
  refused(ask(*llm_, plan_ollama_chat, R"({"model":"tiny","messages":[{"role":"user",
      "content":"a","images":["aGk="]}]})"),
          "messages: messages[0].images is not supported");
  refused(complete(R"("prompt":"a","suffix":"b")"), "suffix: ");
  refused(complete(R"("prompt":"a","template":"{{ .Prompt }}")"), "template: ");
  RequestContext context = test::context_for(*llm_);
  context.served_names = {"tiny", "small"};
  EXPECT_TRUE(plan_ollama_chat(context, {{"model", "small:latest"}}));
  EXPECT_EQ(plan_ollama_chat(context, {{"model", "llama3"}}).error().error.code,
            ErrorCode::kNotFound);
  EXPECT_TRUE(plan_ollama_chat(context, {{"model", "tiny:latest"}}));
  EXPECT_EQ(error_json(404, "no", {}, {}, "/api/show"), (Json{{"error", "no"}}));
}

}  // namespace
}  // namespace banyan::ollama_test
