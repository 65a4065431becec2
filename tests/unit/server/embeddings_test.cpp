// Embeddings, ranking and scores: the answers of every protocol, from the body to the bytes.
#include "server/embed/embeddings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/base64.h"
#include "server/embed/endpoints.h"
#include "server/llamacpp/endpoints.h"
#include "server/ollama/endpoints.h"
#include "server/openai/endpoints.h"
#include "server/sglang/endpoints.h"
#include "support/api.h"

namespace banyan::embeddings_test {
namespace {

using test::ask;
using test::ask_json;

constexpr size_t kHidden = 32;

double length_of(const Json& vector) {
  double squares = 0;
  for (const Json& value : vector) squares += value.get<double>() * value.get<double>();
  return std::sqrt(squares);
}

class Embeddings : public testing::Test {
 protected:
  Json openai(const std::string& fields) {
    return ask_json(*llm_, plan_openai_embeddings, "{" + fields + "}");
  }
  std::string refusal(Planner planner, const std::string& fields) {
    return ask(*llm_, planner, "{" + fields + "}");
  }

  std::unique_ptr<Llm> llm_ = test::tiny_llm("{% for m in messages %}{{ m.content }}{% endfor %}",
                                             {.vocabulary = 703, .context = 512});
};

TEST_F(Embeddings, OpenAisHaveTheShapeThatClientsRead) {
  Json answer = openai(R"("model":"tiny","input":["ab","a"])");
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["model"], "tiny");
  ASSERT_EQ(answer["data"].size(), 2u);
  EXPECT_EQ(answer["data"][1]["index"], 1);
  EXPECT_EQ(answer["data"][1]["object"], "embedding");
  ASSERT_EQ(answer["data"][1]["embedding"].size(), kHidden);
  EXPECT_NEAR(length_of(answer["data"][1]["embedding"]), 1, 1e-6);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"]);
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(openai(R"("input":"ab")")["data"][0], answer["data"][0]);
}

TEST_F(Embeddings, TheyAreWhatLlmEmbedReturns) {
  std::vector<float> expected = llm_->embed({{.text = "some text"}}).value()[0];
  Json answer = openai(R"("input":"some text")")["data"][0]["embedding"];
  ASSERT_EQ(answer.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(answer[i].get<float>(), expected[i]);
}

TEST_F(Embeddings, TextsTokensAndListsOfThemAreTaken) {
  std::vector<TokenId> ids = llm_->encode("ab").value();
  Json from_text = openai(R"("input":"ab")")["data"];
  std::string list = Json(ids).dump();
  EXPECT_EQ(openai(R"("input":)" + list)["data"], from_text);
  EXPECT_EQ(openai(R"("input":[)" + list + "]")["data"], from_text);
  EXPECT_NE(openai(R"("input":"ab","add_special_tokens":false)")["data"], from_text);
}

TEST_F(Embeddings, Base64HoldsTheSameBits) {
  Json numbers = openai(R"("input":"ab")")["data"][0]["embedding"];
  Json text = openai(R"("input":"ab","encoding_format":"base64")")["data"][0]["embedding"];
  std::string bytes = from_base64(text.get<std::string>()).value();
  ASSERT_EQ(bytes.size(), kHidden * sizeof(float));
  std::vector<float> values(kHidden);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < kHidden; ++i) EXPECT_EQ(numbers[i].get<float>(), values[i]);
}

TEST_F(Embeddings, FewerDimensionsHaveLengthOneAgain) {
  Json all = openai(R"("input":"ab")")["data"][0]["embedding"];
  Json few = openai(R"("input":"ab","dimensions":5)")["data"][0]["embedding"];
  ASSERT_EQ(few.size(), 5u);
  EXPECT_NEAR(length_of(few), 1, 1e-6);
  EXPECT_NEAR(few[0].get<double>() / few[1].get<double>(),
              all[0].get<double>() / all[1].get<double>(), 1e-4);
  Json raw = openai(R"("input":"ab","normalize":false)")["data"][0]["embedding"];
  EXPECT_GT(std::abs(length_of(raw) - 1), 1e-3);
  EXPECT_NEAR(raw[0].get<double>() / length_of(raw), all[0].get<double>(), 1e-6);
}

TEST_F(Embeddings, LongTextsAreCutOnlyOnRequest) {
  std::string text(9000, 'a');
  std::string input = R"("input":")" + text + "\"";
  EXPECT_TRUE(refusal(plan_openai_embeddings, input).starts_with("error")) << "too long";
  Json cut = openai(input + R"(,"truncate_prompt_tokens":-1)");
  EXPECT_EQ(cut["usage"]["prompt_tokens"], llm_->info().context_length_tokens);
  Json ten = openai(input + R"(,"truncate_prompt_tokens":10)");
  EXPECT_EQ(ten["usage"]["prompt_tokens"], 10);
  // The token that ends every text stays the last.
  TextRequest request{.text = text};
  ASSERT_TRUE(truncate(*llm_, 10, request));
  EXPECT_EQ(request.ids.back(), llm_->encode("a").value().back());
}

