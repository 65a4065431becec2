// Quantised checkpoints with one mistake each: all are refused, naming the tensor. Golden tests
// check that valid ones are read correctly.
#include "weights/stored_matrix.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "banyan/engine.h"
#include "support/models/checkpoint_copy.h"

namespace banyan::test::stored_matrix_test {
namespace {

constexpr const char* kQ = "model.layers.0.self_attn.q_proj";

std::string q(const char* leaf) {
  return std::string(kQ) + "." + leaf;
}

class QuantisedFiles : public testing::Test {
 protected:
  // The error of loading the checkpoint after `change`; "" when there is none.
  static std::string error_of(const std::string& golden,
                              const std::function<void(CheckpointCopy&)>& change) {
    CheckpointCopy copy("../quantised/" + golden);
    change(copy);
    TemporaryFolder folder;
    copy.save(folder);
    EngineConfig config{.model_path = folder.path(), .threads = 2, .total_tokens_max = 64};
    auto engine = Engine::load(config);
    return engine ? "" : engine.error().message;
  }

  template <class T>
  static void set(TestTensor& tensor, size_t index, T value) {
    ASSERT_LE((index + 1) * sizeof(T), tensor.bytes.size());
    std::memcpy(tensor.bytes.data() + index * sizeof(T), &value, sizeof(T));
  }

  static void expect(const std::string& message, std::initializer_list<std::string> parts) {
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), message.npos) << part << " is not in: " << message;
    }
  }
};

TEST_F(QuantisedFiles, ScalesThatAreNoNumbersAreNamed) {
  expect(error_of("fp8-block",
                  [](CheckpointCopy& c) { set(c.tensor(q("weight_scale_inv")), 1, NAN); }),
         {q("weight_scale_inv"), "scale 1 is nan"});
  expect(error_of("w4a16",
                  [](CheckpointCopy& c) { set<uint16_t>(c.tensor(q("weight_scale")), 3, 0x7f80); }),
         {q("weight_scale"), "scale 3 is inf"});
  expect(error_of("mxfp4",
                  [](CheckpointCopy& c) { set<uint8_t>(c.tensor(q("weight_scale")), 0, 255); }),
         {q("weight_scale"), "scale 0 is nan"});
  expect(error_of("nvfp4",
                  [](CheckpointCopy& c) { set<uint8_t>(c.tensor(q("weight_scale")), 0, 0x7f); }),
         {q("weight_scale"), "scale 0 is nan"});
  expect(error_of("nvfp4",
                  [](CheckpointCopy& c) { set(c.tensor(q("weight_global_scale")), 0, 0.0f); }),
         {q("weight_global_scale"), "not a positive number"});
}

TEST_F(QuantisedFiles, CodesThatAreNoNumbersAreNamed) {
  expect(
      error_of("fp8-block",
               [](CheckpointCopy& c) { set<uint8_t>(c.tensor(q("weight")), 3 * 160 + 7, 0xff); }),
      {q("weight"), "row 3 has a NaN"});
}

TEST_F(QuantisedFiles, GroupsOfColumnsAreChecked) {
  for (int32_t group : {-1, 2, 1 << 30}) {
    expect(error_of("gptq-act-order-v2",
                    [&](CheckpointCopy& c) { set(c.tensor(q("g_idx")), 5, group); }),
           {q("g_idx"), "column 5 is in group", "of 2"});
  }
}

TEST_F(QuantisedFiles, SymmetricFilesHaveNoOtherZeroPoints) {
  // The other version's zero points are as good, whatever the file says its version is.
  auto other_version = [](CheckpointCopy& c) {
    for (TestTensor& t : c.tensors) {
      if (t.name.ends_with("qzeros")) std::ranges::fill(t.bytes, '\x88');
    }
  };
  EXPECT_EQ(error_of("gptq", other_version), "");
  expect(error_of("gptq",
                  [](CheckpointCopy& c) { set<uint32_t>(c.tensor(q("qzeros")), 2, 0x77777767u); }),
         {q("qzeros"), "word 2 is 0x77777767", "every zero point to be 8"});
}

TEST_F(QuantisedFiles, ShapesAreChecked) {
  expect(error_of("w4a16",
                  [](CheckpointCopy& c) { set<int64_t>(c.tensor(q("weight_shape")), 1, 63); }),
         {q("weight_shape"), "says [64, 63] where [64, 64] is expected"});
  expect(
      error_of("w4a16", [](CheckpointCopy& c) { c.tensor(q("weight_packed")).shape = {32, 16}; }),
      {q("weight_packed"), "has shape [32, 16] where [64, 16] is expected"});
  expect(error_of("fp8-block",
                  [](CheckpointCopy& c) { c.tensor(q("weight_scale_inv")).shape = {4, 1}; }),
         {q("weight_scale_inv"), "has shape [4, 1]", "block of 128 x 128"});
  expect(error_of("awq", [](CheckpointCopy& c) { c.tensor(q("qzeros")).shape = {4, 4}; }),
         {q("qzeros"), "has shape [4, 4] where [2, 8] is expected"});
  expect(error_of("gptq", [](CheckpointCopy& c) { c.tensor(q("scales")).shape = {64, 2}; }),
         {q("scales"), "has shape [64, 2] where [2, 64] is expected"});
}

TEST_F(QuantisedFiles, WhatBelongsToAMatrixMustBeThere) {
  expect(error_of("w8a8", [](CheckpointCopy& c) { c.erase(q("weight_scale")); }),
         {q("weight_scale"), "is missing"});
  expect(error_of("awq", [](CheckpointCopy& c) { c.erase(q("qzeros")); }),
         {q("qzeros"), "is missing"});
  expect(error_of("gptq", [](CheckpointCopy& c) { c.erase(q("qweight")); }),
         {q("weight"), "[64, 64] is missing"});
  expect(error_of("gptq", [](CheckpointCopy& c) { c.config.erase("quantization_config"); }),
         {q("qweight"), "quant_method is none, neither awq nor gptq"});
}

TEST_F(QuantisedFiles, LeftoversAreNamedSaveThoseThatNobodyComputesWith) {
  auto add = [](const char* leaf) {
    return [=](CheckpointCopy& c) {
      c.tensors.push_back({q(leaf), "F32", {1}, std::string("\0\0\x80\x3f", 4)});
    };
  };
  expect(error_of("w8a8", add("weight_extra")), {q("weight_extra"), "is not used"});
  EXPECT_EQ(error_of("w8a8", add("input_scale")), "");
  EXPECT_EQ(error_of("w8a8", add("output_scale")), "");
  // A bias that the model does not have may only be zeros.
  expect(error_of("gptq", [](CheckpointCopy& c) { set<uint16_t>(c.tensor(q("bias")), 1, 0x3c00); }),
         {q("bias"), "is not used"});
}

TEST_F(QuantisedFiles, OnlineQuantisationRefusesWhatIsNotFinite) {
  CheckpointCopy copy("llama-bias");
  copy.set("model.layers.1.mlp.up_proj.weight", 77, INFINITY);
  TemporaryFolder folder;
  copy.save(folder);
  auto engine = Engine::load(
      {.model_path = folder.path(), .threads = 2, .quantization = "int8", .total_tokens_max = 64});
  ASSERT_FALSE(engine.has_value());
  expect(engine.error().message, {"model.layers.1.mlp.up_proj.weight", "NaN or infinity"});
}

}  // namespace
}  // namespace banyan::test::stored_matrix_test
