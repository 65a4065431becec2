// safetensors files, right and wrong; every violation of the format is refused.
#include "weights/files/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>

#include "support/safetensors.h"
#include "support/shared.h"

namespace banyan::safetensors_test {
namespace {

using test::safetensors_file;
using test::TemporaryFolder;
using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

Result<SafetensorsHeader> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "x.safetensors");
}

// The file is refused, and the message names the file and every one of `parts`.
AssertionResult refused(const std::string& file, std::initializer_list<std::string_view> parts) {
  auto result = parse(file);
  if (result) return AssertionFailure() << "accepted";
  const std::string& message = result.error().message;
  if (!message.starts_with("x.safetensors: ")) return AssertionFailure() << message;
  for (std::string_view part : parts) {
    if (message.find(part) == std::string::npos) {
      return AssertionFailure() << "\"" << message << "\" lacks \"" << part << "\"";
    }
  }
  return AssertionSuccess();
}

AssertionResult header_refused(std::string_view header,
                               std::initializer_list<std::string_view> parts) {
  return refused(safetensors_file(header, ""), parts);
}

std::string length_prefix(uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

// One tensor "w" with these fields, and `data_bytes` bytes of data.
std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets,
                size_t data_bytes) {
  std::string header =
      fmt::format(R"({{"w":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
  return safetensors_file(header, std::string(data_bytes, 'x'));
}

// Two U8 tensors "a" and "b" with these offsets.
std::string two(int a_begin, int a_end, int b_begin, int b_end, size_t data_bytes) {
  auto tensor = [](int begin, int end) {
    return fmt::format(R"({{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", end - begin,
                       begin, end);
  };
  std::string header =
      fmt::format(R"({{"a":{},"b":{}}})", tensor(a_begin, a_end), tensor(b_begin, b_end));
  return safetensors_file(header, std::string(data_bytes, 'x'));
}

TEST(Safetensors, ReadsTensorsSortedByName) {
  TemporaryFolder folder;
  std::string path = folder.write("m.safetensors", safetensors_file({
                                                       {"z", "F32", {2, 1}, "12345678"},
                                                       {"a", "BF16", {3}, "abcdef"},
                                                   }));
  SafetensorsFile file = SafetensorsFile::open(path).value();
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  const TensorInfo* z = file.find("z");
  ASSERT_NE(z, nullptr);
  EXPECT_EQ(z->dtype, DType::kF32);
  EXPECT_EQ(z->shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(std::memcmp(z->bytes.data(), "12345678", 8), 0);
  EXPECT_EQ(file.find("b"), nullptr);
  EXPECT_EQ(file.find(""), nullptr);
}

TEST(Safetensors, ReadsScalarsEmptyTensorsMetadataAndEscapedNames) {
  auto header = parse(safetensors_file(
      R"({"__metadata__":{"format":"pt"},"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("caf\u00e9":{"data_offsets":[8,8],"shape":[0,5],"dtype":"F16"}}   )",
      "12345678"));
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->metadata.at("format"), "pt");
  EXPECT_EQ(header->tensors[0].name, "café");
  EXPECT_TRUE(header->tensors[0].bytes.empty());
  EXPECT_TRUE(header->tensors[1].shape.empty());
}

TEST(Safetensors, ReadsAFileWithoutTensors) {
  EXPECT_TRUE(parse(safetensors_file("{}", "")).value().tensors.empty());
}

TEST(Safetensors, ToleratesMisalignedData) {
  std::string file = safetensors_file(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                      R"("f":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                                      "x1234");  // which the header looks into
  auto header = parse(file);
  ASSERT_TRUE(header);
  EXPECT_EQ(std::memcmp(header->tensors[1].bytes.data(), "1234", 4), 0);
}

TEST(Safetensors, ReadsTrainedModels) {
  auto file = SafetensorsFile::open(test::nano_model() + "/model.safetensors");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_NE(file->find("model.word_embeddings.weight"), nullptr);
  EXPECT_EQ(file->find("model.word_embeddings.weight")->shape, (std::vector<int64_t>{3072, 192}));
}

TEST(Safetensors, TruncationAfterOpenIsAnErrorAndNoSignal) {
  TemporaryFolder folder;
  std::string bytes(1 << 20, 'x');
  std::string path =
      folder.write("m.safetensors", safetensors_file({{"w", "U8", {1 << 20}, bytes}}));
  SafetensorsFile file = SafetensorsFile::open(path).value();
  std::vector<std::byte> copy(bytes.size());
  EXPECT_TRUE(file.read(file.tensors()[0], 0, copy));
  EXPECT_EQ(std::memcmp(copy.data(), bytes.data(), copy.size()), 0);
  std::filesystem::resize_file(path, 4096);
  Status status = file.read(file.tensors()[0], 0, copy);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("was truncated"), std::string::npos);
}

