// The quantization settings of config.json that tensors do not show.
#include "weights/quant_config.h"

#include <gtest/gtest.h>

namespace banyan::quant_config_test {
namespace {

Result<QuantConfig> read(const std::string& quantization) {
  ConfigFile file =
      ConfigFile::parse(R"({"architectures": ["X"], "quantization_config": )" + quantization + "}",
                        "config.json")
          .value();
  return read_quant_config(file);
}

std::string error_of(const std::string& quantization) {
  auto config = read(quantization);
  return config ? "" : config.error().message;
}

TEST(QuantConfig, IsNoneWithoutTheKey) {
  for (const char* text : {R"({"a": 1})", R"({"quantization_config": null})"}) {
    auto config = read_quant_config(ConfigFile::parse(text, "config.json").value());
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(config->method, QuantMethod::kNone);
  }
}

TEST(QuantConfig, ReadsWhatTensorsDoNotSay) {
  QuantConfig fp8 = read(R"({"quant_method": "fp8", "weight_block_size": [128, 64]})").value();
  EXPECT_EQ(fp8.method, QuantMethod::kFp8);
  ASSERT_EQ(fp8.blocks.size(), 1u);
  EXPECT_EQ(fp8.blocks[0].rows, 128);
  EXPECT_EQ(fp8.blocks[0].columns, 64);

  QuantConfig gptq = read(R"({"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": false,
                              "checkpoint_format": "gptq_v2"})")
                         .value();
  EXPECT_EQ(gptq.bits, 8);
  EXPECT_EQ(gptq.group, 0);
  EXPECT_FALSE(gptq.symmetric);
  EXPECT_FALSE(gptq.zeros_less_one);
  EXPECT_TRUE(read(R"({"quant_method": "gptq", "bits": 4})").value().zeros_less_one);

  QuantConfig block = read(R"({"config_groups": {
      "a": {"weights": {"num_bits": 8, "type": "float", "strategy": "block",
                        "block_structure": [64, 32]}},
      "b": {"weights": {"num_bits": 4, "type": "int"}}}})")
                          .value();
  EXPECT_EQ(block.method, QuantMethod::kCompressedTensors);
  ASSERT_EQ(block.blocks.size(), 1u);
  EXPECT_EQ(block.blocks[0].columns, 32);
}

TEST(QuantConfig, RefusesByName) {
  EXPECT_EQ(error_of(R"({"quant_method": "bitsandbytes"})"),
            "config.json: quantization_config.quant_method \"bitsandbytes\" is not supported; "
            "supported: fp8, compressed-tensors, awq, gptq, modelopt, mxfp4");
  auto has = [](const std::string& message, const char* part) {
    return message.find(part) != message.npos;
  };
  EXPECT_TRUE(has(error_of(R"({"quant_method": "awq", "bits": 8})"), "bits = 8"));
  EXPECT_TRUE(has(error_of(R"({"quant_method": "awq", "version": "gemv"})"), "gemv"));
  EXPECT_TRUE(has(error_of(R"({"quant_method": "gptq", "bits": 3})"), "bits = 3"));
  EXPECT_TRUE(has(error_of(R"({"quant_method": "fp8", "fmt": "e5m2"})"), "e5m2"));
  EXPECT_TRUE(has(error_of(R"({"quant_method": "fp8", "weight_block_size": [128]})"), "1 numbers"));
  EXPECT_TRUE(has(error_of(R"({"quant_method": "fp8", "weight_block_size": [0, 1]})"), "= 0"));
  EXPECT_TRUE(has(error_of(R"({"format": "marlin-24", "config_groups": {}})"), "marlin-24"));
  EXPECT_TRUE(has(error_of(R"({"config_groups": {}, "sparsity_config": {"format": "24"}})"), "24"));
  EXPECT_TRUE(has(error_of(R"({"config_groups": {"g": {"weights": {"num_bits": 3}}}})"), "= 3"));
  EXPECT_TRUE(has(error_of("[1]"), "is not an object"));
}

TEST(QuantConfig, SaysNothingOfKeysThatTellHowItWasMade) {
  ConfigFile file = ConfigFile::parse(R"({"quantization_config": {"quant_method": "gptq", "bits": 4,
      "damp_percent": 0.1, "meta": {"quantizer": "x"}}, "other": 1})",
                                      "config.json")
                        .value();
  ASSERT_TRUE(read_quant_config(file).has_value());
  EXPECT_EQ(file.unread(), std::vector<std::string>{"other"});
}

}  // namespace
}  // namespace banyan::quant_config_test
