// The answers of SGLang's endpoints, from the body to the bytes, without HTTP.
#include "server/sglang/endpoints.h"

#include <gtest/gtest.h>

#include "llm/llm_parts.h"
#include "support/api.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::sglang_test {
namespace {

using test::ask;
using test::ask_json;
using test::events_of;

constexpr const char* kGreedy = R"("sampling_params":{"temperature":0,"max_new_tokens":6})";

class Sglang : public testing::Test {
 protected:
  std::string generate(const std::string& fields) {
    return ask(*llm_, plan_generate, "{" + fields + "}");
  }
  Json generate_json(const std::string& fields) {
    return ask_json(*llm_, plan_generate, "{" + fields + "}");
  }

  std::unique_ptr<Llm> llm_ = test::tiny_llm("{% for m in messages %}{{ m.content }}{% endfor %}");
};

TEST_F(Sglang, GenerateHasTheShapeThatClientsRead) {
  Json answer = generate_json(R"("input_ids":[5,6,7],)" + std::string(kGreedy));
  EXPECT_TRUE(answer["text"].is_string());
  EXPECT_EQ(answer["output_ids"].size(), 6u);
  const Json& meta = answer["meta_info"];
  EXPECT_EQ(meta["id"], "0123");
  EXPECT_EQ(meta["finish_reason"], Json::parse(R"({"type":"length","length":6})"));
  EXPECT_EQ(meta["prompt_tokens"], 3);
  EXPECT_EQ(meta["completion_tokens"], 6);
  EXPECT_EQ(meta["cached_tokens"], 0);
  EXPECT_GT(meta["e2e_latency"], 0);
  EXPECT_FALSE(meta.contains("input_token_logprobs"));
  EXPECT_FALSE(answer.contains("index"));
}

TEST_F(Sglang, BatchesAndSamplesAreLists) {
  Json one = generate_json(R"("input_ids":[8,9],)" + std::string(kGreedy));
  Json list =
      generate_json(R"("input_ids":[[5,6,7],[8,9]],"rid":["a","b"],)" + std::string(kGreedy));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["meta_info"]["id"], "a");
  EXPECT_EQ(list[1]["meta_info"]["id"], "b");
  EXPECT_EQ(list[1]["output_ids"], one["output_ids"]);
  EXPECT_TRUE(generate_json(R"("text":["a"],)" + std::string(kGreedy)).is_array());
  Json samples = generate_json(
      R"("text":"a","rid":"r","sampling_params":{"n":3,"max_new_tokens":2,"sampling_seed":1})");
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[2]["meta_info"]["id"], "r_2");
}

TEST_F(Sglang, OptionsMayBeOnePerPrompt) {
  Json list = generate_json(R"("text":["a","b"],"return_logprob":[true,false],
      "sampling_params":[{"max_new_tokens":1},{"max_new_tokens":3}])");
  EXPECT_EQ(list[0]["output_ids"].size(), 1u);
  EXPECT_EQ(list[1]["output_ids"].size(), 3u);
  EXPECT_TRUE(list[0]["meta_info"].contains("output_token_logprobs"));
  EXPECT_FALSE(list[1]["meta_info"].contains("output_token_logprobs"));
  EXPECT_NE(generate(R"("text":["a","b"],"sampling_params":[{}])").find("error sampling_params"),
            std::string::npos);
}

TEST_F(Sglang, StreamsWhatThereIsSoFar) {
  std::string fields = R"("text":["Hello","you"],"return_logprob":true,)" + std::string(kGreedy);
  Json whole = generate_json(fields);
  auto events = events_of(generate(fields + R"(,"stream":true)"));
  std::vector<std::string> texts(2);
  std::vector<Json> last(2);
  for (const Json& event : events) {
    size_t index = event["index"];
    std::string text = event["text"];
    EXPECT_TRUE(text.starts_with(texts[index]));
    texts[index] = text;
    last[index] = event;
  }
  for (size_t i = 0; i < 2; ++i) {
    for (Json* answer : {&last[i], &whole[i]}) {
      (*answer)["meta_info"].erase("e2e_latency");
      answer->erase("index");
    }
    EXPECT_EQ(last[i], whole[i]);
  }
}

TEST_F(Sglang, NewTokensAreUpTo128OrWithNullTheWholeContext) {
  EXPECT_EQ(generate_json(R"("input_ids":[5,6],"sampling_params":{"temperature":0})")["output_ids"]
                .size(),
            126u);  // of a context of 128
  std::string ids = "5";
  for (int i = 0; i < 99; ++i) ids += ",5";
  EXPECT_EQ(generate_json(R"("sampling_params":{"max_new_tokens":null},"input_ids":[)" + ids +
                          "]")["output_ids"]
                .size(),
            28u);
}