// Linear time: comparing every name with every other would take minutes.
TEST(Safetensors, ReadsTwoHundredThousandTensorsQuickly) {
  std::vector<test::TestTensor> tensors;
  for (int i = 0; i < 200'000; ++i) tensors.push_back({fmt::format("t{}", i), "U8", {1}, "x"});
  std::string file = safetensors_file(tensors);
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse(file).value().tensors.size(), tensors.size());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(SafetensorsRefuses, FileShorterThanEightBytes) {
  EXPECT_TRUE(refused("", {"0 bytes"}));
  EXPECT_TRUE(refused("1234567", {"7 bytes"}));
}

TEST(SafetensorsRefuses, HeaderLengthZero) {
  EXPECT_TRUE(refused(length_prefix(0), {"(0 bytes)", "does not begin with {"}));
}

TEST(SafetensorsRefuses, HeaderLengthBeyondTheFile) {
  EXPECT_TRUE(refused(length_prefix(3) + "{}", {"header length 3", "10 bytes"}));
}

TEST(SafetensorsRefuses, HeaderLengthAboveTheLimit) {
  EXPECT_TRUE(refused(length_prefix(100'000'001) + "{}", {"100000001", "limit of 100000000"}));
  EXPECT_TRUE(refused(length_prefix(uint64_t{1} << 63) + "{}", {"9223372036854775808"}));
  EXPECT_TRUE(refused(length_prefix(~uint64_t{0}) + "{}", {"18446744073709551615"}));
}

TEST(SafetensorsRefuses, HeaderThatIsNoObject) {
  EXPECT_TRUE(header_refused("[1]", {"does not begin with {"}));
  EXPECT_TRUE(header_refused(" {}", {"does not begin with {"}));
  EXPECT_TRUE(header_refused("{} {}", {"not valid JSON"}));
  EXPECT_TRUE(header_refused("{\"a\":", {"not valid JSON"}));
}

TEST(SafetensorsRefuses, InvalidUtf8) {
  EXPECT_TRUE(header_refused("{\"\xff\":{}}", {"UTF-8"}));
}

TEST(SafetensorsRefuses, DuplicateKeys) {
  std::string w = R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)";
  std::string plain = w + R"("w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  EXPECT_TRUE(refused(safetensors_file(plain, "xx"), {"\"w\" appears twice"}));
  std::string escaped = w + R"("\u0077":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  EXPECT_TRUE(refused(safetensors_file(escaped, "xx"), {"\"w\" appears twice"}));
  EXPECT_TRUE(
      header_refused(R"({"w":{"dtype":"U8","dtype":"I8"}})", {"\"w\"", "\"dtype\" appears twice"}));
  EXPECT_TRUE(header_refused(R"({"__metadata__":{},"__metadata__":{}})",
                             {"\"__metadata__\" appears twice"}));
  EXPECT_TRUE(header_refused(R"({"__metadata__":{"a":"","a":""}})", {"\"a\" twice"}));
}

TEST(SafetensorsRefuses, DeepNesting) {
  std::string deep = "{\"w\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_TRUE(header_refused(deep, {"too deep"}));
}

TEST(SafetensorsRefuses, OffsetsThatRunBackwards) {
  EXPECT_TRUE(refused(one("\"U8\"", "[4]", "[4,0]", 4), {"\"w\"", "begin at 4", "end 0"}));
}

TEST(SafetensorsRefuses, NegativeNumbers) {
  EXPECT_TRUE(refused(one("\"U8\"", "[4]", "[-4,0]", 4), {"\"w\"", "data_offsets has -4"}));
  EXPECT_TRUE(refused(one("\"U8\"", "[-1,-4]", "[0,4]", 4), {"\"w\"", "shape has -1"}));
}

TEST(SafetensorsRefuses, NumbersThatAreNoIntegers) {
  EXPECT_TRUE(refused(one("\"U8\"", "[4.5]", "[0,4]", 4), {"shape has 4.5"}));
  EXPECT_TRUE(refused(one("\"U8\"", "[4.0]", "[0,4]", 4), {"shape has 4"}));
  EXPECT_TRUE(refused(one("\"U8\"", "[\"4\"]", "[0,4]", 4), {"shape has \"4\""}));
  EXPECT_TRUE(refused(one("\"U8\"", "[null]", "[0,4]", 4), {"shape has null"}));
  EXPECT_TRUE(
      refused(one("\"U8\"", "[9223372036854775808]", "[0,4]", 4), {"has 9223372036854775808"}));
  EXPECT_TRUE(refused(one("\"U8\"", "[1e400]", "[0,4]", 4), {"not valid JSON"}));
}

