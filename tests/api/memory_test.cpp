// Issue 17: a server's memory is bounded, reported by part, and returned after load.
#include <fmt/format.h>

#include "api/server_fixture.h"
#include "support/sanitized.h"

namespace banyan::memory_test {
namespace {

using test::Client;
using test::Response;

class Memory : public test::ServerTest {
 protected:
  // A value of /metrics; -1 if it is absent.
  int64_t part(const std::string& name) const {
    std::string text = get("/metrics").body, label = "part=\"" + name + "\"} ";
    size_t family = text.find("\nbanyan:memory_bytes{");
    size_t at = family == text.npos ? family : text.find(label, family);
    if (at == text.npos) return -1;
    return static_cast<int64_t>(std::stod(text.substr(at + label.size(), 40)));
  }
  Response post(const std::string& target, const std::string& body) const {
    Client client = this->client();
    client.send(fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
                            target, body.size()));
    client.send(body);
    return client.response();
  }
};

TEST_F(Memory, EveryPartIsShown) {
  start();
  for (const char* name : {"weights", "pools", "step", "connection_buffers", "resident"}) {
    EXPECT_GT(part(name), 0) << name;
  }
  // Sanitizers have a heap of their own.
  if (!test::kSanitized) {
    EXPECT_GT(part("heap_used"), 0);
  }
  EXPECT_EQ(part("grammars"), 0);
  EXPECT_EQ(part("request_bodies"), 0);
}

TEST_F(Memory, BodiesAreCountedWhileTheyAreHeld) {
  start();
  Client half = client();
  half.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n" +
            std::string(1'000'000, 'x'));
  ASSERT_TRUE(eventually([](const auto& c) { return c.body_bytes == 1'000'000; }));
  EXPECT_EQ(part("request_bodies"), 1'000'000);
  half.close();
  ASSERT_TRUE(back_to_base());
  EXPECT_EQ(part("request_bodies"), 0);
}

TEST_F(Memory, WhatSlowReadersLeaveIsCounted) {
  start();
  int64_t before = part("connection_buffers");
  Client lazy(port(), false);
  lazy.shrink_receive_buffer();
  ASSERT_TRUE(lazy.connect());
  lazy.send("GET /pour?bytes=900000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(
      eventually([&](const auto&) { return part("connection_buffers") > before + 10'000; }));
  lazy.close();
  ASSERT_TRUE(back_to_base());
  EXPECT_LE(part("connection_buffers"), before + 100'000);
}

// Assigning {} to a string keeps its memory, which an idle connection then held.
TEST_F(Memory, AnIdleConnectionKeepsNoLargeBuffer) {
  start();
  int64_t before = part("connection_buffers");
  Client lazy(port(), false);
  lazy.shrink_receive_buffer();
  ASSERT_TRUE(lazy.connect());
  lazy.send("GET /pour?bytes=900000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(
      eventually([&](const auto&) { return part("connection_buffers") > before + 99'999; }));
  EXPECT_EQ(lazy.response().body.size(), 900'000U);
  EXPECT_TRUE(eventually([&](const auto& c) {
    return c.connections > 0 && part("connection_buffers") <= before + 50'000;
  }));
}

// A document that is twenty times as large when parsed.
TEST_F(Memory, ABodyOfManyTinyValuesIsRefused) {
  start();
  std::string body = "[[]";
  while (body.size() < 5'000'000) body += ",[]";
  Response refused = post("/v1/completions", body + "]");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("too many values"), refused.body.npos) << refused.body;
  EXPECT_TRUE(back_to_base());
}

TEST_F(Memory, LargeBodiesLeaveNothing) {
#ifdef BANYAN_SANITIZED
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  start();
  post("/v1/completions", "{}");
  int64_t before = part("heap_used");
  for (int i = 0; i < 10; ++i) {
    std::string body = R"({"prompt":")" + std::string(4 << 20, '"') + "\"}";
    EXPECT_EQ(post("/v1/completions", body).status, 400);
  }
  ASSERT_TRUE(back_to_base());
  EXPECT_LE(part("heap_used"), before + (1 << 20));
}

}  // namespace
}  // namespace banyan::memory_test