TEST_F(Sglang, ScoresPromptsWithoutNewTokens) {
  auto ids = tokenizer_of(*llm_)->encode("Hello you").value();
  auto scores = llm_->score(ids).value();
  Json answer = generate_json(R"("text":"Hello you","return_logprob":true,"logprob_start_len":0,
      "top_logprobs_num":2,"return_text_in_logprobs":true,"sampling_params":{"max_new_tokens":0})");
  EXPECT_EQ(answer["text"], "");
  const Json& meta = answer["meta_info"];
  EXPECT_EQ(meta["finish_reason"]["type"], "length");
  EXPECT_EQ(meta["completion_tokens"], 0);
  EXPECT_TRUE(meta["output_token_logprobs"].empty());
  const Json& entries = meta["input_token_logprobs"];
  ASSERT_EQ(entries.size(), ids.size());
  EXPECT_TRUE(entries[0][0].is_null());
  EXPECT_TRUE(meta["input_top_logprobs"][0].is_null());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(entries[i][1], ids[i]);
    EXPECT_TRUE(entries[i][2].is_string());
    if (i == 0) continue;
    EXPECT_FLOAT_EQ(entries[i][0], *scores[i]);
    EXPECT_EQ(meta["input_top_logprobs"][i].size(), 2u);
  }
  Json tail = generate_json(R"("text":"Hello you","return_logprob":true,"logprob_start_len":2,
      "sampling_params":{"max_new_tokens":0})")["meta_info"]["input_token_logprobs"];
  ASSERT_EQ(tail.size(), ids.size() - 2);
  EXPECT_EQ(tail[0][1], ids[2]);
  EXPECT_FLOAT_EQ(tail[0][0], *scores[2]);
  EXPECT_TRUE(tail[0][2].is_null());
  EXPECT_EQ(generate_json(R"("text":"Hello you","return_logprob":true,
                             "sampling_params":{"max_new_tokens":0})")["meta_info"]
                                                                      ["input_token_logprobs"]
                                                                          .size(),
            ids.size());
}

TEST_F(Sglang, LogprobsOfTheOutputAlone) {
  Json meta =
      generate_json(R"("text":"a","return_logprob":true,)" + std::string(kGreedy))["meta_info"];
  EXPECT_TRUE(meta["input_token_logprobs"].empty());
  EXPECT_EQ(meta["output_token_logprobs"].size(), 6u);
  EXPECT_EQ(meta["output_token_logprobs_length"], 6);
  EXPECT_FALSE(meta.contains("output_top_logprobs"));
}

TEST_F(Sglang, RefusesByNameAndParam) {
  auto refused = [&](const std::string& fields, const std::string& param) {
    std::string answer = generate(fields);
    EXPECT_EQ(answer.substr(0, param.size() + 7), "error " + param + ":") << answer;
  };
  refused(R"("text":7)", "text");
  refused(R"("stream":false)", "text");
  refused(R"("text":"a","input_ids":[1])", "text");
  refused(R"("text":[])", "text");
  refused(R"("text":["a",7])", "text");
  refused(R"("input_ids":[])", "input_ids");
  refused(R"("input_ids":[[1],[]])", "input_ids");
  refused(R"("input_ids":["a"])", "input_ids");
  refused(R"("text":"a","sampling_params":7)", "");
  refused(R"("text":"a","sampling_params":{"temperature":-1})", "sampling_params.temperature");
  refused(R"("text":"a","sampling_params":{"json_schema":"{}"})", "sampling_params.json_schema");
  refused(R"("text":"a","top_logprobs_num":1000)", "top_logprobs_num");
  refused(R"("text":"a","logprob_start_len":-2)", "logprob_start_len");
  refused(R"("text":"a","token_ids_logprob":["x"])", "token_ids_logprob");
  refused(R"("text":"a","image_data":"x")", "image_data");
  refused(R"("text":["a","b"],"rid":["x","y","z"])", "rid");
  refused(R"("text":["a","b"],"sampling_params":[{"n":1},{"n":2}])", "sampling_params");
  EXPECT_EQ(generate_json(R"("text":"a","lora_path":null,"image_data":[null],)" +
                          std::string(kGreedy))["output_ids"]
                .size(),
            6u);
}

