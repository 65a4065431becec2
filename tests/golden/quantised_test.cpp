// Every quantised golden checkpoint against what transformers computes from the dequantised weights
// (tools/README.md).
//
// Errors are the largest absolute difference over the reference's largest absolute value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/json.h"
#include "kernels/select.h"
#include "support/drive.h"
#include "support/shared.h"
#include "weights/files/safetensors.h"

namespace banyan::test::quantised_test {
namespace {

struct QuantisedCase {
  const char* name;
  const char* memory;  // what its matrices are in memory when nothing is asked for
  double error_max;    // of logits then: activations are rounded, to bf16 or to int8
};

std::ostream& operator<<(std::ostream& out, const QuantisedCase& c) {
  return out << c.name;
}

// With weights as f32, orders of addition are all that differs.
constexpr double kErrorMaxF32 = 1e-4;
constexpr double kErrorMaxBF16 = 0.02, kErrorMaxInt8 = 0.04;

constexpr QuantisedCase kCases[] = {
    {"fp8-block", "fp8, groups of 64", kErrorMaxBF16},  // of 128, cut to fit rows of 192
    {"fp8-block-bf16-scales", "fp8, groups of 32", kErrorMaxBF16},
    {"fp8-channel", "fp8, a scale for each row", kErrorMaxBF16},
    {"fp8-tensor", "fp8, a scale for each row", kErrorMaxBF16},
    {"w8a8", "int8, a scale for each row", kErrorMaxInt8},
    {"w4a16", "int4, groups of 32", kErrorMaxInt8},
    {"w4a16-zero-points", "uint4, groups of 32", kErrorMaxInt8},
    {"w4a16-act-order", "f32", kErrorMaxF32},
    {"w8a16", "int8, a scale for each row", kErrorMaxInt8},
    {"mxfp4", "mxfp4, groups of 32", kErrorMaxInt8},
    {"nvfp4", "f32", kErrorMaxF32},
    {"awq", "uint4, groups of 32", kErrorMaxInt8},
    {"gptq", "int4, groups of 32", kErrorMaxInt8},
    {"gptq-zeros-v1", "uint4, groups of 32", kErrorMaxInt8},
    {"gptq-act-order-v2", "f32", kErrorMaxF32},
    {"gptq-8bit", "int8, groups of 32", kErrorMaxInt8},
};

template <class T>
std::vector<T> numbers(const SafetensorsFile& file, const char* name) {
  const TensorInfo* tensor = file.find(name);
  std::vector<T> values(tensor->bytes.size() / sizeof(T));
  EXPECT_TRUE(file.read(*tensor, 0, std::as_writable_bytes(std::span(values))));
  return values;
}

// The error of the logits of the prompt in the file `reference`.
double logits_error(const EngineConfig& config, const std::string& reference) {
  auto file = SafetensorsFile::open(reference);
  EXPECT_TRUE(file.has_value()) << file.error().message;
  auto ids = numbers<int64_t>(*file, "prompt_ids");
  auto expected = numbers<float>(*file, "logits");
  std::vector<TokenId> prompt(ids.begin(), ids.end());
  std::vector<float> ours = all_logits(*load_runner(config), prompt, 128);
  EXPECT_EQ(ours.size(), expected.size());
  double most = 0, largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    double difference = std::abs(static_cast<double>(ours[i]) - expected[i]);
    most = difference <= most ? most : std::isnan(difference) ? INFINITY : difference;
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  return most / largest;
}

EngineConfig config_of(const std::string& folder, const std::string& dtype,
                       const std::string& kernels) {
  return {.model_path = folder,
          .dtype = dtype,
          .kernels = kernels,
          .threads = 2,
          .page_size_tokens = 16,
          .total_tokens_max = 128,
          .running_max = 1};
}

class QuantisedModels : public testing::TestWithParam<QuantisedCase> {
 protected:
  static EngineConfig config(const std::string& dtype, const std::string& kernels) {
    return config_of(folder(), dtype, kernels);
  }
  static double error(const EngineConfig& config) {
    return logits_error(config, folder() + ".reference.safetensors");
  }

