// The parser of HTTP requests, with the input cut at every position, and requests that could be
// read in two ways.
#include "server/http/request_reader.h"

#include <gtest/gtest.h>

namespace banyan::request_reader_test {
namespace {

using State = RequestReader::State;

// Feeds `bytes` in parts of `part` bytes, keeping what is not used, as a connection does.
struct Reading {
  RequestReader reader;
  std::optional<Refusal> refusal;
  std::string left;

  explicit Reading(std::string_view bytes, size_t part = std::string::npos,
                   RequestLimits limits = {})
      : reader(limits) {
    for (size_t at = 0; at < bytes.size() && !refusal; at += std::min(part, bytes.size() - at)) {
      left += bytes.substr(at, part);
      feed();
    }
  }

  void feed() {
    while (reader.state() != State::kDone && !left.empty()) {
      State before = reader.state();
      auto used = reader.feed(left);
      if (!used) {
        refusal = used.error();
        return;
      }
      left.erase(0, *used);
      if (reader.state() == before) return;
    }
  }

  int status() const { return refusal ? refusal->status : 0; }
};

std::string head(std::string_view more) {
  return "POST /v1/x HTTP/1.1\r\nHost: h\r\n" + std::string(more) + "\r\n";
}

TEST(RequestReader, ReadsARequestInPartsOfAnySize) {
  std::string bytes = head("Content-Length: 5\r\nX-A: b\r\n") + "helloGET";
  for (size_t part = 1; part <= bytes.size(); ++part) {
    Reading r(bytes, part);
    ASSERT_EQ(r.reader.state(), State::kDone) << part;
    EXPECT_EQ(r.reader.request().method, "POST");
    EXPECT_EQ(r.reader.request().path, "/v1/x");
    EXPECT_EQ(r.reader.request().body, "hello");
    EXPECT_EQ(r.reader.request().header("x-a"), "b");
    EXPECT_TRUE(r.reader.keep_alive());
    EXPECT_EQ(r.left, "GET");
  }
}

TEST(RequestReader, ReadsChunksInPartsOfAnySize) {
  std::string bytes =
      head("Transfer-Encoding: chunked\r\n") + "3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\nGET";
  for (size_t part = 1; part <= bytes.size(); ++part) {
    Reading r(bytes, part);
    ASSERT_EQ(r.reader.state(), State::kDone) << part << (r.refusal ? r.refusal->message : "");
    EXPECT_EQ(r.reader.request().body, "abcde");
    EXPECT_FALSE(r.reader.request().header("x"));
    EXPECT_EQ(r.left, "GET");
  }
}

TEST(RequestReader, ReadsALastChunkThatIsTheFirst) {
  for (std::string body : {"0\r\n\r\n", "0\r\nT: r\r\n\r\n", "000;a\r\n\r\n"}) {
    std::string bytes = head("Transfer-Encoding: chunked\r\n") + body;
    for (size_t part = 1; part <= bytes.size(); ++part) {
      EXPECT_EQ(Reading(bytes, part).reader.state(), State::kDone) << body << part;
    }
  }
}

TEST(RequestReader, StopsAtTheEndOfTheHeader) {
  std::string bytes = head("Content-Length: 2\r\nExpect: 100-continue\r\n");
  RequestReader reader({});
  EXPECT_EQ(*reader.feed(bytes + "ab"), bytes.size());
  EXPECT_EQ(reader.state(), State::kBody);
  EXPECT_TRUE(reader.expects_continue());
}

TEST(RequestReader, SkipsLineBreaksBeforeARequest) {
  for (size_t part : {1, 2, 3, 100}) {
    EXPECT_EQ(Reading("\r\n\r\n" + head(""), part).reader.state(), State::kDone);
  }
}

TEST(RequestReader, KnowsWhichConnectionsGoOn) {
  auto goes_on = [](std::string_view head) { return Reading(head).reader.keep_alive(); };
  EXPECT_TRUE(goes_on("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_FALSE(goes_on("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
  EXPECT_FALSE(goes_on("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(goes_on("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(RequestReader, RefusesWhatOthersCouldReadDifferently) {
  auto status = [](std::string_view more) { return Reading(head(more) + "0\r\n\r\n").status(); };
  EXPECT_EQ(status("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(status("Content-Length: 1\r\nContent-Length: 2\r\n"), 400);
  EXPECT_EQ(status("Content-Length: 1\r\nContent-Length: 1\r\n"), 400);
  EXPECT_EQ(status("Content-Length: 1, 1\r\n"), 400);
  EXPECT_EQ(status("Content-Length: -1\r\n"), 400);
  EXPECT_EQ(status("Content-Length: +1\r\n"), 400);
  EXPECT_EQ(status("Content-Length: 99999999999999999999\r\n"), 400);
  EXPECT_EQ(status("Transfer-Encoding: gzip\r\n"), 400);
  EXPECT_EQ(status("Transfer-Encoding: gzip, chunked\r\n"), 400);
  EXPECT_EQ(status("Transfer-Encoding: chunked, gzip\r\n"), 400);
  EXPECT_EQ(status("Transfer-Encoding: xchunked\r\n"), 400);
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(status("Transfer-Encoding : chunked\r\n"), 400);
  EXPECT_EQ(status("Host: other\r\n"), 400);
  EXPECT_EQ(status("Expect: a-miracle\r\n"), 417);
  EXPECT_EQ(Reading("GET / HTTP/1.1\r\n\r\n").status(), 400);
  EXPECT_EQ(Reading("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").status(), 400);
}

TEST(RequestReader, RefusesOtherProtocols) {
  EXPECT_EQ(Reading("GET / HTTP/2.0\r\nHost: h\r\n\r\n").status(), 505);
  EXPECT_EQ(Reading("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status(), 505);
  EXPECT_EQ(Reading(std::string_view("\x16\x03\x01\x02\x00\x01\x00", 7)).status(), 400);
  EXPECT_EQ(Reading("GET /\r\n").status(), 400);
  EXPECT_EQ(Reading("GET / HTTP/1.1\nHost: h\n\n").status(), 505);
  EXPECT_EQ(Reading(std::string_view("GET /\0 HTTP/1.1\r\n", 18)).status(), 400);
}

TEST(RequestReader, LimitsTheHeaderHoweverItComes) {
  RequestLimits limits{.header_bytes_max = 1000};
  auto status = [&](const std::string& bytes) {
    int one = Reading(bytes, 1, limits).status(),
        all = Reading(bytes, bytes.size(), limits).status();
    EXPECT_EQ(one, all);
    return one;
  };
  EXPECT_EQ(status(std::string(2000, 'A')), 431);
  EXPECT_EQ(status("GET /" + std::string(2000, 'a') + " HTTP/1.1\r\n"), 431);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(2000, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 300; ++i) many += "X: y\r\n";
  EXPECT_EQ(status(many + "\r\n"), 431);
  std::string fits = "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(900, 'a') + "\r\n\r\n";
  EXPECT_EQ(status(fits), 0);
}

TEST(RequestReader, LimitsTheBodyHoweverItComes) {
  RequestLimits limits{.header_bytes_max = 1000, .body_bytes_max = 100, .body_chunks_max = 10};
  auto status = [&](std::string_view more, const std::string& body) {
    std::string bytes = head(more) + body;
    int one = Reading(bytes, 1, limits).status(),
        all = Reading(bytes, bytes.size(), limits).status();
    EXPECT_EQ(one, all);
    return one;
  };
  std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(status("Content-Length: 101\r\n", ""), 413);
  EXPECT_EQ(status(chunked, "65\r\n"), 413);
  EXPECT_EQ(status(chunked, "40\r\n" + std::string(64, 'a') + "\r\n40\r\n"), 413);
  EXPECT_EQ(status(chunked, "ffffffffffffffff\r\n"), 413);
  EXPECT_EQ(status(chunked, "1ffffffffffffffff\r\n"), 400);
  EXPECT_EQ(status(chunked, "-2\r\n"), 400);
  EXPECT_EQ(status(chunked, "2\r\nabc\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status(chunked, std::string(2000, '0')), 431);
  EXPECT_EQ(status(chunked, "1;" + std::string(2000, 'a')), 431);
  EXPECT_EQ(status(chunked, "0\r\nX: " + std::string(2000, 'a')), 431);
  std::string tiny;
  for (int i = 0; i < 11; ++i) tiny += "1\r\na\r\n";
  EXPECT_EQ(status(chunked, tiny), 413);
  EXPECT_EQ(status(chunked, tiny.substr(6) + "0\r\n\r\n"), 413);
  EXPECT_EQ(status(chunked, tiny.substr(12) + "0\r\n\r\n"), 0);
}

}  // namespace
}  // namespace banyan::request_reader_test
