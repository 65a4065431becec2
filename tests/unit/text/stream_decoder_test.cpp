// Incremental detokenization against decoding all tokens at once.
#include "text/stream_decoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/shared.h"
#include "text/tokenizer/byte_level.h"
#include "unicode/unicode.h"

namespace banyan::stream_decoder_test {
namespace {

std::unique_ptr<Tokenizer> load(const std::string& name) {
  return Tokenizer::load(test::source_path("tests/golden/tokenizer/" + name)).value();
}

class StreamDecoderTest : public testing::TestWithParam<const char*> {};

TEST_P(StreamDecoderTest, GivesWhatDecodeGives) {
  const auto tokenizer = load(GetParam());
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> ids(random() % 20);
    for (TokenId& id : ids) {
      id = static_cast<TokenId>(random() % static_cast<unsigned>(tokenizer->vocab_size() + 3));
    }
    for (bool skip : {false, true}) {
      StreamDecoder stream(*tokenizer, skip);
      std::string text;
      for (TokenId id : ids) text += stream.push(id).text;
      text += stream.finish().text;
      const std::string whole = tokenizer->decode(ids, skip).value();
      // A run of byte tokens that is not valid is known as such only at its end.
      if (text != whole && tokenizer->find("<0x00>")) {
        EXPECT_NE(text.find("\uFFFD"), std::string::npos);
        EXPECT_NE(whole.find("\uFFFD"), std::string::npos);
        EXPECT_FALSE(unicode::first_invalid(text));
      } else {
        EXPECT_EQ(text, whole);
      }
    }
  }
}

TEST_P(StreamDecoderTest, FollowingGivesTheRestOfTheWholeText) {
  const auto tokenizer = load(GetParam());
  std::mt19937 random(4);
  int compared = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<TokenId> ids(1 + random() % 9);
    for (TokenId& id : ids) {
      id = static_cast<TokenId>(random() % static_cast<unsigned>(tokenizer->vocab_size() + 3));
    }
    const std::span all(ids);
    const std::span before = all.first(std::min<size_t>(random() % ids.size(), 5));
    for (bool skip : {false, true}) {
      StreamDecoder stream(*tokenizer, skip);
      stream.follow(before);
      std::string text;
      for (TokenId id : all.subspan(before.size())) text += stream.push(id).text;
      text += stream.finish().text;
      EXPECT_FALSE(unicode::first_invalid(text));
      const std::string start = tokenizer->decode(before, skip).value();
      const std::string whole = tokenizer->decode(all, skip).value();
      if (start.ends_with("\uFFFD") || !whole.starts_with(start)) continue;
      if (whole.find("\uFFFD") != whole.npos && tokenizer->find("<0x00>")) continue;
      EXPECT_EQ(text, whole.substr(start.size()));
      ++compared;
    }
  }
  EXPECT_GT(compared, 2000);
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, StreamDecoderTest,
                         testing::Values("tiny_byte_level", "tiny_metaspace", "tiny_prepend",
                                         "tiny_tiktoken"),
                         [](const auto& info) { return std::string(info.param); });

TEST(StreamDecoder, NeverGivesHalfACharacter) {
  const auto tokenizer = load("tiny_tiktoken");
  const std::string text = "\U0001f600\u4f60\u00e9";
  StreamDecoder stream(*tokenizer, false);
  std::string streamed;
  for (char byte : text) {
    const auto id = tokenizer->find(byte_level::characters()[static_cast<unsigned char>(byte)]);
    const std::string delta = stream.push(id.value()).text;
    EXPECT_TRUE(delta.empty() || (delta[0] & 0xc0) != 0x80) << delta;
    streamed += delta;
  }
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(stream.finish().text, "");
}

