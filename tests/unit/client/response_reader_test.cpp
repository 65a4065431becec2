// The parser of HTTP responses, with the input cut at every position.
#include "client/response_reader.h"

#include <gtest/gtest.h>

namespace banyan::response_reader_test {
namespace {

const std::string kChunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5\r\nhello\r\n7;ext=1\r\n, world\r\n0\r\n\r\n";

struct Read {
  std::string body;
  ResponseReader reader{[this](std::string_view piece) { body += piece; }};
};

TEST(ResponseReader, ReadsAResponseHoweverItIsCut) {
  for (size_t step = 1; step <= kChunked.size(); ++step) {
    Read read;
    for (size_t i = 0; i < kChunked.size(); i += step) {
      ASSERT_TRUE(read.reader.feed(std::string_view(kChunked).substr(i, step))) << step;
    }
    EXPECT_TRUE(read.reader.done()) << step;
    EXPECT_TRUE(read.reader.keep_alive());
    EXPECT_EQ(read.reader.status(), 200);
    EXPECT_EQ(read.body, "hello, world");
  }
}

TEST(ResponseReader, KnowsLengthAndClose) {
  Read read;
  ASSERT_TRUE(read.reader.feed("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nConnection: close\r\n"));
  EXPECT_EQ(read.reader.status(), 0);
  ASSERT_TRUE(read.reader.feed("\r\nbu"));
  EXPECT_EQ(read.reader.status(), 503);
  EXPECT_FALSE(read.reader.done());
  ASSERT_TRUE(read.reader.feed("sy"));
  EXPECT_TRUE(read.reader.done());
  EXPECT_FALSE(read.reader.keep_alive());
  EXPECT_EQ(read.body, "busy");
}

TEST(ResponseReader, BodyWithoutLengthEndsWithTheConnection) {
  Read read;
  ASSERT_TRUE(read.reader.feed("HTTP/1.0 200 OK\r\n\r\nall of it"));
  EXPECT_FALSE(read.reader.done());
  EXPECT_TRUE(read.reader.end());
  EXPECT_TRUE(read.reader.done());
  EXPECT_FALSE(read.reader.keep_alive());
  EXPECT_EQ(read.body, "all of it");
}

TEST(ResponseReader, BytesBehindTheEndSpoilTheConnection) {
  Read read;
  ASSERT_TRUE(read.reader.feed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore"));
  EXPECT_TRUE(read.reader.done());
  EXPECT_FALSE(read.reader.keep_alive());
  EXPECT_EQ(read.body, "ok");
}

TEST(ResponseReader, AnEndInTheMiddleIsAnError) {
  for (size_t bytes = 0; bytes < kChunked.size(); ++bytes) {
    Read read;
    ASSERT_TRUE(read.reader.feed(std::string_view(kChunked).substr(0, bytes)));
    EXPECT_FALSE(read.reader.end()) << bytes;
  }
}

TEST(ResponseReader, RefusesWhatIsNotHttp) {
  for (const char* bytes :
       {"SSH-2.0-OpenSSH\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"}) {
    EXPECT_FALSE(Read().reader.feed(bytes)) << bytes;
  }
}

TEST(ResponseReader, LinesAreLimited) {
  Read read;
  ASSERT_TRUE(read.reader.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
  Status fed;
  for (int i = 0; i < 100 && fed; ++i) fed = read.reader.feed("1;" + std::string(1024, 'x'));
  EXPECT_FALSE(fed);
  EXPECT_FALSE(Read().reader.feed("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x')));
}

}  // namespace
}  // namespace banyan::response_reader_test
