// Small tokenizers written for one feature each; golden tests cover the published ones.
#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "support/shared.h"

namespace banyan::tokenizer_test {
namespace {

constexpr const char* kModel =
    R"({"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4},"merges":["a b",["ab","c"]]})";

// A tokenizer.json with this model and these other fields.
std::string json_with(const std::string& fields, const std::string& model = kModel) {
  return "{" + fields + (fields.empty() ? "" : ",") + "\"model\":" + model + "}";
}

std::string error_of(const std::string& json) {
  auto parts = read_tokenizer_json(json, "tokenizer.json");
  return parts ? "" : parts.error().message;
}

std::unique_ptr<Tokenizer> make(const std::string& json) {
  return Tokenizer::make(read_tokenizer_json(json, "tokenizer.json").value(), {}).value();
}

void expect_error(const std::string& json, const std::string& part) {
  EXPECT_NE(error_of(json).find(part), std::string::npos) << error_of(json);
}

using Ids = std::vector<TokenId>;

TEST(Tokenizer, MergesByRank) {
  auto tokenizer = make(json_with(""));
  EXPECT_EQ(tokenizer->encode("abcab").value(), (Ids{4, 3}));
  EXPECT_EQ(tokenizer->encode("axb").value(), Ids{3});  // x is left out: there is no unk_token
  EXPECT_EQ(tokenizer->encode("").value(), Ids{});
  EXPECT_EQ(tokenizer->find("abc"), 4);
  EXPECT_EQ(tokenizer->token(4), "abc");
  EXPECT_EQ(tokenizer->vocab_size(), 5);
}

TEST(Tokenizer, AnUnkTokenIsMissedOnlyWhereItIsNeeded) {
  for (const char* unk : {"", "<unk>"}) {
    auto tokenizer = make(json_with(
        "", std::string(R"({"type":"BPE","vocab":{"a":0,"b":1},"merges":[],"unk_token":")") + unk +
                "\"}"));
    EXPECT_EQ(tokenizer->encode("ab").value(), (Ids{0, 1}));
    auto ids = tokenizer->encode("abx");
    ASSERT_FALSE(ids);
    EXPECT_NE(ids.error().message.find("unk_token"), std::string::npos) << ids.error().message;
    EXPECT_FALSE(tokenizer->encode(std::string(100, 'x')));
  }
}

// A character that is not in the vocabulary is left out, and its neighbours meet.
TEST(Tokenizer, MergesAcrossWhatIsLeftOutInLongWords) {
  auto tokenizer = make(json_with(
      "", R"({"type":"BPE","vocab":{"a":0,"\u2581":1,"a\u2581":2},"merges":["a \u2581"]})"));
  EXPECT_EQ(tokenizer->encode("aZ\u2581").value(), Ids{2});
  std::string text;
  Ids expected;
  for (int i = 0; i < 20; ++i) {
    text += "aZ\u2581";
    expected.push_back(2);
  }
  EXPECT_EQ(tokenizer->encode(text).value(), expected);
}

TEST(Tokenizer, RefusesInvalidUtf8AndNegativeIds) {
  auto tokenizer = make(json_with(""));
  auto bad = tokenizer->encode("ab\xff");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("byte 2"), std::string::npos);
  EXPECT_FALSE(tokenizer->decode(Ids{0, -1}));
  EXPECT_EQ(tokenizer->decode(Ids{0, 1000000}).value(), "a");
  EXPECT_EQ(tokenizer->token(-5), "");
  EXPECT_EQ(tokenizer->token(77), "");
}

TEST(Tokenizer, ParsesSpecialTokensOnlyIfAsked) {
  auto tokenizer = make(json_with(
      R"("added_tokens":[{"id":5,"content":"<c>","special":true},{"id":6,"content":"bb"}],)"
      R"("decoder":{"type":"Fuse"})"));
  EXPECT_EQ(tokenizer->encode("a<c>bb").value(), (Ids{0, 5, 6}));
  EXPECT_EQ(tokenizer->encode("a<c>bb", {.parse_special = false}).value(), (Ids{0, 2, 6}));
  EXPECT_TRUE(tokenizer->is_special(5));
  EXPECT_FALSE(tokenizer->is_special(6));
  EXPECT_EQ(tokenizer->decode(Ids{0, 5, 6}, true).value(), "abb");
  EXPECT_EQ(tokenizer->decode(Ids{0, 5, 6}, false).value(), "a<c>bb");
}

