// LoRA adapters over HTTP: every API's way to choose one, and loading and unloading.
#include <fmt/format.h>

#include "api/server_fixture.h"
#include "base/json.h"
#include "support/models/adapters.h"
#include "support/models/grown_checkpoint.h"

namespace banyan::test::api_adapters_test {
namespace {

class AdapterServer : public ServerTest {
 protected:
  AdapterServer() {
    engine.model_path = golden_folder(kModel);
    engine.load_format = "auto";
    engine.adapters = {{"poet", TestAdapter(kModel, 1).save(poet_)}};
    engine.adapters_max = 2;
    engine.total_tokens_max = 512;
    TestAdapter(kModel, 2).save(bard_);
    config.served_model_names = {"tiny"};
  }

  // llama.cpp's choice of one adapter.
  static Json scale(const Json& id, double value) {
    Json entry = {{"id", id}, {"scale", value}};
    return Json::array({entry});
  }
  Json post(const std::string& path, const Json& body, int status = 200) {
    Response response = client().post(path, body.dump());
    EXPECT_EQ(response.status, status) << path << ' ' << response.body;
    return Json::parse(response.body, nullptr, false);
  }
  // The tokens after a prompt, with these fields more.
  std::vector<TokenId> completion(const Json& more = Json::object()) {
    Json body = {{"prompt", kPrompt},
                 {"max_tokens", 8},
                 {"temperature", 0},
                 {"return_token_ids", true},
                 {"ignore_eos", true}};
    body.update(more);
    return post("/v1/completions", body)["choices"][0]["token_ids"];
  }
  std::string refusal(const Json& more, int status = 400) {
    Json body = {{"prompt", kPrompt}, {"max_tokens", 8}};
    body.update(more);
    return post("/v1/completions", body, status)["error"]["message"];
  }
  std::vector<std::string> models() {
    std::vector<std::string> names;
    Json all = Json::parse(get("/v1/models").body, nullptr, false);
    for (const Json& model : all["data"]) {
      names.push_back(model["id"]);
    }
    return names;
  }