TEST_F(Sglang, TokenizesAndBack) {
  RequestContext context = test::context_for(*llm_);
  auto ids = tokenizer_of(*llm_)->encode("Hello you").value();
  Json tokens = *tokenize(context, Json::parse(R"({"prompt":"Hello you"})"));
  EXPECT_EQ(tokens["tokens"], ids);
  EXPECT_EQ(tokens["count"], ids.size());
  EXPECT_EQ(tokens["max_model_len"], 128);
  Json bare = *tokenize(context, Json::parse(R"({"content":"Hello you"})"));
  EXPECT_LT(bare["tokens"].size(), ids.size());
  EXPECT_EQ(
      bare,
      *tokenize(context, Json::parse(R"({"messages":[{"role":"user","content":"Hello you"}]})")));
  Json lists = *tokenize(context, Json::parse(R"({"prompt":["a","Hello you"]})"));
  EXPECT_EQ(lists["tokens"][1], ids);
  EXPECT_EQ(lists["count"][1], ids.size());
  EXPECT_EQ((*detokenize(context, {{"tokens", ids}}))["text"], "Hello you");
  EXPECT_EQ((*detokenize(context, {{"tokens", {ids, ids}}}))["text"].size(), 2u);
  for (const char* bad : {"{}", R"({"tokens":"a"})", R"({"tokens":[-1]})", R"({"tokens":[[1],2]})",
                          R"({"tokens":[99999999]})"}) {
    EXPECT_FALSE(detokenize(context, Json::parse(bad))) << bad;
  }
  for (const char* bad : {"{}", R"({"prompt":7})", R"({"prompt":[7]})", R"({"messages":[]})"}) {
    EXPECT_FALSE(tokenize(context, Json::parse(bad))) << bad;
  }
}

TEST_F(Sglang, CallsAreReadFromText) {
  RequestContext context = test::context_for(*llm_);
  auto parse = [&](const std::string& fields) {
    return parse_function_call(context, Json::parse("{" + fields + "}"));
  };
  const std::string text = R"("text":"I look.\n<tool_call>\n{\"name\": \"add\", \"arguments\": )"
                           R"({\"a\": 1}}\n</tool_call>")";
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"add"}}],)";
  Json read = parse(tools + R"("tool_call_parser":"qwen25",)" + text).value();
  EXPECT_EQ(read, Json::parse(R"({"normal_text":"I look.","calls":
      [{"tool_index":0,"name":"add","parameters":"{\"a\": 1}"}]})"));
  EXPECT_EQ(parse(R"("tool_call_parser":"llama3","text":"no call")").value(),
            Json::parse(R"({"normal_text":"no call","calls":[]})"));
  EXPECT_EQ(parse(text).error().param, "tool_call_parser") << "the template shows no format";
  auto none = parse(R"("tool_call_parser":"none",)" + text).error();
  EXPECT_EQ(none.param, "tool_call_parser");
  EXPECT_TRUE(none.error.message.contains("\"none\"")) << none.error.message;
  EXPECT_EQ(parse(R"("tool_call_parser":"x",)" + text).error().param, "tool_call_parser");
  EXPECT_EQ(parse(R"("tool_call_parser":"qwen")").error().param, "text");
  EXPECT_EQ(parse(R"("tools":7,"tool_call_parser":"qwen",)" + text).error().param, "tools");
  context.syntax.tool_calls = find_tool_call_format("qwen", {}).value();
  EXPECT_EQ(parse(tools + text).value(), read);
}

TEST_F(Sglang, ReasoningIsSeparatedFromText) {
  RequestContext context = test::context_for(*llm_);
  auto parse = [&](const std::string& fields) {
    return separate_reasoning(context, Json::parse("{" + fields + "}"));
  };
  std::string thoughts(10000, 'x');  // more than a piece
  EXPECT_EQ(
      parse(R"("reasoning_parser":"qwen3","text":"<think>)" + thoughts + R"(</think>\n\nYes")")
          .value(),
      (Json{{"reasoning_text", thoughts}, {"text", "Yes"}}));
  EXPECT_EQ(parse(R"("reasoning_parser":"qwen3","text":"Hm.</think>Yes")").value(),
            Json::parse(R"({"reasoning_text":"","text":"Hm.</think>Yes"})"));
  EXPECT_EQ(parse(R"("reasoning_parser":"deepseek-r1","text":"Hm.</think>Yes")").value(),
            Json::parse(R"({"reasoning_text":"Hm.","text":"Yes"})"));
  EXPECT_EQ(parse(R"("text":"Yes")").error().param, "reasoning_parser");
  EXPECT_EQ(parse(R"("reasoning_parser":"x","text":"Yes")").error().param, "reasoning_parser");
  EXPECT_EQ(parse(R"("reasoning_parser":"qwen3","text":7)").error().param, "text");
}

TEST_F(Sglang, ScoreRefusesWhatItCannotRead) {
  for (const char* bad :
       {"{}", R"({"items":["a"]})", R"({"items":[],"label_token_ids":[1]})",
        R"({"items":[7],"label_token_ids":[1]})",
        R"({"query":"a","items":[[1]],"label_token_ids":[1]})",
        R"({"items":["a"],"label_token_ids":[]})", R"({"items":["a"],"label_token_ids":[[1],[2]]})",
        R"({"items":["a"],"label_token_ids":[1],"temperature":2})"}) {
    EXPECT_EQ(ask(*llm_, plan_score, bad).substr(0, 6), "error ") << bad;
  }
}

}  // namespace
}  // namespace banyan::sglang_test
