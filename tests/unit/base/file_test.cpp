// Reading and mapping files: limits, pipes, files that shrink while mapped.
#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <string>

#include "support/shared.h"

namespace banyan::file_test {
namespace {

using test::TemporaryFolder;

TEST(File, ReadsWholeFileWithinLimit) {
  TemporaryFolder folder;
  std::string path = folder.write("a", std::string("x\0y", 3));
  EXPECT_EQ(read_file(path).value(), std::string("x\0y", 3));
  EXPECT_EQ(read_file(path, 3).value().size(), 3u);
  EXPECT_EQ(read_file(path, 2).error().code, ErrorCode::kExhausted);
}

TEST(File, NamesWhatCannotBeRead) {
  TemporaryFolder folder;
  auto absent = read_file(folder.path() + "/absent");
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
  EXPECT_NE(absent.error().message.find("/absent: "), std::string::npos);
  EXPECT_EQ(read_file(folder.path()).error().code, ErrorCode::kIo);
  EXPECT_FALSE(file_exists(folder.path()));
}

TEST(File, APipeIsRefusedAndDoesNotBlock) {
  TemporaryFolder folder;
  std::string path = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(read_file(path).error().code, ErrorCode::kIo);
  EXPECT_EQ(MappedFile::open(path).error().code, ErrorCode::kIo);
}

TEST(File, MapsBytesAndSurvivesAMove) {
  TemporaryFolder folder;
  MappedFile first = MappedFile::open(folder.write("a", "hello")).value();
  MappedFile second = std::move(first);
  EXPECT_EQ(second.text(), "hello");
  EXPECT_TRUE(second.unchanged());
  MappedFile empty = MappedFile::open(folder.write("b", "")).value();
  EXPECT_TRUE(empty.bytes().empty());
}

TEST(File, TruncationAfterTheMapIsAnError) {
  TemporaryFolder folder;
  MappedFile file = MappedFile::open(folder.write("a", "hello world")).value();
  std::array<std::byte, 5> bytes;
  ASSERT_TRUE(file.read(6, bytes));
  EXPECT_EQ(std::string_view(reinterpret_cast<char*>(bytes.data()), 5), "world");
  std::filesystem::resize_file(file.path(), 8);
  EXPECT_NE(file.unchanged().error().message.find("was truncated"), std::string::npos);
  EXPECT_NE(file.read(6, bytes).error().message.find("was truncated"), std::string::npos);
  EXPECT_TRUE(file.read(0, bytes));
}

}  // namespace
}  // namespace banyan::file_test
