// Engines that keep prefixes in a store: what they find again, and what they must not find.
#include <gtest/gtest.h>

#include <functional>

#include "banyan/engine.h"
#include "engine/assemble.h"
#include "kernels/select.h"
#include "support/drive.h"
#include "support/models/checkpoint_copy.h"
#include "support/models/grown_checkpoint.h"
#include "support/tier/fake_store.h"
#include "support/value_or_abort.h"

namespace banyan::test::engine_tiers_test {
namespace {

EngineConfig stored_config(const char* model) {
  EngineConfig config{.model_path = golden_folder(model),
                      .kernels = "portable",
                      .threads = 1,
                      .page_size_tokens = 4,
                      .total_tokens_max = 512};
  config.cache_storage = {.backend = "disk",
                          .write_policy = "write_through",
                          .prefetch_policy = "wait_complete",
                          .prefetch_tokens_min = 1};
  return config;
}

Result<std::unique_ptr<Engine>> load_on(const EngineConfig& config, std::shared_ptr<FakeDisk> disk,
                                        FakeStore** store = nullptr) {
  auto fake = std::make_unique<FakeStore>(std::move(disk), FakeFaults(), 1);
  if (store != nullptr) *store = fake.get();
  return EngineAssembly::load(config, registered_families(), {}, {},
                              {.store = std::move(fake), .now_ns = {}, .load = LoadCost(0, 1e18)});
}

GenerateRequest request_of(int tokens) {
  GenerateRequest request;
  for (int i = 0; i < tokens; ++i) request.prompt.push_back(static_cast<TokenId>(i * 7 % 90));
  request.options.max_new_tokens = 4;
  return request;
}

class Restart : public testing::Test {
 protected:
  // An engine that computes a prompt and ends.
  void live(const EngineConfig& config) {
    auto engine = value_or_abort(load_on(config, disk_));
    first_ = run_alone(*engine, request_of(70));
  }
  // Another engine, with the same prompt or that of another namespace.
  Heard live_again(const EngineConfig& config, const char* salt = "") {
    FakeStore* store = nullptr;
    auto engine = value_or_abort(load_on(config, disk_, &store));
    GenerateRequest request = request_of(70);
    request.options.cache_salt = salt;
    Heard heard = run_alone(*engine, request);
    reads_ = store->reads;
    restored_ = engine->stats().storage.restored_tokens;
    return heard;
  }

  std::shared_ptr<FakeDisk> disk_ = std::make_shared<FakeDisk>();
  Heard first_;
  int64_t reads_ = 0, restored_ = 0;
};

TEST_F(Restart, GivesTheSameBitsFromTheStore) {
  for (const char* model : {"qwen3-tied", "mistral-window", "ling3-tiny", "qwen3-next"}) {
    disk_ = std::make_shared<FakeDisk>();
    EngineConfig config = stored_config(model);
    live(config);
    Heard again = live_again(config);
    EXPECT_GE(restored_, 64) << model;
    EXPECT_EQ(again.cached_tokens, restored_);
    EXPECT_EQ(again.output_ids(), first_.output_ids()) << model;
    EXPECT_TRUE(same_bits(again.output_logprobs(), first_.output_logprobs())) << model;
  }
}

// Memory that the host may not touch: what it holds goes through the host's to a disk, and comes
// back the same way.
TEST_F(Restart, GivesTheSameBitsToADevice) {
  for (const char* model : {"qwen3-tied", "mistral-window", "ling3-tiny", "qwen3-next"}) {
    disk_ = std::make_shared<FakeDisk>();
    EngineConfig config = stored_config(model);
    live(config);
    config.kernels = "fenced";  // the portable kernels', with the same bits
    config.cache_storage.host_ratio = 1;
    disk_ = std::make_shared<FakeDisk>();
    live_again(config);
    EXPECT_EQ(restored_, 0) << model;
    Heard again = live_again(config);
    EXPECT_GE(restored_, 64) << model;
    EXPECT_EQ(again.output_ids(), first_.output_ids()) << model;
    EXPECT_TRUE(same_bits(again.output_logprobs(), first_.output_logprobs())) << model;
  }
}

// More than a device holds, without any store below.
TEST(CacheStorage, KeepsInTheHostsMemoryWhatADeviceLetsGoOf) {
  EngineConfig config = stored_config("qwen3-tied");
  config.kernels = "fenced";
  config.total_tokens_max = 160;
  config.cache_storage.backend = "";
  config.cache_storage.host_ratio = 8;
  auto engine = value_or_abort(
      EngineAssembly::load(config, registered_families(), {}, {},
                           {.store = nullptr, .now_ns = {}, .load = LoadCost(0, 1e18)}));
  std::vector<Heard> first;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 6; ++i) {
      GenerateRequest request = request_of(70);
      request.prompt[0] = i;
      Heard heard = run_alone(*engine, request);
      if (round == 0) {
        first.push_back(heard);
        continue;
      }
      EXPECT_EQ(heard.output_ids(), first[static_cast<size_t>(i)].output_ids());
      EXPECT_TRUE(
          same_bits(heard.output_logprobs(), first[static_cast<size_t>(i)].output_logprobs()));
    }
  }
  const CacheStorageStats stats = engine->stats().storage;
  EXPECT_EQ(stats.layer_count, 1u);
  EXPECT_EQ(stats.layers[0].backend, "host");
  EXPECT_GE(stats.layers[0].restored_tokens, 5 * 64);
  EXPECT_GT(stats.layers[0].read_bytes, 0);
}

