// Issue 17: a server on loopback computed what pages sent under a foreign Host or Origin.
#include "server/http/origin.h"

#include <gtest/gtest.h>

namespace banyan::origin_test {
namespace {

using boost::asio::ip::make_address;

OriginRules rules(const std::string& host, std::vector<std::string> hosts = {},
                  std::vector<std::string> origins = {}) {
  std::string address = host == "localhost" ? "127.0.0.1" : host;
  return {host, make_address(address), std::move(hosts), std::move(origins)};
}

HttpRequest request(std::optional<std::string> host, std::optional<std::string> origin = {}) {
  HttpRequest request;
  if (host) request.headers.emplace_back("Host", *host);
  if (origin) request.headers.emplace_back("Origin", *origin);
  return request;
}

bool allowed(const OriginRules& rules, std::optional<std::string> host,
             std::optional<std::string> origin = {}) {
  return !rules.check(request(std::move(host), std::move(origin)));
}

TEST(OriginRules, ALoopbackServerHasTheNamesOfLoopbackAlone) {
  OriginRules r = rules("127.0.0.1");
  for (const char* host : {"127.0.0.1", "127.0.0.1:30000", "127.8.9.10", "localhost:1", "LocalHost",
                           "localhost.", "a.localhost", "[::1]:30000", "[::ffff:127.0.0.1]"}) {
    EXPECT_TRUE(allowed(r, host)) << host;
  }
  for (const char* host : {"evil.example",
                           "evil.example:30000",
                           "localhost.evil.example",
                           "notlocalhost",
                           "10.0.0.1",
                           "203.0.113.9:30000",
                           "[2001:db8::1]",
                           "127.0.0.1.evil.example",
                           "2130706433",
                           "0x7f.1",
                           "127.0.0.1@evil.example",
                           "localhost:30000@evil.example",
                           "[::1",
                           "[localhost]",
                           "",
                           "localhost:x",
                           "::1",
                           ".localhost",
                           "a b",
                           "0.0.0.0"}) {
    EXPECT_FALSE(allowed(r, host)) << host;
  }
  EXPECT_TRUE(allowed(r, std::nullopt));  // HTTP/1.0, which no browser sends
}

TEST(OriginRules, ARefusalNamesTheHeaderAndTheOption) {
  OriginRules r = rules("127.0.0.1");
  Refusal host = r.check(request("evil.example")).value();
  EXPECT_EQ(host.status, 403);
  EXPECT_EQ(host.message,
            "Host \"evil.example\" is not a name of this server; --allowed-hosts NAME adds one, * "
            "takes all");
  Refusal origin = r.check(request("localhost", "https://evil.example")).value();
  EXPECT_EQ(origin.status, 403);
  EXPECT_EQ(origin.message,
            "web pages of Origin \"https://evil.example\" may not use this server; "
            "--allowed-origins ORIGIN lets them, * lets all");
}

TEST(OriginRules, NamesAreAddedOneByOneOrBelowADomain) {
  OriginRules r = rules("127.0.0.1", {"box.lan", ".example.com", "*.example.org", "10.0.0.7"});
  for (const char* host :
       {"box.lan:80", "BOX.LAN", "a.example.com", "a.b.example.org", "10.0.0.7", "localhost"}) {
    EXPECT_TRUE(allowed(r, host)) << host;
  }
  for (const char* host : {"a.box.lan", "example.com", "xexample.com", "10.0.0.8"}) {
    EXPECT_FALSE(allowed(r, host)) << host;
  }
  EXPECT_TRUE(allowed(rules("127.0.0.1", {"*"}), "evil.example"));
}

// By which of its names such a server is reached it cannot know; its pages are foreign all the
// same.
TEST(OriginRules, AServerForOtherMachinesTakesEveryNameUntilSomeAreListed) {
  OriginRules open = rules("0.0.0.0");
  EXPECT_TRUE(allowed(open, "banyan.default.svc:30000"));
  EXPECT_FALSE(allowed(open, "evil.example:30000", "http://evil.example:30000"));
  EXPECT_FALSE(allowed(open, "10.0.0.7", "http://localhost:3000"));
  EXPECT_TRUE(allowed(open, "10.0.0.7:30000", "http://10.0.0.7:30000"));
  OriginRules listed = rules("0.0.0.0", {"banyan.default.svc"});
  EXPECT_TRUE(allowed(listed, "banyan.default.svc:30000"));
  EXPECT_TRUE(allowed(listed, "10.0.0.7"));  // an address cannot be made to mean another
  EXPECT_FALSE(allowed(listed, "evil.example"));
}

TEST(OriginRules, PagesOfThisMachineUseALoopbackServer) {
  OriginRules r = rules("localhost");
  for (const char* origin : {"http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080"}) {
    EXPECT_TRUE(allowed(r, "localhost:30000", origin)) << origin;
    EXPECT_EQ(r.readable_by(request("localhost:30000", origin)), origin);
  }
  for (const char* origin :
       {"null", "https://evil.example", "http://localhost.evil.example",
        "http://localhost@evil.example", "file://", "", "localhost", "chrome-extension://abc"}) {
    EXPECT_FALSE(allowed(r, "localhost:30000", origin)) << origin;
    EXPECT_EQ(r.readable_by(request("localhost:30000", origin)), "") << origin;
  }
}

TEST(OriginRules, ListedOriginsMayReadAndOthersMayNot) {
  OriginRules r = rules("127.0.0.1", {}, {"https://a.example", "null", "chrome-extension://abc"});
  for (const char* origin : {"https://a.example", "null", "chrome-extension://abc"}) {
    EXPECT_EQ(r.readable_by(request("localhost", origin)), origin);
  }
  for (const char* origin : {"http://a.example", "https://a.example:8443", "https://b.example"}) {
    EXPECT_FALSE(allowed(r, "localhost", origin)) << origin;
  }
  EXPECT_EQ(rules("127.0.0.1", {}, {"*"}).readable_by(request("localhost", "https://x")), "*");
}

// A proxy that serves pages and the API under one name.
TEST(OriginRules, PagesOfTheNameUnderWhichTheServerIsKnownAreItsOwn) {
  OriginRules r = rules("127.0.0.1", {"ui.example"});
  EXPECT_TRUE(allowed(r, "ui.example", "https://ui.example"));
  EXPECT_FALSE(allowed(r, "localhost", "https://ui.example"));
  EXPECT_FALSE(allowed(rules("127.0.0.1", {"*"}), "evil.example", "https://evil.example"));
}

TEST(OriginRules, BrowsersSayWhereAnImageOfAPageComesFrom) {
  OriginRules r = rules("127.0.0.1");
  HttpRequest image = request("127.0.0.1:30000");
  image.headers.emplace_back("Sec-Fetch-Site", "cross-site");
  ASSERT_TRUE(r.check(image));
  EXPECT_EQ(r.check(image)->status, 403);
  image.headers.back().second = "none";  // typed in
  EXPECT_FALSE(r.check(image));
}

TEST(OriginRules, OptionsAreChecked) {
  for (const char* name : {"a.example", ".a.example", "*.a.example", "*", "10.0.0.1", "::1"}) {
    EXPECT_TRUE(is_host_pattern(name)) << name;
  }
  for (const char* name : {"", "http://a", "a:80", "a/b", "a b", "*a"}) {
    EXPECT_FALSE(is_host_pattern(name)) << name;
  }
  for (const char* origin : {"https://a.example", "http://[::1]:80", "null", "*"}) {
    EXPECT_TRUE(is_origin(origin)) << origin;
  }
  for (const char* origin : {"", "a.example", "https://", "https://a/", "https://*.a", "://a"}) {
    EXPECT_FALSE(is_origin(origin)) << origin;
  }
}

}  // namespace
}  // namespace banyan::origin_test
