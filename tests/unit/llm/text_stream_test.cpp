// From token events to text: stop strings, stop tokens, counts.
#include "llm/text_stream.h"

#include <gtest/gtest.h>

#include "support/shared.h"

namespace banyan::text_stream_test {
namespace {

class TextStreamTest : public testing::Test {
 protected:
  std::vector<TokenId> ids(const std::string& text) {
    return tokenizer_->encode(text, {.add_special_tokens = false}).value();
  }

  std::unique_ptr<Tokenizer> tokenizer_ =
      Tokenizer::load(test::source_path("tests/golden/tokenizer/tiny_byte_level")).value();
};

TokenEvent token(TokenId id, FinishReason finish = FinishReason::kNone) {
  return {.has_token = true,
          .token = id,
          .finish = finish,
          .matched_stop = finish == FinishReason::kStop ? id : -1,
          .cached_tokens = 3};
}

TEST_F(TextStreamTest, CountsAndDecodesOutputTokensOnly) {
  TextStream stream(tokenizer_.get(), ids("a"), {});
  EXPECT_FALSE(stream.take({.has_token = true, .from_prompt = true, .token = 1}).counted);
  std::string text;
  for (TokenId id : ids("hello there")) {
    TextDelta delta = stream.take(token(id));
    EXPECT_TRUE(delta.counted);
    text += delta.text;
  }
  text += stream.take({.finish = FinishReason::kLength}).text;
  EXPECT_EQ(text, "hello there");
  EXPECT_EQ(stream.output_tokens(), static_cast<int64_t>(ids("hello there").size()));
  EXPECT_EQ(stream.cached_tokens(), 3);
  EXPECT_EQ(stream.finish(), FinishReason::kLength);
}

TEST_F(TextStreamTest, EndsAtTheStopStringWhateverComesAfterIt) {
  for (bool keep : {false, true}) {
    TextStream stream(tokenizer_.get(), {}, {.stop = {"lo"}, .keep_stop = keep});
    std::string text;
    int64_t counted = 0;
    for (TokenId id : ids("hello there")) {
      TextDelta delta = stream.take(token(id));
      counted += delta.counted ? 1 : 0;
      text += delta.text;
    }
    text += stream.take({.finish = FinishReason::kLength}).text;
    EXPECT_EQ(text, keep ? "hello" : "hel");
    EXPECT_EQ(stream.finish(), FinishReason::kStop);
    EXPECT_EQ(stream.matched_text(), "lo");
    EXPECT_FALSE(stream.matched_token());
    EXPECT_EQ(stream.output_tokens(), counted);
    EXPECT_LT(counted, static_cast<int64_t>(ids("hello there").size()));
  }
}

TEST_F(TextStreamTest, StopTokenCountsButIsNotInTheText) {
  for (bool keep : {false, true}) {
    TextStream stream(tokenizer_.get(), {}, {.keep_stop = keep});
    TextDelta delta = stream.take(token(ids("a")[0], FinishReason::kStop));
    EXPECT_EQ(delta.text, keep ? "a" : "");
    EXPECT_EQ(stream.output_tokens(), 1);
    EXPECT_EQ(stream.matched_token(), ids("a")[0]);
  }
}

TEST_F(TextStreamTest, CancelAndErrorsEndIt) {
  TextStream stream(tokenizer_.get(), {}, {.stop = {"ax"}});
  EXPECT_EQ(stream.take(token(ids("a")[0])).text, "");
  EXPECT_EQ(stream.cancel(), "a");
  EXPECT_EQ(stream.cancel(), "");
  EXPECT_EQ(stream.finish(), FinishReason::kCancelled);

  TextStream broken(tokenizer_.get(), {}, {});
  broken.take({.finish = FinishReason::kError, .error = {ErrorCode::kCorrupt, "weights"}});
  EXPECT_EQ(broken.finish(), FinishReason::kError);
  EXPECT_EQ(broken.error().message, "weights");
}

TEST_F(TextStreamTest, WithoutATokenizerThereIsOnlyACount) {
  TextStream stream(nullptr, {}, {});
  EXPECT_EQ(stream.take(token(7)).text, "");
  EXPECT_EQ(stream.output_tokens(), 1);
}

}  // namespace
}  // namespace banyan::text_stream_test