  static constexpr const char* kModel = "qwen3-tied";
  const std::vector<TokenId> kPrompt = {5, 9, 77, 5, 30, 0, 42, 42};
  TemporaryFolder poet_, bard_;
};

TEST_F(AdapterServer, IsChosenUnderTheNamesOfEveryApi) {
  start();
  std::vector<TokenId> base = completion({{"model", "tiny"}}),
                       poet = completion({{"model", "poet"}});
  EXPECT_NE(base, poet);
  EXPECT_EQ(completion(), base);
  EXPECT_EQ(completion({{"model", "tiny:poet"}}), poet);
  EXPECT_EQ(completion({{"lora_path", "poet"}}), poet);
  EXPECT_EQ(completion({{"model", "tiny"}, {"lora_path", "poet"}}), poet);
  EXPECT_EQ(completion({{"lora", scale(0, 1.0)}}), poet);
  EXPECT_EQ(completion({{"lora", scale(0, 0)}}), base);
  EXPECT_EQ(completion({{"lora", Json::array()}}), base);

  Json body = {
      {"input_ids", {kPrompt, kPrompt}},
      {"sampling_params", {{"max_new_tokens", 8}, {"temperature", 0}, {"ignore_eos", true}}},
      {"lora_path", {"poet", nullptr}}};
  Json both = post("/generate", body);
  EXPECT_EQ(both[0]["output_ids"].get<std::vector<TokenId>>(), poet);
  EXPECT_EQ(both[1]["output_ids"].get<std::vector<TokenId>>(), base);
  Json score = {{"query", kPrompt}, {"items", {{1}}}, {"label_token_ids", {3, 4}}};
  Json plain = post("/v1/score", score)["scores"];
  score["model"] = "poet";
  EXPECT_NE(post("/v1/score", score)["scores"], plain);
}

TEST_F(AdapterServer, RefusesWhatItDoesNotHaveByName) {
  start();
  std::string unknown = "there is no adapter \"bard\"; there are: \"poet\"";
  EXPECT_EQ(refusal({{"lora_path", "bard"}}), unknown);
  EXPECT_EQ(refusal({{"model", "tiny:bard"}}), unknown);
  EXPECT_TRUE(refusal({{"model", "bard"}}, 404).contains("the model \"bard\" does not exist"));
  EXPECT_EQ(refusal({{"lora", scale(1, 1)}}), "lora: id 1: there are 1 adapters");
  EXPECT_TRUE(refusal({{"lora", scale(0, 0.5)}}).contains("scale 0.5 of id 0"));
  EXPECT_TRUE(refusal({{"lora", "poet"}}).contains("not a list of {id, scale}"));
  EXPECT_TRUE(refusal({{"lora", scale("x", 1)}}).contains("there are 1 adapters"));
  EXPECT_TRUE(refusal({{"lora", Json::array({3})}}).contains("3 is not {id, scale}"));
  EXPECT_TRUE(refusal({{"lora_path", 5}}).contains("lora_path is 5"));
  EXPECT_TRUE(refusal({{"lora_request", {{"name", "poet"}}}}).contains("lora_request"));
  std::string closed = post("/v1/load_lora_adapter",
                            {{"lora_name", "bard"}, {"lora_path", bard_.path()}}, 400)["message"];
  EXPECT_TRUE(closed.contains("--enable-lora")) << closed;
  EXPECT_TRUE(post("/unload_lora_adapter", {{"lora_name", "poet"}}, 400)["message"]
                  .get<std::string>()
                  .contains("--enable-lora"));
}

// Elsewhere any name stands for the model.
TEST_F(AdapterServer, ANameOfNothingIsNotAnsweredByTheModel) {
  config.served_model_names.clear();
  config.runtime_adapters = true;
  start();
  EXPECT_TRUE(refusal({{"model", "bard"}}, 404).contains("does not exist"));
  EXPECT_EQ(completion({{"model", ""}}), completion());
  EXPECT_EQ(client().post("/v1/unload_lora_adapter", R"({"lora_name":"poet"})").status, 200);
  EXPECT_TRUE(refusal({{"model", "poet"}}, 404).contains("does not exist"));
}

TEST_F(AdapterServer, AListOfAdaptersHasOneForEachPrompt) {
  start();
  EXPECT_TRUE(refusal({{"lora_path", {"poet", "poet"}}}).contains("it must be a name"));
  Json three = {{"input_ids", {kPrompt, kPrompt}}, {"lora_path", {"poet", nullptr, "poet"}}};
  EXPECT_EQ(client().post("/generate", three.dump()).status, 400);
  three["lora_path"] = {"poet", nullptr};
  Json both = post("/encode", three);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_NE(both[0]["embedding"], both[1]["embedding"]);
  Json poet = post("/v1/embeddings", {{"model", "poet"}, {"input", kPrompt}});
  EXPECT_EQ(poet["data"][0]["embedding"], both[0]["embedding"]);
}

TEST_F(AdapterServer, ListsAdaptersBesideTheModel) {
  start();
  EXPECT_EQ(models(), (std::vector<std::string>{"tiny", "poet"}));
  Json poet = Json::parse(get("/v1/models/poet").body);
  EXPECT_EQ(poet["parent"], "tiny");
  EXPECT_EQ(poet["root"], poet_.path());
  EXPECT_EQ(Json::parse(get("/lora-adapters").body),
            Json::array({Json{{"id", 0}, {"path", poet_.path()}, {"scale", 0.0}}}));
  std::string metrics = get("/metrics").body;
  EXPECT_TRUE(metrics.contains(R"(max_lora="2",running_lora_adapters="",waiting_lora)")) << metrics;
}

TEST_F(AdapterServer, AnAdapterForAllIsThatOfRequestsThatNameNone) {
  config.defaults.adapter = "poet";
  start();
  std::vector<TokenId> poet = completion({{"model", "poet"}});
  EXPECT_EQ(completion(), poet);
  std::vector<TokenId> base = completion({{"lora", scale(0, 0)}});
  EXPECT_NE(base, poet);
  EXPECT_EQ(Json::parse(get("/lora-adapters").body)[0]["scale"], 1.0);
  EXPECT_EQ(post("/lora-adapters", scale(0, 0)), (Json{{"success", true}}));
  EXPECT_EQ(completion(), base);
  EXPECT_EQ(post("/lora-adapters", scale(0, 1)), (Json{{"success", true}}));
  EXPECT_EQ(completion(), poet);
  post("/lora-adapters", scale(0, 2), 400);
}

TEST_F(AdapterServer, LoadsAndUnloadsWhileItRuns) {
  config.runtime_adapters = true;
  start();
  Json bard = {{"lora_name", "bard"}, {"lora_path", bard_.path()}};
  EXPECT_EQ(client().post("/v1/load_lora_adapter", bard.dump()).body,
            "Success: LoRA adapter 'bard' added successfully.");
  EXPECT_EQ(models(), (std::vector<std::string>{"tiny", "bard", "poet"}));
  std::vector<TokenId> tokens = completion({{"model", "bard"}});
  EXPECT_NE(tokens, completion({{"model", "poet"}}));
  EXPECT_TRUE(post("/v1/load_lora_adapter", bard, 400)["message"].get<std::string>().contains(
      "already loaded"));
  Json third = {{"lora_name", "third"}, {"lora_path", bard_.path()}};
  Json full = post("/load_lora_adapter", third, 400);
  EXPECT_EQ(full["success"], false);
  EXPECT_TRUE(full["error_message"].get<std::string>().contains("there is room for 2 adapters"));

  Json left = post("/unload_lora_adapter", {{"lora_name", "poet"}});
  EXPECT_EQ(left["loaded_adapters"], (Json{{"bard", bard_.path()}}));
  EXPECT_EQ(post("/load_lora_adapter", third)["success"], true);
  EXPECT_EQ(completion({{"model", "third"}}), tokens);
  EXPECT_EQ(client().post("/v1/unload_lora_adapter", R"({"lora_name":"bard"})").body,
            "Success: LoRA adapter 'bard' removed successfully.");
  EXPECT_EQ(post("/v1/unload_lora_adapter", {{"lora_name", "bard"}}, 404)["message"],
            "there is no adapter \"bard\"; there are: \"third\"");
}

TEST_F(AdapterServer, RefusesFoldersThatAreNoAdapters) {
  config.runtime_adapters = true;
  start();
  auto refused = [&](const Json& body, int status = 400) {
    return post("/v1/load_lora_adapter", body, status)["message"].get<std::string>();
  };
  EXPECT_TRUE(refused({{"lora_path", "x"}}).contains("lora_name is missing"));
  EXPECT_TRUE(refused({{"lora_name", "x"}}).contains("lora_path is missing"));
  EXPECT_TRUE(refused({{"lora_name", std::string(400, 'x')}, {"lora_path", "x"}}).contains("400"));
  EXPECT_TRUE(refused({{"lora_name", "x"}, {"lora_path", "/nowhere"}}, 404)
                  .contains("/nowhere/adapter_config.json: no such file"));
  EXPECT_TRUE(refused({{"lora_name", "x"}, {"lora_path", "x.gguf"}}).contains("GGUF"));
  TemporaryFolder damaged;
  damaged.write("adapter_config.json", R"({"peft_type":"LORA"})");
  damaged.write("adapter_model.safetensors", "damaged");
  EXPECT_TRUE(refused({{"lora_name", "x"}, {"lora_path", damaged.path()}}).contains("safetensors"));
  EXPECT_EQ(completion({{"model", "poet"}}).size(), 8u) << "it goes on";
}

}  // namespace
}  // namespace banyan::test::api_adapters_test
