// The answers of OpenAI's endpoints, from the body to the bytes, without HTTP.
#include "server/openai/endpoints.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "llm/llm_parts.h"
#include "server/sglang/endpoints.h"
#include "support/api.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::openai_test {
namespace {

using test::ask;
using test::ask_json;
using test::events_of;

constexpr const char* kTemplate =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>";

class OpenAi : public testing::Test {
 protected:
  std::string complete(const std::string& fields) {
    return ask(*llm_, plan_completion, "{" + fields + "}");
  }
  Json complete_json(const std::string& fields) {
    return ask_json(*llm_, plan_completion, "{" + fields + "}");
  }
  Json chat_json(const std::string& fields) {
    return ask_json(*llm_, plan_chat,
                    R"({"messages":[{"role":"user","content":"Hi"}],)" + fields + "}");
  }
  std::string chat(const std::string& fields) {
    return ask(*llm_, plan_chat, R"({"messages":[{"role":"user","content":"Hi"}],)" + fields + "}");
  }

  std::unique_ptr<Llm> llm_ = test::tiny_llm(kTemplate);
};

std::string text_of(const Json& answer, size_t choice = 0) {
  return answer["choices"][choice]["text"];
}

TEST_F(OpenAi, CompletionHasTheShapeThatClientsRead) {
  Json answer = complete_json(R"("prompt":"Hello","max_tokens":5,"temperature":0)");
  EXPECT_EQ(answer["id"], "cmpl-0123");
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["created"], 1700000000);
  EXPECT_EQ(answer["model"], "tiny");
  const Json& choice = answer["choices"].at(0);
  EXPECT_EQ(choice["index"], 0);
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_TRUE(choice["matched_stop"].is_null());
  int64_t prompt = answer["usage"]["prompt_tokens"];
  EXPECT_EQ(answer["usage"]["completion_tokens"], 5);
  EXPECT_EQ(answer["usage"]["total_tokens"], prompt + 5);
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST_F(OpenAi, MaxTokensIsSixteenUnlessSaidAndIsCutToTheContext) {
  EXPECT_EQ(complete_json(R"("prompt":"Hello")")["usage"]["completion_tokens"], 16);
  std::string long_prompt;
  for (int i = 0; i < 120; ++i) long_prompt += i > 0 ? ",5" : "5";
  EXPECT_EQ(complete_json(R"("prompt":[)" + long_prompt + "]")["usage"]["completion_tokens"], 8);
  Json cut = complete_json(R"("max_tokens":1000000,"prompt":[)" + long_prompt + "]");
  EXPECT_EQ(cut["usage"]["completion_tokens"], 8);
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "length");
  EXPECT_NE(complete(R"("prompt":[)" + long_prompt + ",5,5,5,5,5,5,5,5]").find("error prompt: "),
            std::string::npos);
}

TEST_F(OpenAi, AnAdapterThatIsNotLoadedIsRefusedByName) {
  std::string fields = R"("lora_path":"poet","max_tokens":2)";
  std::string said = "there is no adapter \"poet\"; none is loaded";
  EXPECT_TRUE(complete(R"("prompt":"Hello",)" + fields).contains(said));
  EXPECT_TRUE(chat(fields).contains(said));
  EXPECT_TRUE(ask(*llm_, plan_generate, R"({"text":"Hello","lora_path":"poet"})").contains(said));
}

TEST_F(OpenAi, ARouterRefusesAdapters) {
  RequestContext context = test::context_for(*llm_);
  context.routed = true;
  auto plan = plan_completion(context, {{"prompt", "Hello"}, {"lora_path", "poet"}});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().error.message,
            "lora_path is not supported by a router yet; ask one of its workers");
}

TEST_F(OpenAi, AModelsNameMayStandForAnAdapter) {
  RequestContext context = test::context_for(*llm_);
  context.model_name = "tiny";
  context.adapters = {"a", "b:c", "tiny"};
  context.takes_adapters = true;
  auto adapter = [&](const char* name) { return context.adapter_of(name).value_or("none"); };
  EXPECT_EQ(adapter("a"), "a");
  EXPECT_EQ(adapter("b:c"), "b:c");
  EXPECT_EQ(adapter("tiny"), "none") << "the model's own name";
  EXPECT_EQ(adapter("tiny:a"), "a");
  EXPECT_EQ(adapter("tiny:b:c"), "b:c");
  EXPECT_EQ(adapter("tiny:x"), "x") << "which the engine refuses";
  EXPECT_EQ(adapter("any:a"), "a");
  EXPECT_EQ(adapter("any:x"), "none");
  EXPECT_EQ(adapter("a:latest"), "a");
  EXPECT_EQ(adapter("tiny:latest"), "none");
  context.served_names = {"tiny", "small"};
  EXPECT_EQ(adapter("small:a"), "a");
  EXPECT_EQ(adapter("any:a"), "none");
  EXPECT_TRUE(context.may_be_called("a"));
  EXPECT_FALSE(context.may_be_called("x"));
  context.adapters.clear();
  EXPECT_EQ(adapter("tiny:a"), "a") << "which the engine refuses";
  context.takes_adapters = false;
  EXPECT_EQ(adapter("tiny:a"), "none");
}

