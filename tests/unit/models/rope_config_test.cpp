// Rotation frequencies against those of transformers 5.23.0, made by
//
//   from transformers import LlamaConfig
//   from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
//   c = LlamaConfig(hidden_size=2 * dim, num_attention_heads=2, head_dim=dim,
//                   max_position_embeddings=context, rope_parameters={"rope_theta": theta, ...})
//   print(ROPE_INIT_FUNCTIONS[c.rope_parameters["rope_type"]](c, "cpu"))
#include "models/config/rope.h"

#include <gtest/gtest.h>

namespace banyan::rope_config_test {
namespace {

RopeConfig read(const std::string& json, int64_t dim, int64_t context) {
  auto config = ConfigFile::parse(json, "config.json");
  EXPECT_TRUE(config.has_value());
  RopeConfig rope = read_rope(*config, dim, context);
  Status status = config->finish();
  EXPECT_TRUE(status.has_value()) << status.error().message;
  return rope;
}

void expect_frequencies(const RopeConfig& rope, const std::vector<double>& expected) {
  std::vector<float> frequencies = inverse_frequencies(rope);
  ASSERT_EQ(frequencies.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(frequencies[i] / expected[i], 1, 1e-6) << i;
  }
}

TEST(RopeConfig, Linear) {
  RopeConfig rope = read(R"({"rope_scaling": {"type": "linear", "factor": 4.0}})", 8, 256);
  expect_frequencies(rope, {0.25, 0.02500000037252903, 0.002499999944120645, 0.00025000001187436});
  EXPECT_EQ(rope.attention_factor, 1);
}

TEST(RopeConfig, Llama3) {
  RopeConfig rope = read(R"({"rope_theta": 500000.0, "rope_scaling": {
      "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 8192}})",
                         16, 131072);
  expect_frequencies(
      rope, {1.0, 0.193922758102417, 0.03760603070259094, 0.00729266507551074, 0.0005248460220173,
             3.428102354519069e-05, 6.647869668086e-06, 1.289173e-06});
}

TEST(RopeConfig, Yarn) {
  RopeConfig rope = read(R"({"rope_theta": 1000000.0, "rope_scaling": {
      "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}})",
                         16, 131072);
  expect_frequencies(
      rope, {1.0, 0.17782793939113617, 0.03162277862429619, 0.004217559937387705,
             0.0005000000237487, 4.445698505151086e-05, 7.9056935646804e-06, 1.405853e-06});
  EXPECT_NEAR(rope.attention_factor, 1.138629436111989, 1e-12);
}

TEST(RopeConfig, YarnWithoutTruncation) {
  RopeConfig rope = read(R"({"rope_parameters": {"rope_theta": 150000.0, "rope_type": "yarn",
      "factor": 32.0, "original_max_position_embeddings": 4096, "beta_fast": 32.0,
      "beta_slow": 1.0, "truncate": false}})",
                         16, 131072);
  expect_frequencies(rope,
                     {1.0, 0.22541800141334534, 0.05081327259540558, 0.006794959306716919,
                      0.0004564839182421, 1.818833698052913e-05, 4.0999784687301e-06, 9.24209e-07});
  EXPECT_NEAR(rope.attention_factor, 1.3465735902799727, 1e-12);
}

TEST(RopeConfig, YarnWithMscale) {
  RopeConfig rope = read(R"({"rope_theta": 10000.0, "rope_scaling": {"type": "yarn",
      "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 1.0,
      "mscale_all_dim": 0.8}})",
                         16, 163840);
  expect_frequencies(
      rope, {1.0, 0.3162277638912201, 0.10000000149011612, 0.023914724588394165, 0.0051249996758997,
             0.00084986217552796, 2.499999936845e-05, 7.905694e-06});
  EXPECT_NEAR(rope.attention_factor, 1.0569662567531275, 1e-12);
}

// Why read_rope refuses a config; "" if it does not.
std::string refusal(const std::string& json) {
  auto config = ConfigFile::parse(json, "config.json");
  read_rope(*config, 16, 4096);
  Status status = config->finish();
  return status ? std::string() : status.error().message;
}

// As transformers 5 saves models whose layer types may rotate differently.
TEST(RopeConfig, ReadsParametersOfTypesOfLayersThatAreTheSame) {
  std::string linear = R"({"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0})";
  RopeConfig flat = read(R"({"rope_parameters": )" + linear + "}", 8, 256);
  RopeConfig nested = read(R"({"rope_parameters": {"full_attention": )" + linear +
                               R"(, "sliding_attention": )" + linear + "}}",
                           8, 256);
  EXPECT_EQ(nested, flat);
  EXPECT_EQ(nested.theta, 500);
  EXPECT_NE(refusal(R"({"rope_parameters": {"full_attention": )" + linear +
                    R"(, "sliding_attention": {"rope_theta": 500.0}}})")
                .find("full_attention and sliding_attention have different parameters"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"rope_parameters": {"full_attention": )" + linear +
                    R"(, "sliding_attention": null}})")
                .find("sliding_attention = null"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"rope_parameters": {"rope_theta": 10, "full_attention": {}}})")
                .find("rope_theta = 10"),
            std::string::npos);
}

// It would be computed as if it were not there.
TEST(RopeConfig, RefusesWhatItsTypeDoesNotHave) {
  for (const char* type :
       {R"("type": null, )", R"("rope_type": null, )", "", R"("rope_type": "default", )"}) {
    std::string json = std::string(R"({"rope_scaling": {)") + type + R"("factor": 4.0}})";
    EXPECT_NE(refusal(json).find("factor"), std::string::npos) << json;
  }
  EXPECT_EQ(refusal(R"({"rope_scaling": {"factor": 1.0}})"), "");
  for (const char* key : {"mrope_section", "long_factor", "mscale", "wobble"}) {
    std::string json = std::string(R"({"rope_scaling": {"type": "linear", "factor": 2, ")") + key +
                       R"(": [1, 2]}})";
    EXPECT_NE(refusal(json).find(key), std::string::npos) << json;
  }
}

// What read_rope refuses, by name.
TEST(RopeConfig, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refusal("{}"), "");
  EXPECT_EQ(refusal(R"({"rope_scaling": null})"), "");
  EXPECT_NE(refusal(R"({"rope_scaling": {"type": "longrope"}})").find("\"longrope\""),
            std::string::npos);
  EXPECT_NE(refusal(R"({"rope_scaling": {"rope_type": "linear"}})").find("factor"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"rope_scaling": {"rope_type": "linear", "factor": 0}})").find("factor"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"rope_theta": -1})").find("rope_theta"), std::string::npos);
  EXPECT_NE(refusal(R"({"rope_scaling": {}, "rope_parameters": {}})").find("keep one"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"rope_scaling": {"rope_type": "llama3", "factor": 8,
      "low_freq_factor": 4, "high_freq_factor": 1}})")
                .find("high_freq_factor 1 must not be below low_freq_factor 4"),
            std::string::npos);
}

}  // namespace
}  // namespace banyan::rope_config_test
