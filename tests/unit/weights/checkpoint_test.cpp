// Checkpoint folders, single and sharded, right and wrong.
#include "weights/files/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "support/safetensors.h"
#include "support/shared.h"

namespace banyan::checkpoint_test {
namespace {

using test::safetensors_file;
using test::TemporaryFolder;
using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kShard1 = "model-00001-of-00002.safetensors";
constexpr const char* kShard2 = "model-00002-of-00002.safetensors";
constexpr const char* kRightMap =
    R"({"a": "model-00001-of-00002.safetensors", "b": "model-00001-of-00002.safetensors",)"
    R"( "c": "model-00002-of-00002.safetensors"})";

// Opening `folder` fails with `code`, and the message has every one of `parts`.
AssertionResult refused(const std::string& folder, ErrorCode code,
                        std::initializer_list<std::string_view> parts) {
  auto result = Checkpoint::open(folder);
  if (result) return AssertionFailure() << "accepted";
  const std::string& message = result.error().message;
  if (result.error().code != code) {
    return AssertionFailure() << to_string(result.error().code) << ": " << message;
  }
  for (std::string_view part : parts) {
    if (message.find(part) == std::string::npos) {
      return AssertionFailure() << "\"" << message << "\" lacks \"" << part << "\"";
    }
  }
  return AssertionSuccess();
}

std::string u8_file(std::initializer_list<const char*> names) {
  std::vector<test::TestTensor> tensors;
  for (const char* name : names) tensors.push_back({name, "U8", {4}, "1234"});
  return safetensors_file(tensors);
}

// A folder with shard 1 {a, b}, shard 2 {c}, and this weight_map.
struct Sharded {
  explicit Sharded(const std::string& weight_map) {
    folder.write(kShard1, u8_file({"a", "b"}));
    folder.write(kShard2, u8_file({"c"}));
    folder.write(kIndex, R"({"metadata": {"total_size": 12}, "weight_map": )" + weight_map + "}");
  }
  const std::string& path() const { return folder.path(); }