TEST(StreamDecoder, GivesTheCharactersOfByteTokensOneByOne) {
  const auto tokenizer = load("tiny_metaspace");
  auto push_bytes = [&](StreamDecoder& stream, std::string_view bytes) {
    std::vector<std::string> deltas;
    for (char byte : bytes) {
      const auto id = tokenizer->find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)));
      deltas.push_back(stream.push(id.value()).text);
    }
    return deltas;
  };
  using Strings = std::vector<std::string>;
  StreamDecoder valid(*tokenizer, false);
  EXPECT_EQ(push_bytes(valid, "\u00e9\u4f60A"), (Strings{"", "\u00e9", "", "", "\u4f60", "A"}));
  EXPECT_EQ(valid.finish().text, "");
  // After the first invalid byte every byte of the run is a U+FFFD, as in decode().
  StreamDecoder wrong(*tokenizer, false);
  EXPECT_EQ(push_bytes(wrong, "\u00e9\xff\u00e9"),
            (Strings{"", "\u00e9", "\uFFFD", "\uFFFD", "\uFFFD"}));
  const TokenId word = tokenizer->encode("a").value().back();
  EXPECT_FALSE(wrong.push(word).text.empty());
  EXPECT_EQ(push_bytes(wrong, "\u00e9\xe4\xbd"), (Strings{"", "\u00e9", "", ""}));
  EXPECT_EQ(wrong.finish().text, "\uFFFD\uFFFD");
}

TEST(StreamDecoder, FollowingCompletesTheCharacterThatThePromptBegan) {
  const auto tokenizer = load("tiny_tiktoken");
  std::vector<TokenId> ids;
  for (char byte : std::string("a\u00e9b")) {
    ids.push_back(*tokenizer->find(byte_level::characters()[static_cast<unsigned char>(byte)]));
  }
  StreamDecoder stream(*tokenizer, false, {"a"});
  stream.follow(std::span(ids).first(2));  // the prompt's own "a" is no stop string
  EXPECT_EQ(stream.push(ids[2]).text, "\u00e9");
  EXPECT_EQ(stream.push(ids[3]).text, "b");
}

TEST(StreamDecoder, AnIncompleteCharacterBecomesAReplacement) {
  const auto tokenizer = load("tiny_tiktoken");
  StreamDecoder stream(*tokenizer, false);
  EXPECT_EQ(stream.push(tokenizer->find(byte_level::characters()[0xe4]).value()).text, "");
  EXPECT_EQ(stream.finish().text, "\ufffd");
}

// Pushes the bytes of `text` one by one.
std::pair<std::string, std::optional<std::string>> stream_bytes(const Tokenizer& tokenizer,
                                                                std::string_view text,
                                                                std::vector<std::string> stops) {
  StreamDecoder stream(tokenizer, false, std::move(stops));
  std::string streamed;
  std::optional<std::string> matched;
  for (char byte : text) {
    auto delta = stream.push(
        tokenizer.find(byte_level::characters()[static_cast<unsigned char>(byte)]).value());
    streamed += delta.text;
    if (delta.matched_stop) matched = delta.matched_stop;
  }
  return {streamed + stream.finish().text, matched};
}

TEST(StreamDecoder, EndsBeforeTheFirstStopString) {
  const auto tokenizer = load("tiny_tiktoken");
  using Outcome = std::pair<std::string, std::optional<std::string>>;
  EXPECT_EQ(stream_bytes(*tokenizer, "one two three", {"three", "two"}), Outcome("one ", "two"));
  EXPECT_EQ(stream_bytes(*tokenizer, "aaab", {"aab"}), Outcome("a", "aab"));
  EXPECT_EQ(stream_bytes(*tokenizer, "xabc", {"bc", "abc"}), Outcome("x", "abc"));
  EXPECT_EQ(stream_bytes(*tokenizer, "xabc", {"", "abcd"}), Outcome("xabc", std::nullopt));
}

TEST(StreamDecoder, HoldsBackTheBeginningOfAStopString) {
  const auto tokenizer = load("tiny_tiktoken");
  StreamDecoder stream(*tokenizer, false, {"xyz"});
  auto push = [&](const char* byte) { return stream.push(tokenizer->find(byte).value()).text; };
  EXPECT_EQ(push("a"), "a");
  EXPECT_EQ(push("x"), "");
  EXPECT_EQ(push("y"), "");
  EXPECT_EQ(push("x"), "xy");
  EXPECT_EQ(stream.finish().text, "x");
}

}  // namespace
}  // namespace banyan::stream_decoder_test