TEST_F(Embeddings, WhatCannotBeIsRefusedByName) {
  for (auto [fields, message] :
       {std::pair("", "input: input is missing"),
        {R"("input":[])", "it must be a string"},
        {R"("input":"a","dimensions":33)", "dimensions"},
        {R"("input":"a","encoding_format":"int8")", "encoding_format must be float or base64"},
        {R"("input":[3,1000000])", "1000000"},
        {R"("input":["a",5])", "input"},
        {R"("input":"a","messages":[{}])", "messages is not supported"},
        {R"("input":"a","truncate_prompt_tokens":0)", "truncate_prompt_tokens is 0"}}) {
    std::string answer = refusal(plan_openai_embeddings, fields);
    EXPECT_TRUE(answer.starts_with("error ")) << answer;
    EXPECT_TRUE(answer.contains(message)) << fields << ": " << answer;
  }
}

TEST_F(Embeddings, LlamaCppsListHasAListOfVectorsForEachText) {
  Json list = ask_json(*llm_, plan_llama_embedding, R"({"content":["ab","a"]})");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1]["index"], 1);
  EXPECT_EQ(list[0]["embedding"][0], openai(R"("input":"ab")")["data"][0]["embedding"]);
  Json raw = ask_json(*llm_, plan_llama_embedding, R"({"input":"ab","embd_normalize":-1})");
  EXPECT_GT(std::abs(length_of(raw[0]["embedding"][0]) - 1), 1e-3);
  EXPECT_TRUE(refusal(plan_llama_embedding, R"("content":"a","embd_normalize":1)")
                  .contains("embd_normalize is 1"));
}

TEST_F(Embeddings, SglangsHaveMetaInfo) {
  Json one = ask_json(*llm_, plan_encode, R"({"text":"ab"})");
  EXPECT_EQ(one["embedding"], openai(R"("input":"ab")")["data"][0]["embedding"]);
  EXPECT_EQ(one["meta_info"]["id"], "0123");
  EXPECT_EQ(one["meta_info"]["prompt_tokens"], llm_->encode("ab").value().size());
  EXPECT_GT(one["meta_info"]["e2e_latency"], 0);
  Json list = ask_json(*llm_, plan_encode, R"({"input_ids":[[3,4],[5]],"rid":["x","y"]})");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1]["meta_info"]["id"], "y");
  EXPECT_TRUE(ask_json(*llm_, plan_encode, R"({"input_ids":[[3]]})").is_array());
  EXPECT_TRUE(refusal(plan_encode, "").contains("input_ids must be given"));
}

TEST_F(Embeddings, OllamasAreCutByDefault) {
  std::string text(9000, 'a');
  Json answer =
      ask_json(*llm_, plan_ollama_embed,
               R"({"model":"tiny","input":["ab",")" + text + R"("],"options":{"num_ctx":64}})");
  ASSERT_EQ(answer["embeddings"].size(), 2u);
  EXPECT_EQ(answer["embeddings"][0], openai(R"("input":"ab")")["data"][0]["embedding"]);
  EXPECT_EQ(answer["model"], "tiny");
  EXPECT_GT(answer["total_duration"], 0);
  EXPECT_GT(answer["prompt_eval_count"], 100);
  EXPECT_TRUE(refusal(plan_ollama_embed, R"("input":")" + text + R"(","truncate":false)")
                  .starts_with("error"));
  EXPECT_EQ(ask_json(*llm_, plan_ollama_embed, R"({"model":"tiny"})")["embeddings"], Json::array())
      << "which asks to load the model";
  Json old = ask_json(*llm_, plan_ollama_embeddings, R"({"model":"tiny","prompt":"ab"})");
  EXPECT_EQ(old["embedding"].size(), kHidden);
}