  TemporaryFolder folder;
};

// kRightMap with its first `from` replaced.
std::string map_with(std::string_view from, std::string_view to) {
  std::string map = kRightMap;
  return map.replace(map.find(from), from.size(), to);
}

TEST(Checkpoint, OpensASingleFile) {
  TemporaryFolder folder;
  folder.write("model.safetensors", u8_file({"b", "a"}));
  Checkpoint checkpoint = Checkpoint::open(folder.path()).value();
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.tensors()[0]->name, "a");
  EXPECT_EQ(checkpoint.find("x"), nullptr);
}

TEST(Checkpoint, OpensShardsAndReadsFromEach) {
  Sharded sharded(kRightMap);
  Checkpoint opened = Checkpoint::open(sharded.path()).value();
  Checkpoint checkpoint = std::move(opened);
  EXPECT_EQ(checkpoint.files().size(), 2u);
  ASSERT_EQ(checkpoint.tensors().size(), 3u);
  for (const TensorInfo* tensor : checkpoint.tensors()) {
    EXPECT_EQ(checkpoint.find(tensor->name), tensor);
    std::byte bytes[2];
    ASSERT_TRUE(checkpoint.read(*tensor, 1, bytes));
    EXPECT_EQ(bytes[0], std::byte{'2'});
    EXPECT_EQ(bytes[1], std::byte{'3'});
  }
}

TEST(Checkpoint, PrefersTheSingleFileAsTransformersDoes) {
  Sharded sharded(kRightMap);
  sharded.folder.write("model.safetensors", u8_file({"only"}));
  EXPECT_EQ(Checkpoint::open(sharded.path()).value().tensors().size(), 1u);
}

TEST(Checkpoint, ParsesAnIndexOfTwoHundredThousandTensorsQuickly) {
  std::string text = "{\"weight_map\": {";
  for (int i = 0; i < 200'000; ++i) {
    text += fmt::format(R"({}"layers.{}": "{}")", i > 0 ? "," : "", i, kShard1);
  }
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_shard_index(text + "}}", "i").value().size(), 200'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(CheckpointRefuses, IndexThatNamesAPath) {
  for (std::string_view name :
       {"../x.safetensors", "/etc/x.safetensors", "sub/x.safetensors", "..", "x.bin", "",
        ".safetensors", "a\\\\b.safetensors", "a\\u0000.safetensors", "..\\u002fx.safetensors"}) {
    Sharded sharded(map_with(kShard2, name));
    EXPECT_TRUE(refused(sharded.path(), ErrorCode::kCorrupt, {kIndex, "\"c\"", "plain"})) << name;
  }
}

TEST(CheckpointRefuses, IndexThatNamesAMissingShard) {
  Sharded sharded(kRightMap);
  std::filesystem::remove(sharded.path() + "/" + kShard2);
  EXPECT_TRUE(refused(sharded.path(), ErrorCode::kNotFound, {kShard2, "no such file", kIndex}));
}

TEST(CheckpointRefuses, TensorInTheIndexButInNoShard) {
  Sharded middle(map_with("{", "{\"ab\": \"model-00001-of-00002.safetensors\", "));
  EXPECT_TRUE(
      refused(middle.path(), ErrorCode::kCorrupt, {"\"ab\"", kShard1, "no file contains it"}));
  Sharded last(map_with("{", "{\"z\": \"model-00001-of-00002.safetensors\", "));
  EXPECT_TRUE(refused(last.path(), ErrorCode::kCorrupt, {"\"z\"", kShard1, "no file contains it"}));
}

TEST(CheckpointRefuses, TensorInAShardButNotInTheIndex) {
  Sharded middle(map_with("\"b\": \"model-00001-of-00002.safetensors\",", ""));
  EXPECT_TRUE(refused(middle.path(), ErrorCode::kCorrupt, {"\"b\"", kShard1, "not in the index"}));
  Sharded last(map_with("\"c\"", "\"a2\""));
  last.folder.write(kShard2, u8_file({"a2", "z"}));
  EXPECT_TRUE(refused(last.path(), ErrorCode::kCorrupt, {"\"z\"", kShard2, "not in the index"}));
}

TEST(CheckpointRefuses, TensorInAnotherShardThanTheIndexSays) {
  Sharded sharded(map_with(kShard1, kShard2));
  EXPECT_TRUE(refused(sharded.path(), ErrorCode::kCorrupt, {"\"a\"", kShard2, "but it is in"}));
}

TEST(CheckpointRefuses, SameTensorInTwoShards) {
  Sharded sharded(kRightMap);
  sharded.folder.write(kShard2, u8_file({"c", "a"}));
  EXPECT_TRUE(refused(sharded.path(), ErrorCode::kCorrupt, {"\"a\" is both in", kShard1, kShard2}));
}

TEST(CheckpointRefuses, TruncatedLastShard) {
  Sharded sharded(kRightMap);
  std::string bytes = u8_file({"c"});
  sharded.folder.write(kShard2, bytes.substr(0, bytes.size() - 1));
  EXPECT_TRUE(refused(sharded.path(), ErrorCode::kCorrupt, {kShard2, "\"c\"", "truncated"}));
}

TEST(CheckpointRefuses, BrokenIndex) {
  auto parse = [](std::string_view text) { return parse_shard_index(text, "i.json"); };
  for (std::string_view text :
       {"", "[]", "{}", "{", "{\"weight_map\": []}", "{\"weight_map\": {}}", "\xff",
        "{\"weight_map\": {\"a\": 1}}", "{\"weight_map\": {\"a\": null}}",
        "{\"weight_map\": {\"a\": \"x.safetensors\"}} x"}) {
    auto result = parse(text);
    ASSERT_FALSE(result) << text;
    EXPECT_TRUE(result.error().message.starts_with("i.json: ")) << result.error().message;
  }
  EXPECT_FALSE(parse(std::string(100'000, '[')));
  EXPECT_TRUE(parse(R"({"weight_map": {"a": "x.safetensors"}})"));
}

TEST(CheckpointRefuses, DuplicateKeysInTheIndex) {
  auto message = [](std::string_view text) { return parse_shard_index(text, "i").error().message; };
  EXPECT_EQ(message(R"({"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}})"),
            "i: the tensor \"a\" appears twice");
  EXPECT_EQ(message(R"({"weight_map": {"a": "x.safetensors"}, "weight_map": {}})"),
            "i: the key \"weight_map\" appears twice");
}

TEST(CheckpointRefuses, FolderWithoutWeightsNamesWhatItLookedFor) {
  TemporaryFolder folder;
  EXPECT_TRUE(refused(folder.path(), ErrorCode::kNotFound,
                      {folder.path(), "no model.safetensors", kIndex}));
  EXPECT_TRUE(refused(folder.path() + "/absent", ErrorCode::kNotFound, {"no such folder"}));
  folder.write("consolidated.safetensors", u8_file({"a"}));
  EXPECT_TRUE(refused(folder.path(), ErrorCode::kNotFound, {"consolidated.safetensors"}));
}

TEST(CheckpointRefuses, PickledWeights) {
  TemporaryFolder folder;
  folder.write("pytorch_model.bin", "pickle");
  EXPECT_TRUE(refused(folder.path(), ErrorCode::kUnsupported,
                      {"pytorch_model.bin", "only safetensors is read", "convert"}));
}

TEST(CheckpointRefuses, Gguf) {
  TemporaryFolder folder;
  std::string path = folder.write("m.gguf", "GGUF");
  EXPECT_TRUE(refused(folder.path(), ErrorCode::kUnsupported, {"m.gguf", "add --gguf"}));
  EXPECT_TRUE(refused(path, ErrorCode::kUnsupported, {"m.gguf", "a GGUF file"}));
}

TEST(CheckpointRefuses, AFileInPlaceOfTheFolder) {
  TemporaryFolder folder;
  std::string path = folder.write("model.safetensors", u8_file({"a"}));
  EXPECT_TRUE(refused(path, ErrorCode::kUnsupported, {path, "give its folder"}));
}

}  // namespace
}  // namespace banyan::checkpoint_test