 private:
  static std::string folder() {
    return source_path(std::string("tests/golden/quantised/") + GetParam().name);
  }
};

TEST_P(QuantisedModels, WeightsAreWhatTheCodesStandFor) {
  EXPECT_LE(error(config("f32", "auto")), kErrorMaxF32);
}

TEST_P(QuantisedModels, CodesAreMultipliedAsTheyAre) {
  for (const std::string& kernels : all_kernels()) {
    EXPECT_LE(error(config("auto", kernels)), GetParam().error_max) << kernels;
  }
}

// Codes of four bits as fp8, which holds them exactly, and int8 as the checkpoint's own f32: what
// is left is the rounding of activations to bf16, where a table does that.
TEST_P(QuantisedModels, WeightOnlyKeepsActivationsIn16Bits) {
  std::string memory = GetParam().memory;
  if (memory.find("int4") != memory.npos || memory.find("mxfp4") != memory.npos) {
    memory = "fp8" + memory.substr(memory.find(','));
  } else if (memory.starts_with("int8")) {
    memory = "f32";
  }
  for (const std::string& kernels : available_kernels()) {
    EngineConfig c = config("auto", kernels);
    c.quantization = "weight-only";
    bool pairs = kernels == "avx512_bf16" || kernels == "amx";
    if (memory.starts_with("fp8") && memory == GetParam().memory) {
      auto refused = inspect_model(c);
      ASSERT_FALSE(refused.has_value());
      EXPECT_NE(refused.error().message.find("fp8"), std::string::npos) << refused.error().message;
      continue;
    }
    EXPECT_LE(error(c), pairs ? kErrorMaxBF16 : kErrorMaxF32) << kernels;
    auto info = inspect_model(c);
    ASSERT_TRUE(info.has_value()) << info.error().message;
    for (const WeightSummary& w : info->weights) {
      if (w.names.find("down_proj") == w.names.npos) continue;
      EXPECT_EQ(w.memory, memory);
      EXPECT_TRUE(w.exact);
    }
  }
}

TEST_P(QuantisedModels, InspectSaysWhatIsStoredAndWhatItBecomes) {
  auto info = inspect_model(config("auto", "portable"));
  ASSERT_TRUE(info.has_value()) << info.error().message;
  bool seen = false;
  for (const WeightSummary& w : info->weights) {
    if (w.names.find("down_proj") == w.names.npos) continue;
    EXPECT_EQ(w.memory, GetParam().memory);
    EXPECT_NE(w.stored, "f32");
    EXPECT_TRUE(w.exact);
    seen = true;
  }
  EXPECT_TRUE(seen);
}

// Every matrix in another type, q and k turned (tools/make_gguf_goldens.py).
TEST(GgufGolden, IsReadAsItsOwnPackageDoes) {
  std::string folder = source_path("tests/golden/gguf");
  EngineConfig config = config_of(folder, "f32", "auto");
  config.gguf_path = folder + "/model.gguf";
  EXPECT_LE(logits_error(config, folder + "/reference.safetensors"), kErrorMaxF32);
  for (const std::string& kernels : all_kernels()) {
    config.dtype = "auto";
    config.kernels = kernels;
    EXPECT_LE(logits_error(config, folder + "/reference.safetensors"), kErrorMaxInt8) << kernels;
  }
}

// Their matrices are parts of tensors of all experts. A token's row has the same bits alone.
TEST(GgufGolden, ExpertsOfKQuantsAreReadAsTheirPackageDoes) {
  std::string folder = source_path("tests/golden/gguf/experts");
  EngineConfig config = config_of(folder, "f32", "auto");
  config.gguf_path = folder + "/model.gguf";
  EXPECT_LE(logits_error(config, folder + "/reference.safetensors"), kErrorMaxF32);
  std::vector<TokenId> prompt = {1, 2, 3, 30, 7, 8, 9, 10, 11, 20, 4, 5, 30, 31, 14, 15};
  for (const std::string& kernels : all_kernels()) {
    config.dtype = "auto";
    config.kernels = kernels;
    EXPECT_LE(logits_error(config, folder + "/reference.safetensors"), kErrorMaxInt8) << kernels;
    std::vector<float> together = all_logits(*load_runner(config), prompt, 128);
    EXPECT_TRUE(same_bits(together, all_logits(*load_runner(config), prompt, 1))) << kernels;
  }
}

TEST(GgufGolden, CodesThatAFormatHoldsAreTakenAsTheyAre) {
  std::string folder = source_path("tests/golden/gguf");
  EngineConfig config = config_of(folder, "auto", "portable");
  config.gguf_path = folder + "/model.gguf";
  auto info = inspect_model(config);
  ASSERT_TRUE(info.has_value()) << info.error().message;
  auto memory = [&](const char* name) {
    for (const WeightSummary& w : info->weights) {
      if (w.names.find(name) != w.names.npos) return w.stored + " as " + w.memory;
    }
    return std::string();
  };
  EXPECT_EQ(memory("down_proj"), "gguf mxfp4 as mxfp4, groups of 32");
  EXPECT_EQ(memory("o_proj"), "gguf q6_k as q6, a scale for each row");
  // Stacked, but no format holds the three.
  EXPECT_EQ(memory("q_proj"), "gguf q8_0 as int8, groups of 32");
  EXPECT_EQ(memory("k_proj"), "gguf q4_0 as int4, groups of 32");
  EXPECT_EQ(memory("v_proj"), "gguf q4_1 as q4, groups of 32");
  EXPECT_EQ(memory("lm_head"), "bf16 as bf16");

  config.quantization = "int4";
  info = inspect_model(config);
  EXPECT_EQ(memory("o_proj"), "gguf q6_k as int4, groups of 32");
}

TEST(QuantisedGoldens, AreAllTested) {
  auto text = read_file(source_path("tests/golden/quantised/manifest.json"));
  ASSERT_TRUE(text.has_value()) << text.error().message;
  std::vector<std::string> names = Json::parse(*text).at("cases");
  ASSERT_EQ(names.size(), std::size(kCases));
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], kCases[i].name);
}

INSTANTIATE_TEST_SUITE_P(All, QuantisedModels, testing::ValuesIn(kCases), [](const auto& test) {
  std::string name = test.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

// What vLLM and SGLang take for --quantization, where the checkpoint says it, too.
TEST(QuantisedModel, MayBeCalledWhatItIs) {
  auto inspected = [](const char* folder, const char* quantization) {
    EngineConfig config =
        config_of(source_path(std::string("tests/golden/quantised/") + folder), "auto", "auto");
    config.quantization = quantization;
    return inspect_model(config);
  };
  EXPECT_TRUE(inspected("awq", "awq"));
  EXPECT_TRUE(inspected("gptq", "gptq_marlin"));
  EXPECT_TRUE(inspected("w4a16", "compressed-tensors"));
  EXPECT_EQ(inspected("gptq", "awq").error().message,
            "quantization is \"awq\", but config.json has \"gptq\"; leave out --quantization");
}

}  // namespace
}  // namespace banyan::test::quantised_test
