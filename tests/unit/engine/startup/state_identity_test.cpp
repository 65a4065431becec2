// What a state digest covers: each input changes it, and what changes no bit does not.
#include "engine/startup/state_identity.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <set>

#include "banyan/engine.h"
#include "kernels/select.h"
#include "support/models/checkpoint_copy.h"
#include "support/models/tiny_model.h"

namespace banyan::test::state_identity_test {
namespace {

class StateIdentityTest : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }
  void TearDown() override { unsetenv("XDG_CACHE_HOME"); }

  static EngineConfig with(std::function<void(EngineConfig&)> change) {
    EngineConfig config{.kernels = "portable", .threads = 1, .total_tokens_max = 256};
    config.state_digest = true;
    change(config);
    return config;
  }

  // Of a golden checkpoint, perhaps changed, in a folder of its own.
  static std::string digest(
      const std::string& golden, const std::function<void(CheckpointCopy&)>& change = {},
      const std::function<void(EngineConfig&)>& configure = [](EngineConfig&) {}) {
    CheckpointCopy copy(golden);
    if (change) change(copy);
    TemporaryFolder folder;
    copy.save(folder);
    EngineConfig config = with(configure);
    config.model_path = folder.path();
    auto info = inspect_model(config);
    EXPECT_TRUE(info.has_value()) << info.error().message;
    return info ? info->state_digest : "";
  }

  static void expect_all_differ(const std::vector<std::string>& digests) {
    std::set<std::string> seen;
    for (size_t i = 0; i < digests.size(); ++i) {
      EXPECT_EQ(digests[i].size(), 64u);
      EXPECT_TRUE(seen.insert(digests[i]).second) << "change " << i;
    }
  }

  TemporaryFolder cache_;
};

TEST_F(StateIdentityTest, WeightsAndConfigCount) {
  expect_all_differ({
      digest("qwen3-tied"),
      digest("qwen3-tied", [](auto& c) { c.set("model.norm.weight", 3, 0.5f); }),
      digest("qwen3-tied", [](auto& c) { c.config["rms_norm_eps"] = 1e-5; }),
      digest("qwen3-tied", [](auto& c) { c.config["rope_theta"] = 12345.0; }),
      digest(
          "qwen3-tied",
          [](auto& c) { c.config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}}; }),
      digest(
          "qwen3-tied",
          [](auto& c) { c.config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 3.0}}; }),
      digest("qwen3-tied", {}, [](auto& e) { e.load_format = "dummy"; }),
  });
}

TEST_F(StateIdentityTest, HowTheModelRunsCounts) {
  std::vector<std::function<void(EngineConfig&)>> changes = {
      [](auto&) {},
      [](auto& e) { e.dtype = "bf16"; },
      [](auto& e) { e.quantization = "int8"; },
      [](auto& e) { e.quantization_overrides = {"down_proj=int8"}; },
      [](auto& e) { e.page_size_tokens = 16; },
      [](auto& e) { e.kv_cache_dtype = "bf16"; },
      [](auto& e) { e.kv_cache_dtype = "int8"; },
      [](auto& e) { e.kv_cache_dtype = "fp8_e4m3"; },
  };
  for (const std::string& kernels : available_kernels()) {
    if (kernels != "portable") changes.push_back([=](auto& e) { e.kernels = kernels; });
  }
  std::vector<std::string> digests;
  for (const auto& change : changes) digests.push_back(digest("qwen3-tied", {}, change));
  expect_all_differ(digests);
}

TEST_F(StateIdentityTest, FormsOfPromptsCount) {
  expect_all_differ({
      digest("kimi-linear"),
      digest("kimi-linear", {}, [](auto& e) { e.mla_prefill = "expanded"; }),
      digest("kimi-linear", {}, [](auto& e) { e.reuse_generated_state = true; }),
  });
  // Where every position has one form, the option changes nothing.
  EXPECT_EQ(digest("qwen3-tied"),
            digest("qwen3-tied", {}, [](auto& e) { e.reuse_generated_state = true; }));
}

TEST_F(StateIdentityTest, WhatChangesNoBitDoesNotCount) {
  std::string one = digest("qwen3-tied");  // each in another folder
  EXPECT_EQ(digest("qwen3-tied"), one);
  EXPECT_EQ(digest("qwen3-tied", [](auto& c) { c.config["initializer_range"] = 0.5; }), one);
  EXPECT_EQ(digest("qwen3-tied", [](auto& c) { c.config["use_sliding_window"] = nullptr; }), one);
  EXPECT_EQ(digest("qwen3-tied", {},
                   [](auto& e) {
                     e.threads = 2;
                     e.chunked_prefill_tokens = 8;
                     e.running_max = 3;
                     e.total_tokens_max = 512;
                     e.schedule_policy = "fcfs";
                     e.context_length_tokens = 64;
                     e.kv_cache_dtype = "f32";  // as `auto` is here
                   }),
            one);
  auto kept_as = [](const std::string& dtype) {
    return digest("qwen3-tied", {}, [=](auto& e) { e.kv_cache_dtype = dtype; });
  };
  EXPECT_EQ(kept_as("fp8"), kept_as("fp8_e4m3"));
}

TEST_F(StateIdentityTest, AnEngineHasTheDigestThatInspectingShows) {
  TemporaryFolder folder;
  EngineConfig config = tiny_model(folder);
  config.state_digest = true;
  auto engine = Engine::load(config);
  auto info = inspect_model(config);
  ASSERT_TRUE(engine.has_value() && info.has_value());
  EXPECT_EQ((*engine)->info().state_digest, info->state_digest);
  EXPECT_EQ((*engine)->info().state_digest_parts, info->state_digest_parts);
  EXPECT_EQ(info->state_digest.size(), 64u);
  config.state_digest = false;
  EXPECT_EQ(inspect_model(config)->state_digest, "");
}

}  // namespace
}  // namespace banyan::test::state_identity_test