TEST_F(OpenAi, AModelOfAnotherNameIsRefusedWhereTheModelHasBeenGivenOne) {
  auto plan = [&](const char* model, bool only) {
    RequestContext context = test::context_for(*llm_);
    if (only) context.served_names = {"tiny", "small"};
    return plan_completion(context, {{"model", model}, {"prompt", "Hello"}});
  };
  EXPECT_TRUE(plan("gpt-5", false));
  EXPECT_TRUE(plan("tiny", true));
  EXPECT_TRUE(plan("small", true));
  EXPECT_TRUE(plan("", true));
  auto refused = plan("gpt-5", true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "model_not_found");
  EXPECT_EQ(refused.error().param, "model");
  EXPECT_EQ(refused.error().error.code, ErrorCode::kNotFound);
}

TEST_F(OpenAi, FieldsThatAskForNothingAreAccepted) {
  for (const char* fields : {R"("modalities":["text"])",
                             R"("store":false)",
                             R"("service_tier":"auto")",
                             R"("parallel_tool_calls":true)",
                             R"("prediction":null)",
                             R"("functions":[])",
                             R"("function_call":"none")",
                             R"("audio":null)",
                             R"("verbosity":"medium")",
                             R"("logit_bias":{})",
                             R"("response_format":{"type":"text"})",
                             R"("mirostat":0)",
                             R"("top_n_sigma":-1)",
                             R"("repeat_penalty":1.0)",
                             R"("dynatemp_range":0.0)",
                             R"("samplers":[])",
                             R"("include_reasoning":true)",
                             R"("chat_template":"")",
                             R"("store":true)",
                             R"("service_tier":"flex")",
                             R"("service_tier":"priority")",
                             R"("verbosity":"low")",
                             R"("include_reasoning":false)",
                             R"("web_search_options":{})"}) {
    Json answer = chat_json(std::string(R"("max_tokens":2,)") + fields);
    EXPECT_EQ(answer["usage"]["completion_tokens"], 2) << fields << answer.dump();
  }
}

TEST_F(OpenAi, LlamaCppsNamesMeanTheSame) {
  EXPECT_EQ(chat_json(R"("n_predict":3,"ignore_eos":true)")["usage"]["completion_tokens"], 3);
  EXPECT_EQ(chat_json(R"("n_predict":3,"max_tokens":3)")["usage"]["completion_tokens"], 3);
  std::string differ = chat(R"("n_predict":3,"max_tokens":4)");
  EXPECT_TRUE(differ.starts_with("error n_predict: n_predict and max_tokens are both given"))
      << differ;
  auto penalty = [&](const std::string& fields) {
    Json body = Json::parse(R"({"prompt":"a",)" + fields + "}");
    auto plan = plan_completion(test::context_for(*llm_), body);
    EXPECT_TRUE(plan) << fields;
    return plan ? plan->requests[0].sampling.repetition_penalty : 0;
  };
  EXPECT_FLOAT_EQ(penalty(R"("repeat_penalty":1.5)"), 1.5f);
  EXPECT_FLOAT_EQ(penalty(R"("repeat_penalty":1.5,"samplers":["top_k"])"), 1);
  EXPECT_FLOAT_EQ(penalty(R"("repeat_penalty":1.5,"samplers":["penalties"])"), 1.5f);
  EXPECT_FLOAT_EQ(penalty(R"("repeat_penalty":1.5,"samplers":[])"), 1.5f);
  auto window = [&](const std::string& fields) {
    Json body = Json::parse(R"({"prompt":"a","repeat_penalty":1.5)" + fields + "}");
    return plan_completion(test::context_for(*llm_), body)->requests[0].sampling.repeat_last_n;
  };
  EXPECT_EQ(window(""), -1);
  EXPECT_EQ(window(R"(,"repeat_last_n":64)"), 64);
  EXPECT_TRUE(chat(R"("repeat_last_n":-2)").starts_with("error repeat_last_n: "));
}

TEST_F(OpenAi, AnEmptyListOfSamplersChangesNothing) {
  std::string greedy = R"("max_tokens":20,"temperature":0,"ignore_eos":true)";
  EXPECT_EQ(chat_json(greedy + R"(,"samplers":[],"seed":1)")["choices"],
            chat_json(greedy)["choices"]);
}

