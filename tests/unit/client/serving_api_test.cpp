// Requests and events of the protocols that the load test supports.
#include "client/serving_api.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace banyan::serving_api_test {
namespace {

Json body_of(const RequestStyle& style, const BenchPrompt& prompt, const Conversation& said = {}) {
  return parse_json(request_body(style, prompt, 1, said), "body").value();
}

const BenchPrompt kIds = {.parts = {{0, 5}}, .output_tokens = 9};

TEST(ServingApi, WritesNativeRequests) {
  RequestStyle style{.api = ServingApi::kSglang, .vocabulary = 100};
  Json body = body_of(style, kIds);
  EXPECT_EQ(body["input_ids"].size(), 5u);
  EXPECT_EQ(body["sampling_params"],
            (Json{{"temperature", 0.0}, {"max_new_tokens", 9}, {"ignore_eos", true}}));
  EXPECT_EQ(body["stream"], true);
  style.ignore_eos = false;
  style.extra = {{"rid", "x"}, {"sampling_params", {{"temperature", 0.5}}}};
  body = body_of(style, kIds);
  EXPECT_EQ(body["rid"], "x");
  EXPECT_EQ(body["sampling_params"],
            (Json{{"temperature", 0.5}, {"max_new_tokens", 9}, {"ignore_eos", false}}));
  EXPECT_EQ(body_of(style, kIds, {"one", "two", "three"})["text"],
            "USER: one\nASSISTANT: two\nUSER: three\nASSISTANT:");
}

TEST(ServingApi, WritesOpenAiRequests) {
  RequestStyle style{.api = ServingApi::kCompletions, .model = "m", .vocabulary = 100};
  Json body = body_of(style, kIds);
  EXPECT_EQ(body["prompt"].size(), 5u);
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["max_tokens"], 9);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  style.api = ServingApi::kChat;
  body = body_of(style, kIds);
  ASSERT_EQ(body["messages"].size(), 1u);
  EXPECT_EQ(body["messages"][0]["role"], "user");
  body = body_of(style, kIds, {"one", "two \xff", "three"});
  ASSERT_EQ(body["messages"].size(), 3u);
  EXPECT_EQ(body["messages"][1]["role"], "assistant");
  EXPECT_EQ(body["messages"][2]["content"], "three");
}

TEST(ServingApi, ReadsNativeEvents) {
  // What the text says is not what the server says.
  EventFacts facts = read_event(
      ServingApi::kSglang,
      R"({"text":"a \"completion_tokens\":99","output_ids":[1],"meta_info":{"id":"x",)"
      R"("finish_reason":null,"prompt_tokens":7,"completion_tokens":3,"cached_tokens":2}})");
  EXPECT_EQ(facts.completion_tokens, 3);
  EXPECT_EQ(facts.error, "");
  facts =
      read_event(ServingApi::kSglang,
                 R"({"text": "", "meta_info": {"finish_reason": {"type": "length", "length": 4}, )"
                 R"("prompt_tokens": 7, "completion_tokens": 4, "cached_tokens": 2}})");
  EXPECT_EQ(facts.completion_tokens, 4);
  EXPECT_EQ(facts.prompt_tokens, 7);
  EXPECT_EQ(facts.cached_tokens, 2);
  EXPECT_EQ(facts.error, "");
  facts = read_event(ServingApi::kSglang,
                     R"({"text":"","meta_info":{"finish_reason":{"type":"abort","message":"x"},)"
                     R"("completion_tokens":4}})");
  EXPECT_EQ(facts.error, "aborted by the server");
}

TEST(ServingApi, ReadsOpenAiEvents) {
  auto completions = [](std::string_view data) {
    return read_event(ServingApi::kCompletions, data);
  };
  EXPECT_TRUE(completions(R"({"choices":[{"index":0,"text":"a","finish_reason":null}]})").has_text);
  EXPECT_FALSE(
      completions(R"({"choices":[{"index":0,"text":"","finish_reason":"length"}]})").has_text);
  EventFacts usage = completions(
      R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6,"total_tokens":11,)"
      R"("prompt_tokens_details":{"cached_tokens":4}}})");
  EXPECT_FALSE(usage.has_text);
  EXPECT_EQ(usage.completion_tokens, 6);
  EXPECT_EQ(usage.prompt_tokens, 5);
  EXPECT_EQ(usage.cached_tokens, 4);
  EXPECT_EQ(completions(R"({"choices":[{"text":"","finish_reason":"abort"}]})").error,
            "aborted by the server");
  auto chat = [](std::string_view data) { return read_event(ServingApi::kChat, data); };
  EXPECT_FALSE(chat(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})").has_text);
  EXPECT_FALSE(chat(R"({"choices":[{"delta":{"role":"assistant","content":null}}]})").has_text);
  EXPECT_TRUE(chat(R"({"choices":[{"delta":{"content":"x"}}]})").has_text);
  EXPECT_TRUE(chat(R"({"choices":[{"delta":{"reasoning_content":"x"}}]})").has_text);
  EXPECT_EQ(chat(R"({"error":{"message":"it broke","code":500}})").error, "it broke");
}

TEST(ServingApi, SurvivesEventsThatAreNotWhatTheySeem) {
  for (const char* data :
       {"", "{", "\"completion_tokens\":", "{\"completion_tokens\":99999999999999999999}",
        "{\"completion_tokens\":-5}", "\"finish_reason\":", "\"finish_reason\":{"}) {
    for (ServingApi api : {ServingApi::kSglang, ServingApi::kCompletions, ServingApi::kChat}) {
      EXPECT_LT(read_event(api, data).completion_tokens, 0) << data;
    }
  }
}

TEST(ServingApi, TakesTheTextOfAnswers) {
  std::string answer;
  take_text(ServingApi::kSglang, R"({"text":"ab"})", answer);
  take_text(ServingApi::kSglang, R"({"text":"abc"})", answer);
  EXPECT_EQ(answer, "abc");
  take_text(ServingApi::kCompletions, R"({"choices":[{"text":"d"}]})", answer);
  take_text(ServingApi::kCompletions, R"({"choices":[]})", answer);
  take_text(ServingApi::kChat, R"({"choices":[{"delta":{"content":"e"}}]})", answer);
  take_text(ServingApi::kChat, R"({"choices":[{"delta":{"content":null}}]})", answer);
  take_text(ServingApi::kChat, "no JSON", answer);
  EXPECT_EQ(answer, "abcde");
}

TEST(ServingApi, FindsTheMessageOfAnError) {
  EXPECT_EQ(error_message(R"({"error":{"message":"a","type":"t"}})"), "a");
  EXPECT_EQ(error_message(R"({"object":"error","message":"b"})"), "b");
  EXPECT_EQ(error_message(R"({"error":"c"})"), "c");
  EXPECT_EQ(error_message("<html>"), "\"<html>\"");
  EXPECT_EQ(error_message(""), "no reason given");
  EXPECT_EQ(error_message("[1]"), "\"[1]\"");
}

}  // namespace
}  // namespace banyan::serving_api_test