TEST(SafetensorsRefuses, FieldsOfTheWrongForm) {
  EXPECT_TRUE(refused(one("7", "[4]", "[0,4]", 4), {"dtype is 7"}));
  EXPECT_TRUE(refused(one("\"U8\"", "4", "[0,4]", 4), {"shape is 4, not a list"}));
  EXPECT_TRUE(refused(one("\"U8\"", "[4]", "[0]", 4), {"data_offsets has 1 numbers, not 2"}));
  EXPECT_TRUE(refused(one("\"U8\"", "[4]", "[0,4,4]", 4), {"more than 2"}));
  EXPECT_TRUE(refused(one("\"U8\"", "[1,1,1,1,1,1,1,1,4]", "[0,4]", 4), {"more than 8"}));
  EXPECT_TRUE(header_refused(R"({"w":[]})", {"\"w\"", "[] is not an object"}));
  EXPECT_TRUE(header_refused(R"({"w":{}})", {"\"w\": no dtype"}));
  EXPECT_TRUE(header_refused(R"({"w":{"dtype":"U8"}})", {"no shape"}));
  EXPECT_TRUE(header_refused(R"({"w":{"dtype":"U8","shape":[]}})", {"no data_offsets"}));
  EXPECT_TRUE(header_refused(R"({"w":{"stride":1}})", {"unknown field \"stride\""}));
  EXPECT_TRUE(header_refused(R"({"__metadata__":{"a":1}})", {"\"a\" is 1"}));
  EXPECT_TRUE(header_refused(R"({"__metadata__":"pt"})", {"__metadata__ is \"pt\""}));
}

TEST(SafetensorsRefuses, BytesPastTheEnd) {
  EXPECT_TRUE(refused(one("\"U8\"", "[5]", "[0,5]", 4), {"\"w\"", "[0, 5]", "4 data bytes"}));
  EXPECT_TRUE(refused(one("\"U8\"", "[5]", "[9223372036854775800,9223372036854775805]", 4),
                      {"9223372036854775805"}));
}

TEST(SafetensorsRefuses, OverlappingTensors) {
  EXPECT_TRUE(refused(two(0, 4, 2, 6, 6), {"\"a\" and \"b\" overlap at 2"}));
  EXPECT_TRUE(refused(two(0, 4, 0, 4, 4), {"overlap at 0"}));
  EXPECT_TRUE(refused(two(0, 8, 2, 4, 8), {"overlap at 2"}));
}

TEST(SafetensorsRefuses, EmptyTensorInsideAnother) {
  EXPECT_TRUE(refused(two(0, 4, 2, 2, 4), {"\"a\" and \"b\" overlap at 2"}));
  EXPECT_TRUE(parse(two(0, 4, 4, 4, 4)));
  EXPECT_TRUE(parse(two(0, 4, 0, 0, 4)));
}

TEST(SafetensorsRefuses, HolesAndTrailingBytes) {
  EXPECT_TRUE(refused(two(0, 4, 5, 6, 6), {"hole of 1 bytes before tensor \"b\" at 5"}));
  EXPECT_TRUE(refused(two(2, 4, 4, 6, 6), {"hole of 2 bytes before tensor \"a\" at 2"}));
  EXPECT_TRUE(refused(two(0, 4, 4, 6, 9), {"3 bytes after the last tensor"}));
  EXPECT_TRUE(refused(safetensors_file("{}", "x"), {"1 bytes after the last tensor"}));
}

TEST(SafetensorsRefuses, ShapeProductOverflow) {
  EXPECT_TRUE(refused(one("\"U8\"", "[4194305,4194305,211106198978564]", "[0,4]", 4),
                      {"\"w\"", "[4194305, 4194305, 211106198978564]", "overflows"}));
  EXPECT_TRUE(refused(one("\"F32\"", "[4611686018427387904]", "[0,0]", 0), {"overflows"}));
}

TEST(SafetensorsRefuses, ShapeThatDoesNotMatchTheBytes) {
  EXPECT_TRUE(
      refused(one("\"F32\"", "[2]", "[0,4]", 4), {"\"w\"", "[2] F32", "8 bytes", "span 4"}));
  EXPECT_TRUE(refused(one("\"F32\"", "[]", "[0,0]", 0), {"[] F32 takes 4 bytes"}));
}

TEST(SafetensorsRefuses, UnknownDtype) {
  auto result = parse(one("\"F6_E2M3\"", "[4]", "[0,3]", 3));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(result.error().message.find("tensor \"w\": dtype \"F6_E2M3\""), std::string::npos);
}

TEST(SafetensorsRefuses, GitLfsPointer) {
  EXPECT_TRUE(refused("version https://git-lfs.github.com/spec/v1\noid 0\n", {"git lfs pull"}));
}

TEST(SafetensorsRefuses, AHostileNameWithAShortHarmlessMessage) {
  auto result =
      parse(safetensors_file("{\"\\u001b[2J" + std::string(1'000'000, 'n') + "\":1}", ""));
  ASSERT_FALSE(result);
  EXPECT_LT(result.error().message.size(), 300u);
  EXPECT_EQ(result.error().message.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace banyan::safetensors_test
