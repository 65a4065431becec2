// The digest of a checkpoint: independent of files and ranks, sensitive to every byte, and its
// cache.
#include "weights/block_hashes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>

#include "base/file.h"
#include "support/safetensors.h"
#include "support/shared.h"

namespace banyan::block_hashes_test {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using test::TestTensor;

constexpr int64_t kLong = 2'400'000;  // numbers: 9.6 MB, which are two blocks and a part

std::string bytes_of(int64_t count, uint32_t seed) {
  std::string bytes(static_cast<size_t>(count), '\0');
  for (size_t i = 0; i < bytes.size(); i += 61) {  // many enough
    bytes[i] = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  }
  return bytes;
}

// One tensor of three blocks among small ones.
std::vector<TestTensor> three_tensors() {
  return {{"a.weight", "BF16", {3, 5}, bytes_of(30, 1)},
          {"long.weight", "F32", {4, kLong / 4}, bytes_of(kLong * 4, 2)},
          {"z.weight", "F32", {7}, bytes_of(28, 3)}};
}

Checkpoint open(const TemporaryFolder& folder) {
  auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  return *std::move(checkpoint);
}

Digest digest_of(const std::vector<TestTensor>& tensors) {
  TemporaryFolder folder;
  folder.write("model.safetensors", test::safetensors_file(tensors));
  ThreadPool threads(2);
  auto digest = weights_digest(open(folder), "", threads, {});
  EXPECT_TRUE(digest.has_value()) << digest.error().message;
  return *digest;
}

TEST(BlockHashes, EqualTensorsHaveOneDigestWhereverTheyLie) {
  EXPECT_EQ(digest_of(three_tensors()), digest_of(three_tensors()));
  TemporaryFolder folder;
  std::vector<TestTensor> all = three_tensors();
  folder.write("one.safetensors", test::safetensors_file({all[2], all[0]}));
  folder.write("two.safetensors", test::safetensors_file({all[1]}));
  folder.write("model.safetensors.index.json", R"({"weight_map": {
      "a.weight": "one.safetensors", "z.weight": "one.safetensors",
      "long.weight": "two.safetensors"}})");
  ThreadPool threads(3);
  EXPECT_EQ(*weights_digest(open(folder), "", threads, {}), digest_of(three_tensors()));
}

TEST(BlockHashes, AnyChangedByteNameTypeOrShapeGivesAnotherDigest) {
  const std::vector<std::function<void(std::vector<TestTensor>&)>> changes = {
      [](auto& t) { t[1].bytes[0] ^= 1; },
      [](auto& t) { t[1].bytes[kHashBlockBytes - 1] ^= 0x40; },
      [](auto& t) { t[1].bytes[kHashBlockBytes + kHashBlockBytes / 2] ^= 1; },  // mid-block
      [](auto& t) { t[1].bytes.back() ^= 1; },
      [](auto& t) { t[2].bytes[5] ^= 1; },
      [](auto& t) { std::swap(t[0].bytes[0], t[0].bytes[1]); },
      [](auto& t) { t[0].name = "b.weight"; },
      [](auto& t) { t[0].dtype = "F16"; },
      [](auto& t) { t[0].shape = {5, 3}; },
      [](auto& t) { t[0].shape = {15}; },
      [](auto& t) { t.pop_back(); },
      [](auto& t) { t.push_back({"zz", "F32", {0}, ""}); },
  };
  std::vector<Digest> seen = {digest_of(three_tensors())};
  for (const auto& change : changes) {
    std::vector<TestTensor> tensors = three_tensors();
    change(tensors);
    Digest digest = digest_of(tensors);
    EXPECT_EQ(std::ranges::find(seen, digest), seen.end()) << "change " << seen.size();
    seen.push_back(digest);
  }
}