// Each item of a state's identity, changed one at a time.
TEST_F(Restart, FindsNothingWhereAnythingThatMattersDiffers) {
  using Change = std::function<void(EngineConfig&)>;
  const std::vector<std::pair<const char*, Change>> kChanges = {
      {"page size", [](EngineConfig& c) { c.page_size_tokens = 8; }},
      {"formats of weights", [](EngineConfig& c) { c.quantization = "int8"; }},
      {"one format", [](EngineConfig& c) { c.quantization_overrides = {"layers.0.*=bf16"}; }},
      {"weights", [](EngineConfig& c) { c.load_format = "dummy"; }},
      {"dtype", [](EngineConfig& c) { c.dtype = "bf16"; }},
      {"dtype of the cache", [](EngineConfig& c) { c.kv_cache_dtype = "int8"; }},
      {"chosen keys", [](EngineConfig& c) { c.moba_block_tokens = 16, c.moba_top_k = 1; }},
      {"model", [](EngineConfig& c) { c.model_path = golden_folder("llama2-mha"); }},
      {"kernels",
       [](EngineConfig& c) {
         for (const std::string& name : available_kernels()) {
           if (name != "portable") c.kernels = name;
         }
       }},
  };
  EngineConfig config = stored_config("qwen3-tied");
  live(config);
  for (const auto& [what, change] : kChanges) {
    EngineConfig changed = config;
    change(changed);
    if (what == std::string("kernels") && changed.kernels == "portable") continue;
    live_again(changed);
    EXPECT_EQ(reads_, 0) << what;
  }
  live_again(config, "another tenant");
  EXPECT_EQ(reads_, 0);
  live_again(config);
  EXPECT_GT(reads_, 0);
}

// A copy of the checkpoint is the same model, one with a single other number is not.
TEST_F(Restart, FindsNothingWhereACheckpointDiffers) {
  using Change = std::function<void(CheckpointCopy&)>;
  auto reads = [&](const Change& change) {
    TemporaryFolder folder;
    CheckpointCopy copy("qwen3-tied");
    change(copy);
    copy.save(folder);
    EngineConfig config = stored_config("qwen3-tied");
    config.model_path = folder.path();
    live_again(config);
    return reads_;
  };
  Json linear = {{"rope_type", "linear"}, {"factor", 2.0}};
  live(stored_config("qwen3-tied"));
  EXPECT_GT(reads([](CheckpointCopy&) {}), 0);
  EXPECT_EQ(reads([](CheckpointCopy& c) { c.set("model.norm.weight", 3, 2); }), 0);
  EXPECT_EQ(reads([](CheckpointCopy& c) { c.config["rope_theta"] = 10000; }), 0);
  EXPECT_EQ(reads([&](CheckpointCopy& c) { c.config["rope_scaling"] = linear; }), 0);
  EXPECT_EQ(reads([](CheckpointCopy& c) { c.config["rms_norm_eps"] = 0.02; }), 0);
}

// What a digest must not depend on.
TEST_F(Restart, FindsAllWhereOnlyTheScheduleDiffers) {
  EngineConfig config = stored_config("qwen3-tied");
  live(config);
  config.threads = 2;
  config.chunked_prefill_tokens = 16;
  config.running_max = 3;
  config.overlap_schedule = true;
  config.total_tokens_max = 1024;
  EXPECT_EQ(live_again(config).output_ids(), first_.output_ids());
  EXPECT_EQ(restored_, 68);
}

TEST(CacheStorage, IsRefusedWhereItCannotBe) {
  EngineConfig config = stored_config("qwen3-tied");
  config.radix_cache = false;
  auto engine = load_on(config, std::make_shared<FakeDisk>());
  ASSERT_FALSE(engine.has_value());
  EXPECT_NE(engine.error().message.find("radix cache"), std::string::npos);
  config = stored_config("qwen3-tied");
  config.kernels = "fenced";
  engine = load_on(config, std::make_shared<FakeDisk>());
  ASSERT_FALSE(engine.has_value()) << "its memory is not the host's";
  EXPECT_NE(engine.error().message.find("--hicache-size"), std::string::npos);
  config.cache_storage.host_ratio = 1e-4;
  engine = load_on(config, std::make_shared<FakeDisk>());
  ASSERT_FALSE(engine.has_value());
  EXPECT_NE(engine.error().message.find("no room for a unit of"), std::string::npos);
  config = stored_config("qwen3-tied");
  config.cache_storage.host_ratio = 1;
  engine = load_on(config, std::make_shared<FakeDisk>());
  ASSERT_FALSE(engine.has_value()) << "its memory is the host's";
  EXPECT_NE(engine.error().message.find("host's memory already"), std::string::npos);
  config = stored_config("qwen3-tied");
  config.cache_storage.write_policy = "write_sometimes";
  EXPECT_NE(config.validate().error().message.find("write_sometimes"), std::string::npos);
}

}  // namespace
}  // namespace banyan::test::engine_tiers_test