// In completions there is no template that reads hints, no search, and no reasoning to leave out.
TEST_F(OpenAi, CompletionsRefuseWhatIsOnlyForChats) {
  for (const char* fields :
       {R"("verbosity":"low")", R"("web_search_options":{})", R"("include_reasoning":false)"}) {
    std::string answer = complete(std::string(R"("prompt":"a",)") + fields);
    EXPECT_TRUE(answer.starts_with("error ") && answer.contains("not supported")) << answer;
  }
  complete_json(R"("prompt":"a","max_tokens":1,"verbosity":"medium","include_reasoning":true)");
}

TEST_F(OpenAi, AHintReachesTheTemplateAndASearchIsNotOffered) {
  std::string hint = chat(
      R"("max_tokens":1,"verbosity":"low","chat_template":"{{ raise_exception(verbosity) }}")");
  EXPECT_TRUE(hint.contains("low")) << hint;
  Json answer = chat_json(R"("max_tokens":1,"web_search_options":{})");
  EXPECT_EQ(answer["warnings"],
            Json({"web_search_options: web search is not offered to the model, since this server "
                  "cannot run it"}));
  std::string wrong = chat(R"("web_search_options":"yes")");
  EXPECT_EQ(wrong, "error web_search_options: web_search_options is \"yes\", not an object");
}

TEST_F(OpenAi, AMinimumAboveTheMaximumIsRefusedByTheNamesThatWereGiven) {
  std::string answer = chat(R"("min_tokens":50,"max_tokens":30)");
  EXPECT_EQ(answer, "error min_tokens: min_tokens is 50, more than max_tokens = 30");
}

TEST_F(OpenAi, APredictionSavesStepsAndChangesNoToken) {
  std::string fields = R"("max_tokens":40,"temperature":0,"ignore_eos":true)";
  Json plain = chat_json(fields);
  std::string text = plain["choices"][0]["message"]["content"];
  Json none = plain["usage"]["completion_tokens_details"];
  EXPECT_EQ(none["accepted_prediction_tokens"], 0);
  EXPECT_EQ(none["rejected_prediction_tokens"], 0);
  for (const Json& content : {Json(text), Json{{{"type", "text"}, {"text", text}}}}) {
    Json prediction = {{"type", "content"}, {"content", content}};
    Json answer = chat_json(fields + R"(,"prediction":)" + prediction.dump());
    EXPECT_EQ(answer["choices"][0]["message"]["content"], text);
    EXPECT_EQ(answer["usage"]["completion_tokens"], 40);
    EXPECT_GT(answer["usage"]["completion_tokens_details"]["accepted_prediction_tokens"], 5);
  }
  for (const char* wrong : {R"({"type":"content"})", R"({"type":"image","content":"a"})",
                            R"({"type":"content","content":[{"type":"image_url"}]})", "[]"}) {
    std::string answer = chat(fields + R"(,"prediction":)" + wrong);
    EXPECT_TRUE(answer.starts_with("error prediction: ")) << wrong << answer;
  }
}

TEST_F(OpenAi, FieldsThatAskForWhatIsNotThereAreRefusedByName) {
  using Case = std::pair<const char*, const char*>;
  for (auto [name, value] : {Case{"modalities", R"(["text","audio"])"},
                             {"store", "7"},
                             {"service_tier", R"("free")"},
                             {"verbosity", R"("loud")"},
                             {"function_call", R"({"name":"f"})"},
                             {"mirostat", "2"},
                             {"top_n_sigma", "1.5"},
                             {"dynatemp_range", "0.5"}}) {
    std::string answer = chat(fmt::format(R"("max_tokens":2,"{}":{})", name, value));
    EXPECT_TRUE(answer.starts_with(fmt::format("error {}: {} ", name, name))) << answer;
    EXPECT_TRUE(answer.contains("not supported")) << answer;
  }
}

TEST_F(OpenAi, ATemplateOfTheRequestTakesTheModelsPlace) {
  auto prompt_tokens = [&](const std::string& fields) -> int64_t {
    return chat_json(R"("max_tokens":1,)" + fields)["usage"]["prompt_tokens"];
  };
  auto tokens = [&](const char* text) {
    return std::ssize(*tokenizer_of(*llm_)->encode(text, {.add_special_tokens = false}));
  };
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(
        prompt_tokens(
            R"("chat_template":"Say {{ word }}: {% for m in messages %}{{ m.content }}{% endfor %}",
                  "chat_template_kwargs":{"word":"it"})"),
        tokens("Say it: Hi"));
  }
  EXPECT_EQ(prompt_tokens(R"("n":1)"), tokens("<user>Hi<assistant>"));
  EXPECT_TRUE(
      chat(R"("chat_template":"{% for %}")").starts_with("error messages: chat_template: "));
  std::string endless =
      "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}";
  EXPECT_TRUE(chat(R"("chat_template":")" + endless + "\"").starts_with("error messages: "));
  std::string large(300 << 10, 'x');
  EXPECT_TRUE(chat(R"("chat_template":")" + large + "\"").starts_with("error chat_template: "));
  std::unique_ptr<Llm> bare = test::tiny_llm({});
  std::string body = R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":1,
      "chat_template":"{{ messages[0].content }}"})";
  EXPECT_EQ(ask_json(*bare, plan_chat, body)["usage"]["completion_tokens"], 1);
}