TEST(Tokenizer, FindsTheLeftmostThenLongestAddedToken) {
  auto tokenizer = make(
      json_with(R"("added_tokens":[{"id":5,"content":"<x>"},{"id":6,"content":"<x><y>"},)"
                R"({"id":7,"content":"x><y><z"},{"id":8,"content":"><"},{"id":9,"content":"y"},)"
                R"({"id":10,"content":"yy"}])"));
  EXPECT_EQ(tokenizer->encode("<x><z").value(), Ids{5});
  EXPECT_EQ(tokenizer->encode("<x><y><z").value(), Ids{6});
  EXPECT_EQ(tokenizer->encode("ax><y><za").value(), (Ids{0, 7, 0}));
  EXPECT_EQ(tokenizer->encode("yyyx><yy").value(), (Ids{10, 9, 8, 10}));
}

TEST(Tokenizer, AddedTokensTakeLinearTimeWhateverTheyAre) {
  const std::string a(1023, 'a');
  auto tokenizer = make(json_with(R"("added_tokens":[{"id":5,"content":")" + a +
                                  R"(b"},{"id":6,"content":"b)" + a +
                                  R"("},{"id":7,"content":" ","rstrip":true},)"
                                  R"({"id":8,"content":"\n","rstrip":true,"lstrip":true}])"));
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& unit :
       {std::string("a"), a + "c", std::string(" "), std::string(" \n")}) {
    std::string text;
    while (text.size() < 2'000'000) text += unit;
    EXPECT_TRUE(tokenizer->encode(text));
  }
  EXPECT_EQ(tokenizer->encode(a + "b").value(), Ids{5});
  EXPECT_EQ(tokenizer->encode("   a").value(), (Ids{7, 7, 7, 0}));
  // A fraction of a second when quiet; the square of the text would be hours.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Tokenizer, RefusesTooManyBytesOfAddedTokens) {
  std::string tokens;
  for (int i = 0; i < 4200; ++i) {
    const std::string id = std::to_string(10'000 + i);
    tokens += (i ? R"(,{"id":)" : R"({"id":)") + id + R"(,"content":")" + id +
              std::string(1000, 'x') + R"("})";
  }
  auto parts =
      read_tokenizer_json(json_with(R"("added_tokens":[)" + tokens + "]"), "tokenizer.json");
  ASSERT_TRUE(parts) << parts.error().message;
  auto tokenizer = Tokenizer::make(std::move(*parts), {});
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, ErrorCode::kExhausted);
  expect_error(
      json_with(R"("added_tokens":[{"id":5,"content":")" + std::string(1025, 'x') + R"("}])"),
      "the limit is 1024");
}

TEST(Tokenizer, RefusesByNameWhatIsNotSupported) {
  expect_error(json_with("", R"({"type":"Unigram","vocab":[]})"), "\"Unigram\" is not supported");
  expect_error(json_with("", R"({"type":"WordPiece","vocab":{}})"), "\"WordPiece\"");
  expect_error(json_with(R"("normalizer":{"type":"Precompiled"})"), "normalizer \"Precompiled\"");
  expect_error(json_with(R"("pre_tokenizer":{"type":"UnicodeScripts"})"), "\"UnicodeScripts\"");
  expect_error(json_with(R"("post_processor":{"type":"New"})"), "post-processor \"New\"");
  expect_error(json_with(R"("decoder":{"type":"CTC"})"), "decoder \"CTC\"");
  expect_error(json_with("", R"({"dropout":0.1,"vocab":{"a":0},"merges":[]})"), "dropout");
}

TEST(Tokenizer, RefusesWrongTypesEverywhere) {
  for (const char* wrong : {"1", "\"x\"", "[]", "[1]", "true", "{\"type\":1}", "{}"}) {
    for (const char* key : {"normalizer", "pre_tokenizer", "post_processor", "decoder", "model"}) {
      const std::string json = std::string("{\"") + key + "\":" + wrong + "}";
      EXPECT_NE(error_of(json), "") << json;
    }
  }
  for (const char* vocab : {"[]", "1", R"({"a":"0"})", R"({"a":0.5})", R"({"a":null})"}) {
    EXPECT_NE(error_of(json_with("", std::string(R"({"merges":[],"vocab":)") + vocab + "}")), "");
  }
  for (const char* merges :
       {"{}", "1", "[1]", R"(["a"])", R"(["a b c"])", R"([["a"]])", R"([["a",1]])"}) {
    EXPECT_NE(
        error_of(json_with("", std::string(R"({"vocab":{"a":0,"b":1},"merges":)") + merges + "}")),
        "");
  }
  expect_error(json_with(R"("added_tokens":[1])"), "added_tokens");
  expect_error(json_with(R"("added_tokens":[{"content":"x"}])"), "\"id\" is missing");
}

TEST(Tokenizer, RefusesTruncatedFiles) {
  const std::string whole = json_with(R"("decoder":{"type":"ByteLevel"})");
  ASSERT_EQ(error_of(whole), "");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(error_of(whole.substr(0, size)), "") << size;
  }
}

