// A decode worker and the prefill workers that compute its prompts, in this process: what a client
// gets is what one server alone would have sent, whatever fails.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/running_server.h"
#include "base/log.h"
#include "server/prefill/prefill_store.h"
#include "support/api.h"
#include "support/models/grown_checkpoint.h"
#include "support/models/tiny_model.h"

namespace banyan::prefill_test {
namespace {

using test::Client;
using test::Response;
using test::RunningServer;
using test::TemporaryFolder;

// Tokens of a decode worker's prompts that were computed elsewhere.
constexpr const char* kFetched = "banyan:prefilled_tokens_total";

class PrefillApi : public testing::Test {
 protected:
  PrefillApi() { spdlog::set_level(spdlog::level::off); }

  static EngineConfig config_of(const std::string& model_path) {
    EngineConfig config{.model_path = model_path,
                        .kernels = "portable",
                        .threads = 1,
                        .page_size_tokens = 16,
                        .total_tokens_max = 4096,
                        .chunked_prefill_tokens = 64,
                        .state_digest = true};
    config.cache_storage.prefetch_tokens_min = 32;
    return config;
  }
  // With a longer context.
  EngineConfig tiny_config() {
    EngineConfig config = test::tiny_model(folder_);
    config.total_tokens_max = 16384;
    config.state_digest = true;
    return config;
  }
  void add_prefill(const EngineConfig& engine) {
    prefill_.push_back(
        std::make_unique<RunningServer>(engine, ServerConfig{.port = 0, .drain_timeout_s = 0}));
    workers_.route.worker_urls.push_back(prefill_.back()->url());
  }
  void start_decode(const EngineConfig& engine) {
    workers_.route.health_interval_s = 0.02;
    workers_.tokens_min = 32;
    EngineAssembly::Storage storage;
    storage.last = [config = workers_](const TierStates& states) {
      return make_prefill_store(config, states);
    };
    decode_ = std::make_unique<RunningServer>(engine, ServerConfig{.port = 0}, std::nullopt,
                                              std::move(storage));
  }
  // Whether the decode worker takes its prefill workers for ready, or for lost, before long.
  bool sees_prefill(bool ready = true) const {
    std::string line =
        ready ? R"(state="read-only",tier="prefill"} 1)" : R"(state="off",tier="prefill"} 1)";
    for (int i = 0; i < test::kPatienceMs / 5; ++i) {
      output(*decode_, body(4, 0, 1));  // steps report it
      if (decode_->get("/metrics").body.find(line) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  double fetched() const { return decode_->figure(kFetched); }
  static std::string body(int tokens, int first, int output = 8) {
    std::string ids;
    for (int i = 0; i < tokens; ++i) {
      ids += fmt::format("{}{}", i > 0 ? "," : "", (first + i * 7) % 60);
    }
    return fmt::format(
        R"({{"input_ids": [{}], "return_logprob": true, "sampling_params": {{"temperature": 0.8,)"
        R"( "sampling_seed": 5, "max_new_tokens": {}, "ignore_eos": true}}}})",
        ids, output);
  }
  // The tokens and log-probabilities of an answer.
  static std::string output(const RunningServer& server, const std::string& body) {
    Response response = Client(server.port()).post("/generate", body);
    EXPECT_EQ(response.status, 200) << response.body;
    size_t at = response.body.find("output_token_logprobs");
    return response.body.substr(at, response.body.find(']' + std::string("]"), at) - at);
  }

  TemporaryFolder folder_;
  PrefillConfig workers_;
  std::vector<std::unique_ptr<RunningServer>> prefill_;
  std::unique_ptr<RunningServer> decode_;
};

// Families of each kind of state: pages, windows, latents, recurrent states.
TEST_F(PrefillApi, GivesTheBitsOfOneServer) {
  for (const char* model : {"qwen3-tied", "mistral-window", "ling3-tiny", "qwen3-next"}) {
    workers_ = {};
    EngineConfig engine = config_of(test::golden_folder(model));
    RunningServer alone(engine, ServerConfig{.port = 0});
    add_prefill(engine);
    start_decode(engine);
    ASSERT_TRUE(sees_prefill());
    for (int first : {0, 1, 2}) {
      std::string request = body(150 + 20 * first, first);
      EXPECT_EQ(output(*decode_, request), output(alone, request)) << model;
    }
    EXPECT_GE(fetched(), 3 * 128) << model;
    decode_.reset();
    prefill_.clear();
  }
}

TEST_F(PrefillApi, ComputesShortPromptsItself) {
  EngineConfig engine = config_of(test::golden_folder("qwen3-tied"));
  add_prefill(engine);
  start_decode(engine);
  ASSERT_TRUE(sees_prefill());
  output(*decode_, body(30, 0));
  EXPECT_EQ(prefill_[0]->figure("sglang:prompt_tokens_total"), 0);
  std::string request = body(100, 1);
  output(*decode_, request);
  double given = prefill_[0]->figure("sglang:prompt_tokens_total");
  EXPECT_GE(given, 96);
  output(*decode_, request);  // cached here
  EXPECT_EQ(prefill_[0]->figure("sglang:prompt_tokens_total"), given);
}

TEST_F(PrefillApi, SurvivesTheLossOfItsWorkers) {
  EngineConfig engine = config_of(test::golden_folder("ling3-tiny"));
  RunningServer alone(engine, ServerConfig{.port = 0});
  add_prefill(engine);
  add_prefill(engine);
  start_decode(engine);
  ASSERT_TRUE(sees_prefill());
  prefill_[0].reset();
  std::string one = body(200, 3), other = body(200, 4);
  EXPECT_EQ(output(*decode_, one), output(alone, one));
  EXPECT_GE(fetched(), 192);
  prefill_[1].reset();
  EXPECT_EQ(output(*decode_, other), output(alone, other));
  EXPECT_TRUE(sees_prefill(false));
}

// The one that is at work leaves; what has arrived from it stays, and the other continues.
TEST_F(PrefillApi, ContinuesElsewhereInTheMiddleOfAPrompt) {
  EngineConfig engine = tiny_config();
  RunningServer alone(engine, ServerConfig{.port = 0});
  engine.chunked_prefill_tokens = 8;  // takes a while
  add_prefill(engine);
  add_prefill(engine);
  start_decode(engine);
  ASSERT_TRUE(sees_prefill());
  std::string request = body(2000, 1), got;
  std::jthread client([&] { got = output(*decode_, request); });
  std::unique_ptr<RunningServer>* works = nullptr;
  for (int i = 0; works == nullptr && i < 10000; ++i) {
    for (auto& server : prefill_) {
      if (server->figure("sglang:num_running_reqs") > 0) works = &server;
    }
  }
  ASSERT_NE(works, nullptr);
  works->reset();
  client.join();
  EXPECT_EQ(got, output(alone, request));
  EXPECT_GE(fetched(), 1984);
}

TEST_F(PrefillApi, UsesNoStatesOfAnotherModel) {
  add_prefill(config_of(test::golden_folder("llama2-mha")));
  EngineConfig engine = config_of(test::golden_folder("qwen3-tied"));
  RunningServer alone(engine, ServerConfig{.port = 0});
  start_decode(engine);
  std::string request = body(100, 0);
  EXPECT_EQ(output(*decode_, request), output(alone, request));
  EXPECT_EQ(prefill_[0]->figure("sglang:prompt_tokens_total"), 0);
  Response refused = Client(prefill_[0]->port()).post("/worker/states", "{}\n");
  EXPECT_EQ(refused.status, 400) << refused.body;
}

// As while servers are replaced by newer ones.
TEST_F(PrefillApi, UsesThoseThatFit) {
  add_prefill(config_of(test::golden_folder("llama2-mha")));
  EngineConfig engine = config_of(test::golden_folder("qwen3-tied"));
  add_prefill(engine);
  RunningServer alone(engine, ServerConfig{.port = 0});
  start_decode(engine);
  ASSERT_TRUE(sees_prefill());
  for (int first : {0, 1, 2, 3}) {
    std::string request = body(150, first);
    EXPECT_EQ(output(*decode_, request), output(alone, request));
  }
  EXPECT_EQ(prefill_[0]->figure("sglang:prompt_tokens_total"), 0);
  EXPECT_GE(fetched(), 4 * 128);  // they begin alike
}

// What a disk has is not computed again, and what is left may be too little for others.
TEST_F(PrefillApi, ComesAfterADisk) {
  TemporaryFolder folder;
  EngineConfig engine = config_of(test::golden_folder("qwen3-tied"));
  RunningServer alone(engine, ServerConfig{.port = 0});
  add_prefill(engine);
  engine.cache_storage.backend = "disk";
  engine.cache_storage.directory = folder.path() + "/cache";
  engine.cache_storage.size_bytes = 64 << 20;
  engine.cache_storage.write_policy = "write_through";
  engine.cache_storage.prefetch_policy = "wait_complete";
  start_decode(engine);
  ASSERT_TRUE(sees_prefill());
  EXPECT_EQ(output(*decode_, body(150, 5)), output(alone, body(150, 5)));
  EXPECT_EQ(fetched(), 144);
  decode_.reset();
  double given = prefill_[0]->figure("sglang:prompt_tokens_total");
  start_decode(engine);
  ASSERT_TRUE(sees_prefill());
  EXPECT_EQ(output(*decode_, body(170, 5)), output(alone, body(170, 5)));
  EXPECT_EQ(prefill_[0]->figure("sglang:prompt_tokens_total"), given) << "16 tokens are few";
  EXPECT_EQ(output(*decode_, body(210, 5)), output(alone, body(210, 5)));
  EXPECT_GT(prefill_[0]->figure("sglang:prompt_tokens_total"), given);
}

// Clients that leave while their prompt is computed elsewhere, and many that share one.
TEST_F(PrefillApi, EndsWithItsClients) {
  EngineConfig engine = tiny_config();
  RunningServer alone(engine, ServerConfig{.port = 0});
  add_prefill(engine);
  start_decode(engine);
  ASSERT_TRUE(sees_prefill());
  std::string request = body(1000, 2);
  for (int i = 0; i < 4; ++i) {
    Client leaves(decode_->port());
    std::string text = body(1000, 3 + i);
    leaves.send(
        fmt::format("POST /generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}"
                    "\r\n\r\n{}",
                    text.size(), text));
  }
  std::string expected = output(alone, request);
  std::vector<std::jthread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] { EXPECT_EQ(output(*decode_, request), expected); });
  }
  clients.clear();
  EXPECT_TRUE(decode_->reaches("sglang:num_running_reqs", 0, true));
}

}  // namespace
}  // namespace banyan::prefill_test