TEST_F(OpenAi, AnAnswerEitherGoesOnOrBegins) {
  std::string messages = R"({"messages":[{"role":"user","content":"Hi"},
      {"role":"assistant","content":"Hi"}],"max_tokens":1,"continue_final_message":true)";
  std::string both = ask(*llm_, plan_chat, messages + R"(,"add_generation_prompt":true})");
  EXPECT_TRUE(both.starts_with("error continue_final_message: ")) << both;
  std::string goes_on = ask(*llm_, plan_chat, messages + R"(,"add_generation_prompt":false})");
  EXPECT_FALSE(goes_on.starts_with("error")) << goes_on;
  EXPECT_FALSE(ask(*llm_, plan_chat, messages + "}").starts_with("error"));
}

TEST_F(OpenAi, APromptOfNoTokensIsRefused) {
  RequestContext context = test::context_for(*llm_);
  PromptRequest prompt{.text = {.text = "", .add_special_tokens = false}};
  auto tokens = to_engine(context.llm, prompt, nullptr);
  ASSERT_FALSE(tokens);
  EXPECT_EQ(tokens.error().param, "prompt");
}

TEST_F(OpenAi, PromptsAndSamplesAreChoicesInOrder) {
  Json one = complete_json(R"("prompt":[5,6,7],"max_tokens":4,"temperature":0)");
  Json many =
      complete_json(R"("prompt":[[5,6,7],[8,9]],"max_tokens":4,"n":2,"temperature":1,"seed":3)");
  ASSERT_EQ(many["choices"].size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(many["choices"][i]["index"], i);
  EXPECT_NE(text_of(many, 0), text_of(many, 1));
  EXPECT_EQ(many["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(many["usage"]["completion_tokens"], 16);
  Json greedy = complete_json(R"("prompt":[[8,9],[5,6,7]],"max_tokens":4,"temperature":0)");
  EXPECT_EQ(text_of(greedy, 1), text_of(one));
  EXPECT_EQ(complete_json(R"("prompt":["a","b"],"max_tokens":1)")["choices"].size(), 2u);
}

TEST_F(OpenAi, TheStreamSaysWhatTheWholeAnswerSays) {
  std::string fields = R"("prompt":["Hello","you"],"n":2,"seed":5,"max_tokens":12)";
  Json whole = complete_json(fields);
  auto events =
      events_of(complete(fields + R"(,"stream":true,"stream_options":{"include_usage":true})"));
  std::vector<std::string> texts(4);
  std::vector<int> ends(4);
  for (const Json& event : events) {
    EXPECT_EQ(event["id"], "cmpl-0123");
    if (event["choices"].empty()) continue;
    const Json& choice = event["choices"][0];
    size_t index = choice["index"];
    texts[index] += choice["text"];
    ends[index] += choice["finish_reason"].is_null() ? 0 : 1;
    EXPECT_FALSE(event.contains("usage"));
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(texts[i], text_of(whole, i));
    EXPECT_EQ(ends[i], 1);
  }
  EXPECT_EQ(events.back()["usage"], whole["usage"]);
  EXPECT_TRUE(events.back()["choices"].empty());
}

TEST_F(OpenAi, ContinuousUsageCountsAlong) {
  auto events = events_of(complete(R"("prompt":"Hello","max_tokens":3,"temperature":0,"stream":true,
      "stream_options":{"continuous_usage_stats":true})"));
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 3);
  for (const Json& event : events) EXPECT_TRUE(event.contains("usage"));
}

TEST_F(OpenAi, CachedTokensAreToldInSglangsWayWhenAskedFor) {
  std::string fields = R"("prompt":"a","max_tokens":1,"return_cached_tokens_details":true)";
  EXPECT_EQ(complete_json(fields)["sglext"]["cached_tokens_details"]["device"], 0);
  auto events = events_of(complete(fields + R"(,"stream":true)"));
  EXPECT_EQ(events.back()["sglext"]["cached_tokens_details"]["device"], 0);
}

TEST_F(OpenAi, AStopEndsTextAndUsage) {
  Json plain = complete_json(R"("prompt":"Hello","max_tokens":12,"temperature":0)");
  std::string text = text_of(plain);
  ASSERT_GT(text.size(), 4u);
  // A character from the middle, whole.
  size_t at = text.size() / 2;
  while ((text[at] & 0xc0) == 0x80) --at;
  size_t end = at + 1;
  while (end < text.size() && (text[end] & 0xc0) == 0x80) ++end;
  Json stop = text.substr(at, end - at);
  size_t first = text.find(text.substr(at, end - at));
  Json stopped = complete_json(
      R"("prompt":"Hello","max_tokens":12,"temperature":0,"stop":["zz", )" + stop.dump() + "]");
  EXPECT_EQ(text_of(stopped), text.substr(0, first));
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(stopped["choices"][0]["matched_stop"], stop);
  EXPECT_LT(stopped["usage"]["completion_tokens"], 12);
  Json kept = complete_json(R"("prompt":"Hello","max_tokens":12,"temperature":0,)"
                            R"("include_stop_str_in_output":true,"stop":)" +
                            stop.dump());
  EXPECT_EQ(text_of(kept), text.substr(0, first) + stop.get<std::string>());
}

TEST_F(OpenAi, AStopTokenIsNamed) {
  Json plain = complete_json(R"("prompt":[5,6,7],"max_tokens":3,"temperature":0,"logprobs":0)");
  Json generated = ask_json(*llm_, plan_completion,
                            R"({"prompt":[5,6,7],"max_tokens":3,"temperature":0,"stop_token_ids":[)"
                            R"(0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]})");
  if (generated["choices"][0]["finish_reason"] == "stop") {
    EXPECT_TRUE(generated["choices"][0]["matched_stop"].is_number());
  }
  EXPECT_EQ(plain["choices"][0]["logprobs"]["tokens"].size(), 3u);
}

TEST_F(OpenAi, LogprobsAreParallelLists) {
  Json answer = complete_json(R"("prompt":"Hello","max_tokens":6,"temperature":0,"logprobs":2)");
  const Json& logprobs = answer["choices"][0]["logprobs"];
  for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(logprobs[name].size(), 6u) << name;
  }
  EXPECT_EQ(logprobs["text_offset"][0], 0);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_LE(logprobs["token_logprobs"][i], 0);
    EXPECT_EQ(logprobs["top_logprobs"][i].size(), 2u);
    // Greedy: the token is the likeliest one.
    EXPECT_EQ(logprobs["top_logprobs"][i].begin().key(), logprobs["tokens"][i].get<std::string>());
  }
  EXPECT_TRUE(
      complete_json(
          R"("prompt":"a","max_tokens":1,"logprobs":0)")["choices"][0]["logprobs"]["top_logprobs"]
          .is_null());
}

TEST_F(OpenAi, EchoScoresThePromptEvenWithoutNewTokens) {
  Json answer = complete_json(R"("prompt":"Hello","max_tokens":0,"echo":true,"logprobs":1)");
  EXPECT_EQ(text_of(answer), "Hello");
  const Json& logprobs = answer["choices"][0]["logprobs"];
  auto ids = tokenizer_of(*llm_)->encode("Hello").value();
  ASSERT_EQ(logprobs["tokens"].size(), ids.size());
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
  auto scores = llm_->score(ids).value();
  std::string joined;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) {
      EXPECT_FLOAT_EQ(logprobs["token_logprobs"][i], *scores[i]);
    }
    EXPECT_EQ(logprobs["text_offset"][i], joined.size());
    if (!tokenizer_of(*llm_)->is_special(ids[i])) joined += logprobs["tokens"][i];
  }
  EXPECT_EQ(joined, "Hello");

  auto events = events_of(complete(
      R"("prompt":[5,6],"max_tokens":2,"temperature":0,"echo":true,"logprobs":1,"stream":true)"));
  EXPECT_EQ(events[0]["choices"][0]["logprobs"]["tokens"].size(), 3u);
}

