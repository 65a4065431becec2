// Every key of published configs: which are read, which have no effect, and which are refused
// unless they describe what is computed anyway. tests/unit/models/published_configs.json has the
// configs, with lists of their "harmless" and "refused" keys; all others are read.
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <sstream>

#include "banyan/engine.h"
#include "base/file.h"
#include "base/log.h"
#include "support/models/checkpoint_copy.h"

namespace banyan::test::config_keys_test {
namespace {

struct Inspection {
  std::string error;  // empty: it loads
  std::string log;
};

// What is said of a config without its weights.
Inspection inspect_published(const Json& config) {
  TemporaryFolder folder;
  folder.write("config.json", config.dump());
  std::ostringstream text;
  auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_st>(text)));
  auto info = inspect_model({.model_path = folder.path(),
                             .load_format = "dummy",
                             .threads = 1,
                             .total_tokens_max = 4096});
  spdlog::set_default_logger(before);
  return {info ? "" : info.error().message, text.str()};
}

const Json kNonsense = "nonsense";

Json published_configs() {
  auto text = read_file(source_path("tests/unit/models/published_configs.json"));
  return text ? Json::parse(*text) : Json::object();
}

bool lists(const Json& keys, const std::string& key) {
  return std::ranges::find(keys, Json(key)) != keys.end();
}

TEST(PublishedConfigKeys, LoadWithoutAWord) {
  Json models = published_configs();
  ASSERT_GE(models.size(), 11u);
  for (const auto& [name, model] : models.items()) {
    Inspection inspection = inspect_published(model["config"]);
    EXPECT_EQ(inspection.error, "") << name;
    EXPECT_EQ(inspection.log, "") << name;
  }
}

TEST(PublishedConfigKeys, AreReadHarmlessOrRefused) {
  Json configs = published_configs();
  for (const auto& [name, model] : configs.items()) {
    Json harmless = model["config"];
    for (const auto& [key, value] : model["config"].items()) {
      if (lists(model["harmless"], key)) {
        harmless[key] = kNonsense;
        continue;
      }
      Json changed = model["config"];
      changed[key] = kNonsense;
      std::string error = inspect_published(changed).error;
      EXPECT_NE(error.find(key), std::string::npos) << name << ": " << key << ": " << error;
      bool refused = error.find("would change what") != std::string::npos;
      EXPECT_EQ(refused, lists(model["refused"], key)) << name << ": " << key << ": " << error;
    }
    Inspection inspection = inspect_published(harmless);
    EXPECT_EQ(inspection.error, "") << name;
    EXPECT_EQ(inspection.log, "") << name;
  }
}

// The error of a golden config with one key more.
std::string error_with(const std::string& golden, const std::string& key, const Json& value) {
  Json config = CheckpointCopy(golden).config;
  config[key] = value;
  return inspect_published(config).error;
}

TEST(ConfigKeys, ThatAskForAnotherComputationAreRefused) {
  for (const char* golden :
       {"llama2-mha", "mistral-window", "qwen3-bf16", "qwen3-moe", "deepseek-v3", "kimi-linear",
        "longcat-flash", "ling2", "ling25", "ling3-tiny"}) {
    for (const char* key : {"qkv_bias", "rope_interleaved", "shared_expert_intermediate_size",
                            "attn_logit_softcapping", "use_nGPT", "alibi", "vision_config"}) {
      Json on = std::string(key) == "vision_config" ? Json{{"hidden_size", 8}} : Json(1);
      EXPECT_NE(error_with(golden, key, on).find(key), std::string::npos) << golden << ": " << key;
      for (const Json& off : {Json(nullptr), Json(false), Json(0)}) {
        if (off.is_number() && std::string(key) == "use_nGPT") continue;  // Ling reads a flag
        EXPECT_EQ(error_with(golden, key, off), "") << golden << ": " << key << " = " << off;
      }
    }
  }
  EXPECT_NE(error_with("llama2-mha", "use_qk_norm", true).find("use_qk_norm"), std::string::npos);
  EXPECT_NE(error_with("qwen3-bf16", "use_qk_norm", false).find("use_qk_norm"), std::string::npos);
  EXPECT_NE(error_with("ling3-tiny", "use_qk_norm", false).find("use_qk_norm"), std::string::npos);
  EXPECT_NE(error_with("llama2-mha", "use_rmsnorm", false).find("use_rmsnorm"), std::string::npos);
  EXPECT_EQ(error_with("qwen2-tied", "qkv_bias", true), "") << "as it is";
  EXPECT_EQ(error_with("llama2-mha", "logit_scale", 1.0), "");
  EXPECT_NE(error_with("llama2-mha", "logit_scale", 2.0).find("logit_scale"), std::string::npos);
}

}  // namespace
}  // namespace banyan::test::config_keys_test