TEST(Tokenizer, RefusesHugeAndDeepFiles) {
  expect_error(std::string(kTokenizerFileBytesMax + 1, ' '), "the limit is");
  EXPECT_NE(error_of(std::string(100000, '[')), "");
  std::string deep = R"({"type":"NFC"})";
  for (int i = 0; i < 20; ++i) deep = R"({"type":"Sequence","normalizers":[)" + deep + "]}";
  expect_error(json_with("\"normalizer\":" + deep), "nested deeper");
}

TEST(Tokenizer, RefusesMergesOfUnknownTokens) {
  expect_error(json_with("", R"({"vocab":{"a":0,"b":1},"merges":["a b"]})"), "\"ab\"");
  expect_error(json_with("", R"({"vocab":{"a":0,"ab":1},"merges":["a b"]})"), "\"b\"");
}

// A merge makes a longer token, so merges cannot go round; with a continuing prefix they could
// stand still, but each still joins two symbols into one.
TEST(Tokenizer, CyclicMergesEnd) {
  auto tokenizer = make(json_with("", R"({"continuing_subword_prefix":"##","merges":["a ##"],)"
                                      R"("vocab":{"a":0,"##":1,"##a":2}})"));
  EXPECT_EQ(tokenizer->encode("aaa").value(), (Ids{0, 2, 2}));
}

TEST(Tokenizer, RefusesIdsOutOfRange) {
  for (const char* id : {"-1", "2147483648", "4294967296", "9223372036854775808", "1e3"}) {
    EXPECT_NE(error_of(json_with("", std::string(R"({"merges":[],"vocab":{"a":)") + id + "}}")), "")
        << id;
    EXPECT_NE(
        error_of(json_with(std::string(R"("added_tokens":[{"content":"x","id":)") + id + "}]")), "")
        << id;
  }
}

TEST(Tokenizer, RefusesDuplicateIdsAndTokens) {
  expect_error(json_with("", R"({"merges":[],"vocab":{"a":0,"b":0}})"), "the same id 0");
  expect_error(json_with("", R"({"merges":[],"vocab":{"a":0,"a":1}})"), "appears twice");
}

TEST(Tokenizer, RefusesAnEmptyVocabulary) {
  expect_error(json_with("", R"({"merges":[],"vocab":{}})"), "the vocabulary is empty");
}

TEST(Tokenizer, LeavesOutAddedTokensWithoutContent) {
  auto tokenizer = make(json_with(R"("added_tokens":[{"id":5,"content":"","special":true}])"));
  EXPECT_EQ(tokenizer->encode("abc").value(), Ids{4});
  EXPECT_EQ(tokenizer->vocab_size(), 5);
}

TEST(Tokenizer, EndsInTimeOnACatastrophicPattern) {
  auto tokenizer =
      make(json_with(R"("pre_tokenizer":{"type":"Split","behavior":"Isolated","invert":false,)"
                     R"("pattern":{"Regex":"(?:a|aa)+$"}})"));
  auto ids = tokenizer->encode(std::string(5000, 'a') + "b");
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code, ErrorCode::kExhausted);
}

TEST(Tokenizer, LookingAheadOverLongNumbersEndsInTime) {
  auto tokenizer =
      make(json_with(R"x("pre_tokenizer":{"type":"Split","behavior":"Isolated","invert":false,)x"
                     R"x("pattern":{"Regex":"\\d{1,3}(?=(?:\\d{3})*\\b)|\\d(?=\\d*x)"}},)x"
                     R"x("added_tokens":[{"id":5,"content":"<c>"}])x"));
  EXPECT_TRUE(tokenizer->encode(std::string(3000, '1')));
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& unit : {std::string("1"), std::string(4000, '1') + "<c>a"}) {
    std::string text;
    while (text.size() < 400'000) text += unit;
    auto ids = tokenizer->encode(text);
    ASSERT_FALSE(ids) << unit.size();
    EXPECT_EQ(ids.error().code, ErrorCode::kExhausted);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Tokenizer, TakesLinearTimeOnTenMegabytesOfOneCharacter) {
  auto tokenizer = Tokenizer::load(test::source_path("tests/golden/tokenizer/tiny_byte_level"));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  for (const char* unit : {"a", " ", "\n", "1", "\U0001f600"}) {
    std::string text;
    while (text.size() < 10'000'000) text += unit;
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE((*tokenizer)->encode(text));
    // About a second when quiet; quadratic time would be days.
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(120)) << unit;
  }
}

TEST(Tokenizer, SharesAreSafeBetweenThreads) {
  auto tokenizer = Tokenizer::load(test::source_path("tests/golden/tokenizer/tiny_byte_level"));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const std::string text = "the quick brown fox, caf\u00e9 123 \u4f60\u597d ";
  const Ids expected = (*tokenizer)->encode(text).value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) EXPECT_EQ((*tokenizer)->encode(text).value(), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace banyan::tokenizer_test
