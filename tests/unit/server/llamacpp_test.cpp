// The paths of llama.cpp's server, from the body to the bytes, without HTTP.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "llm/llm_parts.h"
#include "server/error.h"
#include "server/fields/infill.h"
#include "server/llamacpp/endpoints.h"
#include "server/llamacpp/metrics.h"
#include "server/openai/endpoints.h"
#include "server/sglang/endpoints.h"
#include "support/api.h"

namespace banyan::llamacpp_test {
namespace {

using test::ask;
using test::ask_json;

class LlamaCpp : public testing::Test {
 protected:
  std::string complete(const std::string& fields) {
    std::string prompt = fields.find("\"prompt\"") == fields.npos ? R"("prompt":"Hello",)" : "";
    return ask(*llm_, plan_llama_completion, "{" + prompt + fields + "}");
  }
  Json complete_json(const std::string& fields) {
    Json json = Json::parse(complete(fields), nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << complete(fields);
    return json;
  }
  GenerateRequest plan_of(const std::string& fields) {
    RequestContext context = test::context_for(*llm_);
    return plan_llama_completion(context, Json::parse(R"({"prompt":"Hello",)" + fields + "}"))
        .value()
        .requests[0];
  }
  static std::vector<Json> events_of(const std::string& stream) {
    return test::events_of(stream + "data: [DONE]\n\n");  // which llama.cpp does not send
  }

  std::unique_ptr<Llm> llm_ =
      test::tiny_llm("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<a>",
                     {.ends = true, .vocabulary = 800});
};

TEST_F(LlamaCpp, ACompletionHasTheShapeThatClientsRead) {
  Json answer = complete_json(R"("n_predict":6,"temperature":0,"seed":42)");
  EXPECT_EQ(answer["index"], 0);
  EXPECT_EQ(answer["stop"], true);
  EXPECT_EQ(answer["stop_type"], "limit");
  EXPECT_EQ(answer["stopping_word"], "");
  EXPECT_EQ(answer["tokens_predicted"], 6);
  auto prompt = std::ssize(*tokenizer_of(*llm_)->encode("Hello"));
  EXPECT_EQ(answer["tokens_evaluated"], prompt);
  EXPECT_EQ(answer["truncated"], false);
  EXPECT_EQ(complete_json(R"("temperature":0,"ignore_eos":true)")["truncated"], true);
  EXPECT_EQ(answer["prompt"], "<s>Hello</s>");  // with what the tokenizer adds
  Json kept = complete_json(
      R"("n_predict":6,"response_fields":["content","generation_settings/n_predict","no"])");
  EXPECT_EQ(kept["generation_settings/n_predict"], 6);
  EXPECT_EQ(kept.size(), 2u);
  EXPECT_EQ(answer["generation_settings"]["seed"], 42);
  EXPECT_EQ(answer["generation_settings"]["n_predict"], 6);
  EXPECT_EQ(answer["timings"]["prompt_n"], prompt);
  EXPECT_EQ(answer["timings"]["predicted_n"], 6);
  EXPECT_GT(answer["timings"]["predicted_per_second"], 0);
  EXPECT_TRUE(answer["tokens"].empty());
  EXPECT_EQ(complete_json(R"("n_predict":6,"return_tokens":true)")["tokens"].size(), 6u);
}

TEST_F(LlamaCpp, TheStreamSaysWhatTheAnswerSays) {
  std::string fields = R"("n_predict":8,"temperature":0)";
  Json whole = complete_json(fields + R"(,"return_tokens":true)");
  std::string text;
  Json tokens = Json::array();
  std::vector<Json> events =
      events_of(complete(fields + R"(,"stream":true,"timings_per_token":true)"));
  for (const Json& event : events) {
    bool last = &event == &events.back();
    EXPECT_EQ(event["stop"], last);
    EXPECT_TRUE(event.contains("timings"));
    text += event["content"];
    for (const Json& token : event["tokens"]) tokens.push_back(token);
    EXPECT_EQ(event.contains("generation_settings"), last);
  }
  EXPECT_EQ(Json(text), whole["content"]);
  EXPECT_EQ(tokens, whole["tokens"]);
}

TEST_F(LlamaCpp, PromptsMayBeTextsTokensAndBoth) {
  auto prompt_of = [&](const char* prompt) {
    return complete_json(R"("n_predict":1,"prompt":)" + std::string(prompt));
  };
  EXPECT_EQ(prompt_of("[5,6,7]")["tokens_evaluated"], 3);
  int64_t text = std::ssize(*tokenizer_of(*llm_)->encode("Hello"));
  EXPECT_EQ(prompt_of(R"(["Hello",5,6])")["tokens_evaluated"], text + 2);
  EXPECT_EQ(prompt_of(R"({"prompt_string":"Hello"})")["tokens_evaluated"], text);
  Json many = prompt_of(R"(["Hello",[5,6],["Hello",7]])");
  ASSERT_EQ(many.size(), 3u);
  EXPECT_EQ(many[1]["tokens_evaluated"], 2);
  EXPECT_EQ(many[2]["index"], 2);
  EXPECT_EQ(complete_json(R"("n_predict":1,"n_cmpl":2)").size(), 2u);
}

TEST_F(LlamaCpp, WhatEndedTheTextIsNamed) {
  std::string text = complete_json(R"("n_predict":12,"temperature":0)")["content"];
  ASSERT_GT(text.size(), 3u);
  size_t end = 1;
  while ((text[end] & 0xc0) == 0x80) ++end;
  Json word = text.substr(0, end);
  Json stopped =
      complete_json(R"("n_predict":12,"temperature":0,"stop":["zz",)" + word.dump() + "]");
  EXPECT_EQ(stopped["stop_type"], "word");
  EXPECT_EQ(stopped["stopping_word"], word);
  EXPECT_EQ(stopped["content"], "");
  Json ended = complete_json(R"("grammar":"root ::= \"a\" | \"b\"")");
  EXPECT_EQ(ended["stop_type"], "eos");
  EXPECT_EQ(ended["content"].get<std::string>().size(), 1u);
  Json schema = complete_json(R"("json_schema":{"const":[1,2]})");
  EXPECT_EQ(schema["content"], "[1,2]");
}

TEST_F(LlamaCpp, ProbabilitiesAreListedByToken) {
  Json answer = complete_json(R"("n_predict":3,"temperature":0,"n_probs":2)");
  const Json& list = answer["completion_probabilities"];
  ASSERT_EQ(list.size(), 3u);
  for (const Json& entry : list) {
    EXPECT_TRUE(entry["id"].is_number_integer());
    EXPECT_LE(entry["logprob"], 0);
    ASSERT_EQ(entry["top_logprobs"].size(), 2u);
    EXPECT_EQ(entry["top_logprobs"][0]["id"], entry["id"]);  // greedy
  }
  size_t streamed = 0;
  for (const Json& event :
       events_of(complete(R"("n_predict":3,"temperature":0,"n_probs":2,"stream":true)"))) {
    streamed += event.value("completion_probabilities", Json::array()).size();
  }
  EXPECT_EQ(streamed, 3u);
}

TEST_F(LlamaCpp, FieldsReachTheEngine) {
  auto plan = [&](const std::string& fields) {
    return plan_llama_completion(test::context_for(*llm_),
                                 Json::parse(R"({"prompt":"a",)" + fields + "}"))
        ->requests[0];
  };
  GenerateRequest silent = plan(R"("n_predict":-1,"seed":-1)");
  EXPECT_FLOAT_EQ(silent.sampling.temperature, 0.8f);
  EXPECT_EQ(silent.sampling.top_k, 40);
  EXPECT_GT(silent.options.max_new_tokens, 100);
  EXPECT_NE(silent.sampling.seed, plan(R"("seed":-1)").sampling.seed);
  EXPECT_FLOAT_EQ(plan(R"("repeat_penalty":1.5)").sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(silent.sampling.repeat_last_n, 64);
  using Biases = std::vector<std::pair<TokenId, float>>;
  EXPECT_EQ(plan(R"("logit_bias":[[5,1.5],[6,false]])").sampling.logit_bias,
            (Biases{{5, 1.5f}, {6, -100.0f}}));
  EXPECT_EQ(plan(R"("max_tokens":3)").options.max_new_tokens, 3);
  EXPECT_EQ(plan(R"("cache_prompt":true)").options.extra_key, "");
  EXPECT_NE(plan(R"("cache_prompt":false)").options.extra_key, "");
}

TEST_F(LlamaCpp, MistakesAreNamed) {
  auto refused = [&](const std::string& fields, const std::string& beginning) {
    std::string answer = complete(fields);
    EXPECT_TRUE(answer.starts_with("error " + beginning)) << answer;
  };
  refused(R"("prompt":null)", "prompt: prompt is missing");
  refused(R"("prompt":[])", "prompt: ");
  refused(R"("prompt":{"prompt_string":"a","multimodal_data":["iVBOR"]})",
          ": prompt.multimodal_data: ");
  refused(R"("prompt":{"content":"a"})", ": prompt is ");
  refused(R"("reasoning_budget_tokens":4)", "reasoning_budget_tokens: ");
  refused(R"("n_predict":-3)", "n_predict: ");
  refused(R"("repeat_penalty":1.2,"repeat_last_n":-2)", "repeat_last_n: ");
  refused(R"("mirostat":2)", "mirostat: ");
  refused(R"("post_sampling_probs":true)", "post_sampling_probs: ");
  refused(R"("grammar":"root ::= nothing")", "grammar: ");
  Json error = error_json(400, "long", {}, "context_length_exceeded", "/completion")["error"];
  EXPECT_EQ(error["code"], 400);
  EXPECT_EQ(error["type"], "exceed_context_size_error");
}

TEST_F(LlamaCpp, WhatTheServerWasToldIsWhatSilentRequestsGet) {
  RequestContext context = test::context_for(*llm_);
  context.defaults = {.temperature = 0.f, .seed = 77, .max_new_tokens = 3};
  auto settings = [&](const char* body) {
    GenerationPlan plan = plan_llama_completion(context, Json::parse(body)).value();
    return Json::parse(test::run_plan(*llm_, plan))["generation_settings"];
  };
  Json silent = settings(R"({"prompt":"a"})");
  EXPECT_EQ(silent["seed"], 77);
  EXPECT_EQ(silent["temperature"], 0.0);
  EXPECT_EQ(silent["n_predict"], 3);
  Json told = settings(R"({"prompt":"a","seed":5,"n_predict":2,"temperature":1.5})");
  EXPECT_EQ(told["seed"], 5);
  EXPECT_EQ(told["temperature"], 1.5);
  EXPECT_EQ(told["n_predict"], 2);
  EXPECT_NE(settings(R"({"prompt":"a","seed":-1})")["seed"], 77);  // by chance
}

TEST_F(LlamaCpp, BiasesMayBeOfTextsAndOfTheEnd) {
  auto bias = [&](const std::string& fields) { return plan_of(fields).sampling.logit_bias; };
  auto ids = tokenizer_of(*llm_)->encode("ab", {.add_special_tokens = false}).value();
  auto of_text = bias(R"("logit_bias":[["ab",-5]])");
  ASSERT_EQ(of_text.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(of_text[i], std::pair(ids[i], -5.f));
  EXPECT_EQ(of_text, bias(R"("logit_bias":{"ab":-5})"));
  Json shown = complete_json(R"("n_predict":1,"ignore_eos":true)")["generation_settings"];
  ASSERT_EQ(shown["logit_bias"].size(), 1u);
  EXPECT_TRUE(shown["logit_bias"][0]["bias"].is_null());
  EXPECT_TRUE(complete_json(R"("n_predict":1)")["generation_settings"]["logit_bias"].empty());
}

TEST_F(LlamaCpp, AStopRegexEndsTheTextAfterItsMatch) {
  const std::string asks = R"("n_predict":40,"temperature":0)";
  std::string text = complete_json(asks)["content"];
  ASSERT_GT(text.size(), 12u);
  Json cut = complete_json(asks + R"(,"stop_regex":["never{9}","(?s)^.{5}."])");
  std::string kept = cut["content"];
  EXPECT_TRUE(text.starts_with(kept)) << kept;
  EXPECT_LT(kept.size(), text.size());
  EXPECT_EQ(cut["stop_type"], "word");
  EXPECT_EQ(cut["stopping_word"], "(?s)^.{5}.");
  std::string streamed;
  for (const Json& event :
       events_of(complete(asks + R"(,"stop_regex":"(?s)^.{5}.","stream":true)"))) {
    streamed += event["content"];
  }
  EXPECT_EQ(streamed, kept);
}

TEST_F(LlamaCpp, ChatsShowTheirPromptsAndTimesWhereAsked) {
  const std::string chat = R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":3,
      "ignore_eos":true,)";
  Json answer = ask_json(*llm_, plan_chat, chat + R"("verbose":true,"timings_per_token":true})");
  EXPECT_EQ(answer["__verbose"]["prompt"], "<user>Hi<a>");
  EXPECT_EQ(answer["timings"]["predicted_n"], 3);
  Json silent = ask_json(*llm_, plan_chat, chat + R"("stream":false})");
  EXPECT_FALSE(silent.contains("__verbose") || silent.contains("timings"));
  auto events = test::events_of(ask(*llm_, plan_chat, chat + R"("stream":true,
      "timings_per_token":true,"stream_options":{"include_usage":true}})"));
  EXPECT_FALSE(events[0].contains("timings"));
  EXPECT_TRUE(events[1].contains("timings") && events.back().contains("timings"));
  RequestContext context = test::context_for(*llm_);
  context.defaults.template_variables = {{"enable_thinking", false}};
  EXPECT_GT(count_chat_tokens(context, Json::parse(chat + R"("n":1})")).value()["input_tokens"], 5);
}

TEST_F(LlamaCpp, StreamsReportTheProgressOfThePromptWhereAsked) {
  const std::string asks = R"("prompt":[5,6,7,8],"n_predict":2,"cache_prompt":false)";
  std::vector<Json> events = events_of(complete(asks + R"(,"stream":true,"return_progress":true)"));
  const Json& progress = events[0]["prompt_progress"];
  EXPECT_EQ(progress["total"], 4);
  EXPECT_EQ(progress["processed"], 4);
  EXPECT_EQ(progress["cache"], 0);
  EXPECT_GE(progress["time_ms"], 0);
  EXPECT_EQ(events[0]["content"], "");
  EXPECT_FALSE(events[1].contains("prompt_progress"));
  EXPECT_FALSE(complete_json(asks + R"(,"return_progress":true)").contains("prompt_progress"));

  const std::string chat =
      R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":3,"temperature":0,)";
  auto chunks =
      test::events_of(ask(*llm_, plan_chat, chat + R"("stream":true,"return_progress":true})"));
  EXPECT_EQ(chunks[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(chunks[1]["choices"][0]["delta"], Json::object());
  EXPECT_EQ(chunks[1]["prompt_progress"]["processed"], chunks[1]["prompt_progress"]["total"]);
  auto plain = test::events_of(ask(*llm_, plan_chat, chat + R"("stream":true})"));
  EXPECT_EQ(plain.size() + 1, chunks.size());
}

TEST_F(LlamaCpp, TemplatesAreAppliedAndTextsTakenApart) {
  RequestContext context = test::context_for(*llm_);
  Json messages = Json::parse(R"({"messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_EQ(apply_template(context, messages).value()["prompt"], "<user>Hi<a>");
  Json tokens = tokenize(context, {{"content", "Hé"}, {"with_pieces", true}}).value()["tokens"];
  std::string bytes;
  for (const Json& token : tokens) {
    EXPECT_TRUE(token["id"].is_number_integer());
    if (token["piece"].is_string()) {
      bytes += token["piece"];
    } else {
      for (const Json& byte : token["piece"]) bytes += static_cast<char>(byte.get<int>());
    }
  }
  EXPECT_EQ(bytes, "Hé");
}

// What llama.vim and llama.vscode send with every completion.
TEST_F(LlamaCpp, EditorsLimitLinesAndNameTheirFilters) {
  GenerateRequest plan = plan_of(
      R"("temperature":0.1,"top_k":40,"top_p":0.99,"min_p":0.1,"repeat_penalty":1.2,"n_indent":4,
         "t_max_prompt_ms":500,"t_max_predict_ms":1500,"samplers":["top_k","top_p","infill"])");
  EXPECT_EQ(plan.sampling.top_k, 40);
  EXPECT_FLOAT_EQ(plan.sampling.top_p, 0.99f);
  EXPECT_EQ(plan.sampling.temperature, 1) << "the list has no temperature";
  EXPECT_EQ(plan.sampling.min_p, 0);
  EXPECT_EQ(plan.sampling.repetition_penalty, 1);
  EXPECT_EQ(plan.options.indent_min, 4);
  EXPECT_DOUBLE_EQ(plan.options.line_time_s, 1.5);
  EXPECT_EQ(plan_of(R"("t_max_predict_ms":-1)").options.line_time_s, 0);
  EXPECT_EQ(plan_of(R"("samplers":[],"top_k":40)").sampling.top_k, 0);
  EXPECT_TRUE(complete(R"("samplers":["top_k","mirostat"])").contains("\"mirostat\"; supported"));
  EXPECT_TRUE(complete(R"("samplers":"kp")").contains("must be a list"));
  // The prompt's text goes on in one line, so the first new line ends it.
  Json answer =
      complete_json(R"("n_predict":400,"temperature":0,"n_indent":1000,"logit_bias":[["\n",5]])");
  std::string text = answer["content"];
  ASSERT_TRUE(text.contains('\n')) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  EXPECT_EQ(answer["stop_type"], "limit");
  EXPECT_LT(answer["tokens_predicted"], 400);
  EXPECT_EQ(answer["generation_settings"]["n_indent"], 1000);
}

TEST_F(LlamaCpp, InfillNeedsAModelThatHasItsTokens) {
  std::string refused = ask(*llm_, plan_infill, R"({"input_prefix":"a","input_suffix":"b"})");
  EXPECT_TRUE(refused.contains("no tokens that mark a text to be filled in")) << refused;
}

TEST(Infill, PutsTheMarksOfTheVocabularyAroundBothTexts) {
  test::TemporaryFolder folder;
  std::string path = test::source_path("tests/golden/tokenizer/tiny_byte_level/tokenizer.json");
  Json json = Json::parse(read_file(path, 1 << 20).value());
  Json added = json["added_tokens"].back();
  for (const char* name : {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}) {
    added["id"] = added["id"].get<int>() + 1;
    added["content"] = name;
    json["added_tokens"].push_back(added);
  }
  folder.write("tokenizer.json", json.dump());
  auto tokenizer = Tokenizer::load(folder.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  auto ids = infill_prompt(tokenizer->get(), "a</s>", "b");
  ASSERT_TRUE(ids) << ids.error().message;
  // What spells a special token stays text.
  EXPECT_EQ((*tokenizer)->decode(*ids).value(), "<|fim_prefix|>a</s><|fim_suffix|>b<|fim_middle|>");
  EXPECT_EQ(std::ranges::count(*ids, (*tokenizer)->find("</s>").value()), 0);
  std::vector<InfillFile> files = {{"x.h", "int x;"}};
  auto with_file = infill_prompt(tokenizer->get(), "a", "b", files);
  ASSERT_TRUE(with_file) << with_file.error().message;
  EXPECT_EQ((*tokenizer)->decode(*with_file).value(),
            "\n\n--- snippet ---\n\nint x;<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>");
}

TEST(LlamaMetrics, HaveOneLineWithoutLabelsForEachFigure) {
  LlamaFigures figures = {.prompt_s = 2, .predicted_s = 0};
  figures.stats.prompt_tokens = 30;
  std::string text = llama_metrics(figures);
  EXPECT_NE(text.find("\nllamacpp:prompt_tokens_total 30\n"), text.npos) << text;
  EXPECT_NE(text.find("\nllamacpp:prompt_tokens_seconds 15\n"), text.npos) << text;
  EXPECT_NE(text.find("\nllamacpp:predicted_tokens_seconds 0\n"), text.npos) << text;
  EXPECT_NE(text.find("# TYPE llamacpp:requests_processing gauge\n"), text.npos);
}

}  // namespace
}  // namespace banyan::llamacpp_test
