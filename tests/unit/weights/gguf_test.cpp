// GGUF files: tensors, pairs, block formats against the `gguf` package, and broken files.
#include "weights/files/gguf.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "support/gguf_file.h"
#include "support/shared.h"
#include "weights/files/gguf_blocks.h"

namespace banyan::gguf_test {
namespace {

using Gguf = test::GgufBytes;

std::string error_of(const Gguf& file) {
  auto header = parse_gguf(std::as_bytes(std::span(file.bytes())), "f");
  return header ? "" : header.error().message;
}

void expect_error(const Gguf& file, std::string_view part) {
  std::string message = error_of(file);
  EXPECT_NE(message.find(part), message.npos) << part << " is not in: " << message;
}

constexpr uint64_t kHuge = uint64_t{1} << 60;

TEST(Gguf, ListsTensorsWithTheirBytes) {
  Gguf file;
  file.begin(2, 4).pair("general.architecture", "llama").pair("llama.attention.head_count", 4u);
  file.pair("llama.attention.head_count_kv", 2u);
  file.text("tokens").number<uint32_t>(9).number<uint32_t>(8).number<uint64_t>(2);
  file.text("a").text("bc");
  file.tensor("x", {64, 3}, 8, 0).tensor("y", {5}, 0, 224).data(244);
  auto header = parse_gguf(std::as_bytes(std::span(file.bytes())), "f");
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->architecture, "llama");
  EXPECT_EQ(*header->pairs.integer("llama.attention.head_count"), 4);
  EXPECT_EQ(*header->pairs.integer("llama.attention.head_count_kv"), 2);
  EXPECT_EQ(*header->pairs.texts("tokens"), (std::vector<std::string_view>{"a", "bc"}));
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0].shape, (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(header->tensors[0].blocks, BlockFormat::kQ8_0);
  EXPECT_EQ(header->tensors[0].bytes.size(), 3u * 2 * 34);
  EXPECT_EQ(header->tensors[1].dtype, DType::kF32);
  EXPECT_EQ(header->tensors[1].bytes.size(), 20u);
}

TEST(Gguf, RefusesWhatContradictsItself) {
  expect_error(Gguf(), "not a GGUF file");
  expect_error(Gguf().begin(0, 0, 1), "version 1");
  expect_error(Gguf().begin(0, kHuge), "truncated");
  expect_error(Gguf().begin(kHuge, 0), "truncated");
  expect_error(Gguf().begin(0, 1).number<uint64_t>(kHuge), "truncated");
  expect_error(Gguf().begin(0, 1).text("k").number<uint32_t>(13), "unknown type 13");
  expect_error(Gguf().begin(0, 1).text("k").number<uint32_t>(9).number<uint32_t>(9).number(kHuge),
               "array of arrays");
  expect_error(Gguf().begin(0, 1).text("k").number<uint32_t>(9).number<uint32_t>(10).number(kHuge),
               "truncated");
  expect_error(Gguf().begin(0, 1).text("k").number<uint32_t>(9).number<uint32_t>(8).number(kHuge),
               "truncated");
  expect_error(Gguf().begin(0, 1).pair("general.alignment", 0u), "not a power of two");
  expect_error(Gguf().begin(0, 1).pair("general.alignment", 48u), "not a power of two");
  expect_error(Gguf().begin(0, 1).pair("general.architecture", 1u), "is u32, not a string");
  expect_error(Gguf().begin(0, 2).pair("k", 1u).pair("k", 1u), "the key \"k\" appears twice");
}

TEST(Gguf, RefusesWrongTensors) {
  expect_error(Gguf().begin(1, 0).tensor("x", {}, 0, 0).data(64), "0 dimensions");
  expect_error(Gguf().begin(1, 0).tensor("x", {1, 1, 1, 1, 1}, 0, 0).data(64), "5 dimensions");
  expect_error(Gguf().begin(1, 0).tensor("x", {0}, 0, 0).data(64), "a dimension of 0");
  expect_error(Gguf().begin(1, 0).tensor("x", {kHuge}, 0, 0).data(64), "a dimension of");
  uint64_t large = uint64_t{1} << 39;
  expect_error(Gguf().begin(1, 0).tensor("x", {large, large}, 0, 0).data(64), "overflows");
  expect_error(Gguf().begin(1, 0).tensor("x", {64}, 16, 0).data(64), "tensor type 16");
  expect_error(Gguf().begin(1, 0).tensor("x", {33}, 8, 0).data(64), "in blocks of 32");
  expect_error(Gguf().begin(1, 0).tensor("x", {64}, 0, 0).data(255), "truncated");
  expect_error(Gguf().begin(1, 0).tensor("x", {4}, 0, kHuge).data(64), "truncated");
  expect_error(Gguf().begin(2, 0).tensor("x", {4}, 0, 0).tensor("y", {4}, 0, 8).data(64),
               "overlap");
}

// Values keep what they are, and a wrong type is named with its key.
TEST(Gguf, PairsAreTyped) {
  Gguf file;
  file.begin(0, 5).pair("n", Json(-7)).pair("x", Json(0.002)).pair("yes", Json(true));
  file.pair("list", Json({3, 4})).pair("text", "\xff");
  auto pairs = GgufPairs::parse(std::as_bytes(std::span(file.bytes())), "f");
  ASSERT_TRUE(pairs.has_value()) << pairs.error().message;
  EXPECT_EQ(*pairs->integer("n"), -7);
  EXPECT_EQ(*pairs->number("x"), 0.002);  // stored as an f32
  EXPECT_EQ(*pairs->flag("yes"), true);
  EXPECT_EQ(*pairs->integers("list"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(*pairs->integers("n"), (std::vector<int64_t>{-7}));
  EXPECT_EQ(*pairs->integer("absent"), std::nullopt);
  EXPECT_EQ(pairs->integer("list").error().message,
            "f: \"list\" is an array of 2 of type i32, not an integer");
  EXPECT_EQ(pairs->flag("n").error().message, "f: \"n\" is i32, not a bool");
  EXPECT_EQ(pairs->text("text").error().message, "f: \"text\" is not UTF-8");
}

TEST(Gguf, NamesAreThoseOfHuggingFace) {
  auto name = [](std::string_view theirs, std::string_view architecture = "llama") {
    auto found = find_gguf_architecture(architecture, "f");
    return found ? gguf_tensor_name(**found, theirs) : found.error().message;
  };
  EXPECT_EQ(name("token_embd.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(name("output_norm.weight"), "model.norm.weight");
  EXPECT_EQ(name("blk.17.attn_q.bias"), "model.layers.17.self_attn.q_proj.bias");
  EXPECT_EQ(name("blk.0.ffn_down.weight"), "model.layers.0.mlp.down_proj.weight");
  EXPECT_EQ(name("blk.0.ffn_norm.weight", "gemma2"),
            "model.layers.0.pre_feedforward_layernorm.weight");
  EXPECT_EQ(name("blk.0.attn_sinks.weight", "gpt-oss"), "model.layers.0.self_attn.sinks");
  EXPECT_EQ(name("blk.2.ffn_up_exps.weight"),
            "model.layers.2.block_sparse_moe.experts.@.w3.weight");
  EXPECT_EQ(name("blk.4.ssm_a", "qwen35"), "model.layers.4.linear_attn.A_log");
  EXPECT_EQ(name("blk.4.ssm_dt.bias", "nemotron_h"), "backbone.layers.4.mixer.dt_bias");
  EXPECT_EQ(name("blk.4.ffn_gate_exps.weight", "granitehybrid"),
            "model.layers.4.block_sparse_moe.@.gate_proj.weight");
  EXPECT_EQ(name("per_layer_token_embd.weight", "gemma4"), "model.embed_tokens_per_layer.weight");
  EXPECT_EQ(name("blk.4.layer_output_scale.weight", "gemma4"), "model.layers.4.layer_scalar");
  EXPECT_EQ(name("blk.4.ffn_gate_inp.scale", "gemma4"), "model.layers.4.router.scale");
  EXPECT_EQ(name("blk.4.ffn_gate_inp.weight", "gemma4"), "model.layers.4.router.proj.weight");
  EXPECT_EQ(name("blk.4.ffn_gate_up_exps.weight", "gemma4"), "model.layers.4.experts.@.&.weight");
  for (const char* unknown : {"blk.0.attn_rel_b.weight", "x", "blk.", "blk.3"}) {
    EXPECT_EQ(name(unknown), unknown);
  }
}

TEST(Gguf, OtherArchitecturesAreRefusedByName) {
  test::TemporaryFolder folder;
  Gguf file;
  file.begin(0, 1).pair("general.architecture", "mamba").data(0);
  auto opened = GgufFile::open(folder.write("x.gguf", file.bytes()));
  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(opened.error().message.find("\"mamba\" is not supported"), std::string::npos);
}

// In the file the two halves of a head lie row by row in turn.
TEST(Gguf, RowsOfQAndKAreTurnedBack) {
  test::TemporaryFolder folder;
  Gguf file;
  file.begin(2, 2).pair("general.architecture", "llama").pair("llama.attention.head_count", 2u);
  file.tensor("blk.0.attn_q.weight", {1, 8}, 0, 0).tensor("blk.0.attn_v.weight", {1, 8}, 0, 32);
  file.data(0);
  for (int i = 0; i < 16; ++i) file.number(static_cast<float>(i % 8));
  auto opened = GgufFile::open(folder.write("x.gguf", file.bytes()));
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  auto floats = [&](const char* name) {
    const TensorInfo* tensor = opened->find(name);
    std::vector<float> values(8);
    EXPECT_TRUE(opened->read(*tensor, 0, std::as_writable_bytes(std::span(values))));
    std::vector<float> some(3);  // that begin and end within rows' order
    EXPECT_TRUE(opened->read(*tensor, 8, std::as_writable_bytes(std::span(some))));
    EXPECT_TRUE(std::equal(some.begin(), some.end(), values.begin() + 2));
    return values;
  };
  EXPECT_EQ(floats("model.layers.0.self_attn.q_proj.weight"),
            (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(floats("model.layers.0.self_attn.v_proj.weight"),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

// Two value heads for each of three key heads, by their number within the key head in the file.
TEST(Gguf, ValueHeadsAreSortedBack) {
  test::TemporaryFolder folder;
  auto file_with = [&](uint64_t rows, uint32_t heads) {
    Gguf file;
    file.begin(3, 6).pair("general.architecture", "qwen35").pair("qwen35.block_count", 1u);
    file.pair("qwen35.ssm.group_count", 3u).pair("qwen35.ssm.time_step_rank", heads);
    file.pair("qwen35.ssm.state_size", 1u).pair("qwen35.ssm.inner_size", 12u);
    file.tensor("blk.0.attn_qkv.weight", {1, rows}, 0, 0).tensor("blk.0.ssm_a", {6}, 0, 96);
    file.tensor("blk.0.ssm_out.weight", {6, 1}, 0, 128).data(0);
    for (int i = 0; i < 24; ++i) file.number(static_cast<float>(i));
    for (float rate : {-1.0F, -2.0F, -4.0F, -0.5F, -8.0F, 16.0F, 0.0F, 0.0F}) file.number(rate);
    file.data(32);
    return GgufFile::open(folder.write("x.gguf", file.bytes()));
  };
  auto opened = file_with(18, 6);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  auto floats = [&](const char* name, size_t count) {
    std::vector<float> values(count);
    EXPECT_TRUE(opened->read(*opened->find(name), 0, std::as_writable_bytes(std::span(values))));
    return values;
  };
  EXPECT_EQ(floats("model.layers.0.linear_attn.in_proj_qkv.weight", 18),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 8, 9, 14, 15, 10, 11, 16, 17}));
  std::vector<float> logs = floats("model.layers.0.linear_attn.A_log", 6);
  for (size_t i = 0; i < logs.size(); ++i) {
    EXPECT_FLOAT_EQ(std::exp(logs[i]), (std::array{1.0F, 0.5F, 2.0F, 8.0F, 4.0F, 16.0F})[i]) << i;
  }
  for (auto [rows, heads] : {std::pair(17u, 6u), {18u, 4u}, {18u, 5u}, {18u, 0u}}) {
    auto wrong = file_with(rows, heads);
    ASSERT_FALSE(wrong.has_value()) << rows << " " << heads;
    EXPECT_NE(wrong.error().message.find("key heads of 1"), std::string::npos)
        << wrong.error().message;
  }
}

// The rows of each expert's gate, then of its up; a row is a block of Q4_K.
TEST(Gguf, GateAndUpOfExpertsAreTakenApart) {
  constexpr uint64_t kRowBytes = 144;
  test::TemporaryFolder folder;
  Gguf file;
  file.begin(1, 1).pair("general.architecture", "gemma4");
  file.tensor("blk.0.ffn_gate_up_exps.weight", {256, 4, 2}, 12, 0).data(0);
  for (uint8_t row = 0; row < 8; ++row) {
    for (uint64_t i = 0; i < kRowBytes; ++i) file.number(row);
  }
  auto opened = GgufFile::open(folder.write("x.gguf", file.bytes()));
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  uint8_t first_row = 0;
  for (const char* name : {"0.gate_proj", "0.up_proj", "1.gate_proj", "1.up_proj"}) {
    const TensorInfo* part = opened->find(fmt::format("model.layers.0.experts.{}.weight", name));
    ASSERT_NE(part, nullptr) << name;
    EXPECT_EQ(part->shape, (std::vector<int64_t>{2, 256}));
    std::vector<uint8_t> rows(2 * kRowBytes, first_row), read(2 * kRowBytes);
    std::ranges::fill(rows.begin() + kRowBytes, rows.end(), first_row + 1);
    EXPECT_TRUE(opened->read(*part, 0, std::as_writable_bytes(std::span(read))));
    EXPECT_EQ(read, rows) << name;
    first_row += 2;
  }
  Gguf odd;
  odd.begin(1, 1).pair("general.architecture", "gemma4");
  odd.tensor("blk.0.ffn_gate_up_exps.weight", {256, 3, 2}, 12, 0).data(6 * kRowBytes);
  auto refused = GgufFile::open(folder.write("odd.gguf", odd.bytes()));
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("has 3 rows, which are not gate's and up's"),
            std::string::npos)
      << refused.error().message;
}

// Qwen's layers for prediction follow the others.
TEST(Gguf, PredictionHasNamesOfItsOwn) {
  test::TemporaryFolder folder;
  Gguf file;
  file.begin(5, 3).pair("general.architecture", "qwen3next");
  file.pair("qwen3next.block_count", 3u).pair("qwen3next.nextn_predict_layers", 1u);
  uint64_t offset = 0;
  for (const char* name :
       {"blk.1.attn_norm.weight", "blk.2.attn_norm.weight", "blk.2.nextn.eh_proj.weight",
        "blk.2.nextn.shared_head_norm.weight", "blk.2.nextn.enorm.weight"}) {
    file.tensor(name, {1}, 0, offset);
    offset += 32;
  }
  file.data(128).number(3.0F).data(0);
  auto opened = GgufFile::open(folder.write("x.gguf", file.bytes()));
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  for (const char* name : {"model.layers.1.input_layernorm.weight", "mtp.fc.weight",
                           "mtp.layers.0.input_layernorm.weight", "mtp.norm.weight"}) {
    EXPECT_NE(opened->find(name), nullptr) << name;
  }
  const TensorInfo* norm = opened->find("mtp.pre_fc_norm_embedding.weight");
  ASSERT_NE(norm, nullptr);
  float weight = 0;
  EXPECT_TRUE(opened->read(*norm, 0, std::as_writable_bytes(std::span(&weight, 1))));
  EXPECT_EQ(weight, 2);  // of norms one less
}

// What llama.cpp's own package makes of the same bytes.
TEST(Gguf, BlocksAreWhatTheirPackageSays) {
  struct Block {
    uint32_t type;
    uint64_t numbers, bytes;
    std::vector<size_t> scales;  // where the f16 numbers 0.5 and 0.25 are
    std::vector<std::pair<size_t, float>> some;
    double sum;
  };
  const Block blocks[] = {
      {10, 256, 84, {80, 82}, {{0, 16.5F}, {17, -0.75F}, {100, 10}, {200, 4}}, 1029.5},
      {11, 256, 110, {108}, {{0, 40.5F}, {1, -54}, {130, -1}, {255, 21}}, 479},
      {20, 32, 18, {0}, {{0, -17.5F}, {1, 12.5F}, {17, -5}, {31, 0.5F}}, -128.5},
      {23, 256, 136, {0}, {{0, 32.5F}, {17, 17.5F}, {130, 310.5F}, {255, -8}}, -5502.5}};
  for (const Block& block : blocks) {
    SCOPED_TRACE(block.type);
    test::TemporaryFolder folder;
    Gguf file;
    file.begin(1, 1).pair("general.architecture", "llama");
    file.tensor("x", {block.numbers, 1}, block.type, 0).data(0);
    std::string data(block.bytes, '\0');
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>((i * 37 + 11) % 256);
    for (size_t at : block.scales) {
      data[at] = 0;
      data[at + 1] = at == block.scales[0] ? 0x38 : 0x34;
    }
    auto opened = GgufFile::open(folder.write("x.gguf", file.bytes() + data));
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    std::vector<float> values(block.numbers);
    ASSERT_TRUE(read_block_floats(*opened, *opened->find("x"), 0, 1, values.data()));
    for (auto [index, value] : block.some) EXPECT_EQ(values[index], value) << index;
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0.0), block.sum);
  }
}

// Of a matrix for keys and values of latents the parts may be of different types.
TEST(Gguf, PartsOfLatentsAreJoined) {
  test::TemporaryFolder folder;
  Gguf file;
  file.begin(2, 1).pair("general.architecture", "deepseek2");
  file.tensor("blk.0.attn_k_b.weight", {32, 2, 1}, 8, 0);  // one head, rank 2, 32 columns
  file.tensor("blk.0.attn_v_b.weight", {2, 1, 1}, 0, 96).data(0);
  for (int rank = 0; rank < 2; ++rank) {
    file.number<uint16_t>(rank == 0 ? 0x3c00 : 0x4000);  // 1 and 2
    for (int i = 0; i < 32; ++i) file.number(static_cast<int8_t>(i + 1));
  }
  file.data(0).number(70.0F).number(80.0F);
  auto opened = GgufFile::open(folder.write("x.gguf", file.bytes()));
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(opened->tensors().size(), 1u);
  const TensorInfo* tensor = opened->find("model.layers.0.self_attn.kv_b_proj.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{33, 2}));
  std::vector<float> values(66);
  ASSERT_TRUE(opened->read(*tensor, 0, std::as_writable_bytes(std::span(values))));
  for (size_t row = 0; row < 32; ++row) {
    EXPECT_EQ(values[2 * row], static_cast<float>(row + 1));
    EXPECT_EQ(values[2 * row + 1], static_cast<float>(2 * (row + 1)));
  }
  EXPECT_EQ(values[64], 70);
  EXPECT_EQ(values[65], 80);
}

}  // namespace
}  // namespace banyan::gguf_test