TEST(BlockHashes, WhatRanksHashApartCombinesToTheWhole) {
  TemporaryFolder folder;
  folder.write("model.safetensors", test::safetensors_file(three_tensors()));
  Checkpoint checkpoint = open(folder);
  std::vector<WeightBlock> blocks = weight_blocks(checkpoint);
  ASSERT_EQ(blocks.size(), 5u);
  for (size_t ranks : {2u, 3u, 4u}) {
    std::vector<Digest> exchanged;
    for (size_t rank = 0; rank < ranks; ++rank) {
      size_t begin = blocks.size() * rank / ranks, end = blocks.size() * (rank + 1) / ranks;
      std::vector<Digest> own(end - begin);
      ThreadPool threads(1);
      ASSERT_TRUE(
          hash_blocks(checkpoint, std::span(blocks).subspan(begin, end - begin), threads, {}, own));
      exchanged.insert(exchanged.end(), own.begin(), own.end());
    }
    EXPECT_EQ(combine_hashes(checkpoint, exchanged), digest_of(three_tensors())) << ranks;
  }
}

TEST(BlockHashes, AFileThatBecameShorterIsAnError) {
  TemporaryFolder folder;
  std::string path = folder.write("model.safetensors", test::safetensors_file(three_tensors()));
  Checkpoint checkpoint = open(folder);
  fs::resize_file(path, 1000);
  ThreadPool threads(2);
  auto digest = weights_digest(checkpoint, "", threads, {});
  ASSERT_FALSE(digest.has_value());
  EXPECT_NE(digest.error().message.find("model.safetensors"), std::string::npos);
}

class HashCacheTest : public testing::Test {
 protected:
  HashCacheTest() { write(three_tensors()); }

  void write(const std::vector<TestTensor>& tensors) {
    path_ = folder_.write("model.safetensors", test::safetensors_file(tensors));
    fs::last_write_time(path_, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }

  // The digest; whether any byte of the weights was hashed for it is in hashed_.
  Digest digest() {
    hashed_ = false;
    ThreadPool threads(1);
    auto progress = [&](int64_t, int64_t) { hashed_ = true; };
    return *weights_digest(open(folder_), cache_.path(), threads, progress);
  }

  std::string entry() const {
    for (const auto& file : fs::recursive_directory_iterator(cache_.path())) {
      if (file.is_regular_file()) return file.path();
    }
    return "";
  }

  TemporaryFolder folder_, cache_;
  std::string path_;
  bool hashed_ = false;
};

TEST_F(HashCacheTest, AFileIsHashedOnce) {
  Digest first = digest();
  EXPECT_TRUE(hashed_);
  EXPECT_EQ(digest(), first);
  EXPECT_FALSE(hashed_);
}

TEST_F(HashCacheTest, AChangedFileIsHashedAgain) {
  Digest first = digest();
  std::vector<TestTensor> tensors = three_tensors();
  tensors[1].bytes[100] ^= 1;
  write(tensors);  // the same size, and the old time
  EXPECT_NE(digest(), first);
  EXPECT_TRUE(hashed_);
}

TEST_F(HashCacheTest, ADamagedEntryIsIgnoredAndReplaced) {
  Digest first = digest();
  std::string whole = *read_file(entry());
  std::vector<std::string> damaged = {"", "x", whole.substr(0, whole.size() - 1), whole + "x"};
  for (size_t at : {size_t{3}, size_t{40}, whole.size() - 2}) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 1;
  }
  for (const std::string& bytes : damaged) {
    ASSERT_TRUE(replace_file(entry(), bytes));
    EXPECT_EQ(digest(), first);
    EXPECT_TRUE(hashed_);
    EXPECT_EQ(*read_file(entry()), whole);
  }
}

TEST_F(HashCacheTest, AnEntryOfAnotherFileIsIgnored) {
  digest();
  std::string other = *read_file(entry());
  std::vector<TestTensor> tensors = three_tensors();
  tensors[1].bytes[100] ^= 1;
  write(tensors);
  Digest changed = digest();
  ASSERT_TRUE(replace_file(entry(), other));
  EXPECT_EQ(digest(), changed);
  EXPECT_TRUE(hashed_);
}

TEST_F(HashCacheTest, AFileThatChangedJustNowIsNotKept) {
  fs::last_write_time(path_, fs::file_time_type::clock::now());
  digest();
  EXPECT_EQ(entry(), "");
}

TEST_F(HashCacheTest, AFolderThatCannotBeWrittenFailsNothing) {
  ThreadPool threads(1);
  std::string in_a_file = path_ + "/cache";
  EXPECT_EQ(*weights_digest(open(folder_), in_a_file, threads, {}), digest());
}

}  // namespace
}  // namespace banyan::block_hashes_test