TEST_F(Embeddings, DocumentsAreRankedByAsking) {
  Json answer = ask_json(*llm_, plan_rerank,
                         R"({"query":"q","documents":["aa",{"text":"b"},"c"],"top_n":2})");
  const Json& results = answer["results"];
  ASSERT_EQ(results.size(), 2u);
  EXPECT_GE(results[0]["relevance_score"], results[1]["relevance_score"]);
  for (const Json& result : results) {
    EXPECT_GT(result["relevance_score"], 0);
    EXPECT_LT(result["relevance_score"], 1);
    auto index = result["index"].get<size_t>();
    EXPECT_EQ(result["document"]["text"], std::vector<std::string>({"aa", "b", "c"})[index]);
  }
  EXPECT_GT(answer["usage"]["total_tokens"], 0);
  // The same probabilities, as log-probabilities of the first tokens of the answer.
  Json asked = ask_json(*llm_, plan_rerank,
                        R"({"query":"q","documents":["b"],"top_n":0,"return_documents":false})");
  EXPECT_FALSE(asked["results"][0].contains("document"));
  TextRequest prompt{.text =
                         "Judge whether the Document meets the requirements based on the Query and "
                         "the Instruct provided. Note that the answer can only be \"yes\" or "
                         "\"no\".<Instruct>: Given a web search query, retrieve relevant passages "
                         "that answer the query\n<Query>: q\n<Document>: b",
                     .add_special_tokens = false,
                     .sampling = {.temperature = 0},
                     .options = {.max_new_tokens = 1}};
  prompt.options.logprob_token_ids = {llm_->encode("yes", false).value()[0],
                                      llm_->encode("no", false).value()[0]};
  Generation drawn = llm_->generate(prompt).value();
  const auto& chosen = drawn.logprobs.at(0).chosen;
  double yes = std::exp(chosen[0].logprob), no = std::exp(chosen[1].logprob);
  EXPECT_NEAR(asked["results"][0]["relevance_score"].get<double>(), yes / (yes + no), 1e-6);
}

TEST_F(Embeddings, TextEmbeddingsInferencesFormHasTexts) {
  Json list = ask_json(*llm_, plan_rerank, R"({"query":"q","texts":["a","b"],"return_text":true})");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_GE(list[0]["score"], list[1]["score"]);
  EXPECT_TRUE(list[0]["text"].is_string());
}

TEST_F(Embeddings, RankingRefusesWhatItCannotRead) {
  for (auto [fields, message] :
       {std::pair(R"("documents":["a"])", "query is missing"),
        {R"("query":"q")", "documents is missing"},
        {R"("query":"q","documents":[])", "1 to"},
        {R"("query":"q","documents":[5])", "5 is no text"},
        {R"("query":"q","documents":["a"],"top_n":-1)", "top_n"},
        {R"("query":"q","texts":["a"],"raw_scores":true)", "raw_scores"}}) {
    std::string answer = refusal(plan_rerank, fields);
    EXPECT_TRUE(answer.starts_with("error ") && answer.contains(message)) << fields << answer;
  }
}

TEST_F(Embeddings, VllmsScoresAreOfPairs) {
  Json answer = ask_json(*llm_, plan_score, R"({"text_1":"q","text_2":["a","b"]})");
  ASSERT_EQ(answer["data"].size(), 2u);
  EXPECT_EQ(answer["data"][1]["object"], "score");
  Json ranked = ask_json(*llm_, plan_rerank, R"({"query":"q","documents":["a"]})");
  EXPECT_EQ(answer["data"][0]["score"], ranked["results"][0]["relevance_score"]);
  Json pairs = ask_json(*llm_, plan_score, R"({"queries":["q","r"],"documents":["a","b"]})");
  EXPECT_EQ(pairs["data"][0]["score"], answer["data"][0]["score"]);
  EXPECT_TRUE(refusal(plan_score, R"("text_1":["a","b"],"text_2":["a","b","c"])")
                  .contains("text_1 has 2 texts and text_2 has 3"));
}

TEST(EmbeddingModel, DocumentsAreRankedByTheAngleOfEmbeddings) {
  test::TemporaryFolder folder;
  EngineConfig config = test::tiny_text_model(folder);
  folder.write("modules.json", R"([{"idx":0,"name":"0","path":"","type":
      "sentence_transformers.models.Transformer"}])");
  auto plain = Llm::load(config).value();
  EXPECT_FALSE(plain->is_embedding_model()) << "no pooling";
  config.embedding_model = true;
  auto llm = Llm::load(config).value();
  EXPECT_TRUE(llm->is_embedding_model());
  Json answer = ask_json(*llm, plan_rerank, R"({"query":"ab","documents":["c","ab"]})");
  EXPECT_EQ(answer["results"][0]["index"], 1);
  EXPECT_NEAR(answer["results"][0]["relevance_score"].get<double>(), 1, 1e-6);
  auto vectors = llm->embed({{.text = "ab"}, {.text = "c"}}).value();
  double cosine = 0;
  for (size_t i = 0; i < kHidden; ++i) cosine += double{vectors[0][i]} * vectors[1][i];
  EXPECT_NEAR(answer["results"][1]["relevance_score"].get<double>(), cosine, 1e-6);
  EXPECT_TRUE(ask(*llm, plan_rerank, R"({"query":"q","documents":["a"],"instruct":"x"})")
                  .contains("put the instruction into the query"));
}

}  // namespace
}  // namespace banyan::embeddings_test