TEST_F(OpenAi, ChatHasTheShapeThatClientsRead) {
  Json answer = chat_json(R"("max_tokens":5,"temperature":0,"n":2,"model":"mine")");
  EXPECT_EQ(answer["id"], "chatcmpl-0123");
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["model"], "mine");
  ASSERT_EQ(answer["choices"].size(), 2u);
  EXPECT_EQ(answer["choices"][1]["message"]["role"], "assistant");
  EXPECT_EQ(answer["choices"][1]["message"]["content"], answer["choices"][0]["message"]["content"]);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  int64_t prompt = std::ssize(
      *tokenizer_of(*llm_)->encode("<user>Hi<assistant>", {.add_special_tokens = false}));
  EXPECT_EQ(answer["usage"]["prompt_tokens"], prompt);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 10);
}

TEST_F(OpenAi, ChatStreamsARoleThenContentThenAnEnd) {
  Json whole = chat_json(R"("max_completion_tokens":8,"temperature":0)");
  auto events = events_of(chat(R"("max_completion_tokens":8,"temperature":0,"stream":true,
                                  "stream_options":{"include_usage":true})"));
  EXPECT_EQ(events[0]["object"], "chat.completion.chunk");
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  std::string text;
  for (size_t i = 1; i + 2 < events.size(); ++i) {
    const Json& choice = events[i]["choices"][0];
    EXPECT_TRUE(choice["finish_reason"].is_null());
    text += choice["delta"]["content"];
  }
  EXPECT_EQ(text, whole["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"], "length");
  EXPECT_TRUE(events[events.size() - 2]["choices"][0]["delta"].empty());
  EXPECT_EQ(events.back()["usage"], whole["usage"]);
}

TEST_F(OpenAi, ChatLogprobsHaveBytes) {
  Json answer = chat_json(R"("max_tokens":4,"temperature":0,"logprobs":true,"top_logprobs":3)");
  const Json& entries = answer["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(entries.size(), 4u);
  for (const Json& entry : entries) {
    EXPECT_LE(entry["logprob"], 0);
    EXPECT_EQ(entry["top_logprobs"].size(), 3u);
    EXPECT_EQ(entry["top_logprobs"][0]["token"], entry["token"]);
    EXPECT_TRUE(entry["bytes"].is_array());
  }
  auto events = events_of(chat(R"("max_tokens":4,"temperature":0,"logprobs":true,"stream":true)"));
  size_t tokens = 0;
  for (const Json& event : events) {
    const Json& logprobs = event["choices"][0]["logprobs"];
    if (!logprobs.is_null()) tokens += logprobs["content"].size();
  }
  EXPECT_EQ(tokens, 4u);
}

TEST_F(OpenAi, UsageTellsOfCachedTokensOnceForEachPrompt) {
  auto llm = test::tiny_llm({}, {.radix_cache = true});
  const char* body = R"({"prompt":[[5,6,7,8],[9,10,11]],"n":2,"max_tokens":2})";
  EXPECT_EQ(ask_json(*llm, plan_completion,
                     R"({"prompt":[5,6,7,8],"max_tokens":2})")["usage"]["prompt_tokens_details"]
                                                              ["cached_tokens"],
            0);
  ask(*llm, plan_completion, body);
  EXPECT_EQ(
      ask_json(*llm, plan_completion, body)["usage"]["prompt_tokens_details"]["cached_tokens"],
      5);  // all but the last of each prompt
}

TEST_F(OpenAi, RefusesByNameAndParam) {
  auto refused = [&](const std::string& fields, const std::string& param) {
    std::string answer = complete(fields);
    EXPECT_EQ(answer.substr(0, param.size() + 7), "error " + param + ":") << answer;
  };
  refused(R"("prompt":7)", "prompt");
  refused(R"("max_tokens":3)", "prompt");
  refused(R"("prompt":[])", "prompt");
  refused(R"("prompt":[[]])", "prompt");
  refused(R"("prompt":[1,"a"])", "prompt");
  refused(R"("prompt":[-1])", "prompt");
  for (const char* field :
       {"temperature", "top_p", "top_k", "min_p", "typical_p", "xtc_probability", "xtc_threshold",
        "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n", "n", "logprobs",
        "max_tokens", "presence_penalty", "frequency_penalty", "repetition_penalty", "min_tokens",
        "best_of"}) {
    for (const char* value :
         {"\"1\"", "-1000", "2147483648", "9223372036854775808", "1e300", "true"}) {
      // These take a large integer: 2^31 new tokens are cut by the context instead.
      if (std::string(value) == "2147483648" && std::string(field).ends_with("tokens")) continue;
      refused("\"prompt\":\"a\",\"" + std::string(field) + "\":" + value, field);
    }
  }
  refused(R"("prompt":"a","stop":7)", "stop");
  refused(R"("prompt":"a","logit_bias":{"":1})", "logit_bias");
  refused(R"("prompt":"a","logit_bias":{"x":101})", "logit_bias");
  refused(R"("prompt":"a","logit_bias":{"5":101})", "logit_bias");
  refused(R"("prompt":"a","logit_bias":[5])", "logit_bias");
  refused(R"("prompt":"a","stream_options":{"include_usage":true})", "stream_options");
  refused(R"("prompt":"a","suffix":"b")", "suffix");
  refused(R"("prompt":"a","n":2,"best_of":1)", "best_of");
  refused(R"("prompt":"a","best_of":2,"stream":true)", "best_of");
  refused(R"("prompt":"a","prompt_logprobs":1,"stream":true)", "prompt_logprobs");
  refused(R"("prompt":"a","allowed_token_ids":[])", "allowed_token_ids");
  refused(R"("prompt":"a","stop_regex":"a*")", "stop_regex");
  refused(R"("prompt":"a","stop_regex":["a","(?=b)c"])", "stop_regex");
  refused(R"("prompt":"a","thinking_token_budget":8)", "thinking_token_budget");
  refused(R"("prompt":"a","rid":["a","b"])", "rid");
  refused(R"("prompt":"a","dry_allowed_length":2147483648)", "dry_allowed_length");
  refused(R"("prompt":"a","dry_penalty_last_n":4294967296)", "dry_penalty_last_n");
  refused(R"("prompt":["a","b","c"],"n":100)", "n");
  std::string many = "\"a\"";
  for (int i = 0; i < 5000; ++i) many += ",\"a\"";
  refused("\"prompt\":[" + many + "]", "prompt");
}

// By every way to ask: the same seed and samplers give the same text.
TEST_F(OpenAi, TakesTheSamplersOfLlamaCpp) {
  const std::string samplers =
      R"("temperature":0.7,"typical_p":0.6,"xtc_probability":0.4,"xtc_threshold":0.1,
         "dry_multiplier":1,"dry_base":4,"dry_allowed_length":1,"dry_penalty_last_n":50,)";
  const std::string breakers = R"("dry_sequence_breakers":["e","\n"],)";
  // Of few tokens, so that they repeat.
  std::string few;
  for (const char* letter : {"a", "b", "c", "e"}) {
    few += fmt::format(R"({}"{}":20)", few.empty() ? "" : ",", *tokenizer_of(*llm_)->find(letter));
  }
  few = R"("logit_bias":{)" + few + "},";
  auto text = [&](std::string fields) {
    fields += few;
    return text_of(complete_json(fields + R"("prompt":"a b a b a","max_tokens":110,"seed":3)"));
  };
  std::string all = text(samplers + breakers);
  EXPECT_NE(all, text(samplers));
  for (const char* less : {R"("typical_p":1,)", R"("xtc_probability":0,)", R"("dry_multiplier":0,)",
                           R"("xtc_threshold":0.5,)", R"("dry_base":1,)",
                           R"("dry_allowed_length":2,)", R"("dry_penalty_last_n":3,)"}) {
    std::string name = std::string(less).substr(0, std::string(less).find(':') + 1);
    std::string changed = samplers + breakers;
    size_t at = changed.find(name);
    changed.replace(at, changed.find(',', at) + 1 - at, less);
    EXPECT_NE(text(changed), all) << less;
  }
  Json native = ask_json(*llm_, plan_generate,
                         R"({"text":"a b a b a","sampling_params":{)" + samplers + breakers + few +
                             R"("max_new_tokens":110,"sampling_seed":3}})");
  EXPECT_EQ(native["text"], all);
  std::string many =
      complete(R"("prompt":"a","dry_sequence_breakers":[")" + std::string(41, 'x') + R"("])");
  EXPECT_TRUE(many.starts_with("error dry_sequence_breakers: ")) << many;
}

TEST_F(OpenAi, NeutralValuesOfWhatIsNotSupportedAreFine) {
  Json answer = complete_json(R"("prompt":"a","max_tokens":1,"suffix":null,"best_of":1,"regex":"",
      "response_format":{"type":"text"},"user":"me","lora_path":null,"unknown":{"deep":[1]},
      "stop":[""],"logit_bias":{},"tool_choice":"none","top_k":-1)");
  EXPECT_EQ(answer["choices"].size(), 1u);
}

TEST_F(OpenAi, TheBestSamplesAreThoseLikeliestByToken) {
  std::string fields = R"("prompt":"Hello","max_tokens":4,"seed":1,"logprobs":0,)";
  auto mean = [](const Json& choice) {
    double sum = 0;
    for (const Json& logprob : choice["logprobs"]["token_logprobs"]) sum += logprob.get<double>();
    return sum / static_cast<double>(choice["logprobs"]["token_logprobs"].size());
  };
  Json all = complete_json(fields + R"("n":5)");
  double best = -1e9;
  for (const Json& choice : all["choices"]) best = std::max(best, mean(choice));
  Json answer = complete_json(fields + R"("n":2,"best_of":5)");
  ASSERT_EQ(answer["choices"].size(), 2u);
  EXPECT_EQ(answer["choices"][1]["index"], 1);
  EXPECT_FLOAT_EQ(static_cast<float>(mean(answer["choices"][0])), static_cast<float>(best));
  EXPECT_GE(mean(answer["choices"][0]), mean(answer["choices"][1]));
  EXPECT_EQ(answer["usage"]["completion_tokens"], 20);
}

TEST_F(OpenAi, TokenIdsAreReturnedWhereAskedFor) {
  std::string fields = R"("max_tokens":5,"temperature":0,"return_token_ids":true)";
  Json choice = complete_json(R"("prompt":[5,6,7],)" + fields)["choices"][0];
  EXPECT_EQ(choice["prompt_token_ids"], Json({5, 6, 7}));
  ASSERT_EQ(choice["token_ids"].size(), 5u);
  Json streamed = Json::array();
  for (const Json& event : events_of(complete(R"("prompt":[5,6,7],"stream":true,)" + fields))) {
    for (const Json& id : event["choices"][0]["token_ids"]) streamed.push_back(id);
  }
  EXPECT_EQ(streamed, choice["token_ids"]);

  Json whole = chat_json(fields);
  EXPECT_EQ(whole["prompt_token_ids"].size(), whole["usage"]["prompt_tokens"]);
  EXPECT_EQ(whole["choices"][0]["token_ids"].size(), 5u);
  streamed = Json::array();
  auto events = events_of(chat(fields + R"(,"stream":true)"));
  EXPECT_EQ(events[0]["prompt_token_ids"], whole["prompt_token_ids"]);
  for (const Json& event : events) {
    for (const Json& id : event["choices"][0]["token_ids"]) streamed.push_back(id);
  }
  EXPECT_EQ(streamed, whole["choices"][0]["token_ids"]);
}

TEST_F(OpenAi, PromptLogprobsAreThoseOfAScore) {
  Json answer = complete_json(R"("prompt":[5,6,7],"max_tokens":1,"prompt_logprobs":2)");
  const Json& list = answer["choices"][0]["prompt_logprobs"];
  ASSERT_EQ(list.size(), 3u);
  EXPECT_TRUE(list[0].is_null());
  auto scores = llm_->score({5, 6, 7}).value();
  EXPECT_FLOAT_EQ(list[1]["6"]["logprob"].get<float>(), *scores[1]);
  EXPECT_FLOAT_EQ(list[2]["7"]["logprob"].get<float>(), *scores[2]);
  EXPECT_GE(list[1].size(), 2u);
}

TEST_F(OpenAi, OnlyAllowedTokensAreDrawnAndBadWordsAreNot) {
  auto ids_of = [&](const std::string& fields) {
    return complete_json(R"("prompt":"Hello","max_tokens":6,"seed":2,"n":2,"ignore_eos":true,)"
                         R"("return_token_ids":true,)" +
                         fields)["choices"];
  };
  for (const Json& choice : ids_of(R"("allowed_token_ids":[300,301])")) {
    for (const Json& id : choice["token_ids"]) EXPECT_TRUE(id == 300 || id == 301) << id;
  }
  // Of two tokens that alternate freely one pair is banned.
  std::string pair = tokenizer_of(*llm_)->decode(std::vector<TokenId>{75, 79}).value();
  std::vector<TokenId> spelled =
      tokenizer_of(*llm_)->encode(pair, {.add_special_tokens = false}).value();
  ASSERT_FALSE(spelled.empty());
  Json allowed = spelled;
  allowed.push_back(300);
  std::string both = R"("temperature":2,"bad_words":[)" + Json(pair).dump() +
                     R"(],"allowed_token_ids":)" + allowed.dump();
  for (const Json& choice : ids_of(both)) {
    std::string text =
        tokenizer_of(*llm_)->decode(choice["token_ids"].get<std::vector<TokenId>>()).value();
    EXPECT_FALSE(text.contains(pair)) << text;
  }
  EXPECT_TRUE(complete(R"("prompt":"a","allowed_token_ids":[99999])").contains("vocabulary"));
  auto ends = test::tiny_llm({}, {.ends = true});
  std::string both_ways = R"({"prompt":"a","bad_words":["b"],"regex":"a+"})";
  EXPECT_TRUE(ask(*ends, plan_completion, both_ways).contains("cannot be given with regex"));
}

TEST_F(OpenAi, ChatRefusesWhatItsTemplateCannotTake) {
  auto refused = [&](const std::string& body, const std::string& part) {
    std::string answer = ask(*llm_, plan_chat, body);
    EXPECT_NE(answer.find(part), std::string::npos) << answer;
  };
  refused("{}", "error messages: messages is missing");
  refused(R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", "error messages: ");
  std::string hi = R"({"messages":[{"role":"user","content":"Hi"}])";
  refused(hi + R"(,"top_logprobs":3})", "error top_logprobs: ");
  refused(hi + R"(,"max_tokens":0})", "error max_tokens: ");
  refused(hi + R"(,"tool_choice":"required"})", "error tool_choice: ");
  refused(hi + R"(,"chat_template_kwargs":{"messages":[]}})", "must not set messages");
  refused(hi + R"(,"chat_template_kwargs":7})", "chat_template_kwargs");
  auto plain = test::tiny_llm();
  std::string answer = ask(*plain, plan_chat, hi + "}");
  EXPECT_NE(answer.find("no chat template; give one with --chat-template FILE"), std::string::npos)
      << answer;
}

}  // namespace
}  // namespace banyan::openai_test
