// The page at /.
#include "server/webui.h"

#include <fmt/format.h>

#include "api/server_fixture.h"

namespace banyan::webui_test {
namespace {

using test::Response;
using test::ServerTest;

class Webui : public ServerTest {};

std::string header(const Response& response, std::string_view name) {
  size_t at = response.head.find(fmt::format("\r\n{}: ", name));
  if (at == response.head.npos) return "";
  at += name.size() + 4;
  return response.head.substr(at, response.head.find("\r\n", at) - at);
}

TEST_F(Webui, IsServedWhileTheModelLoads) {
  start(false);
  Response page = get("/", "Accept-Encoding: gzip, deflate, br\r\n");
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(page.has("Content-Type: text/html; charset=utf-8"));
  EXPECT_TRUE(page.has("Content-Encoding: gzip"));
  EXPECT_TRUE(page.has("Cache-Control: no-cache"));
  EXPECT_TRUE(page.has("Vary: Accept-Encoding"));
  EXPECT_EQ(page.body, embedded_web_page().gzip);
  EXPECT_LT(page.body.size(), 400'000u);
  std::string policy = header(page, "Content-Security-Policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; ")) << policy;
  EXPECT_NE(policy.find("script-src 'sha256-"), policy.npos) << policy;
  EXPECT_NE(policy.find("style-src 'sha256-"), policy.npos) << policy;
  EXPECT_EQ(policy.find("unsafe"), policy.npos) << policy;
}

TEST_F(Webui, AKnownPageIsNotSentAgain) {
  start(false);
  std::string tag = header(get("/"), "ETag");
  EXPECT_EQ(tag.size(), 34u);
  test::Client client = this->client();
  client.send(fmt::format("GET / HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {}\r\n\r\n", tag));
  Response fresh = client.response(false);
  EXPECT_EQ(fresh.status, 304);
  EXPECT_FALSE(fresh.has("Content-Length"));
  EXPECT_EQ(header(fresh, "ETag"), tag);
  EXPECT_EQ(client.get("/", "If-None-Match: \"other\"\r\n").status, 200);
}

TEST_F(Webui, HeadHasNoBody) {
  start(false);
  test::Client client = this->client();
  client.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  Response head = client.response(false);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(header(head, "Content-Length"), std::to_string(embedded_web_page().gzip.size()));
  EXPECT_EQ(client.get("/health").status, 503);  // nothing stood between them
}

TEST_F(Webui, WhoTakesNoGzipIsTold) {
  start(false);
  EXPECT_EQ(get("/", "Accept-Encoding: identity\r\n").status, 406);
  EXPECT_EQ(get("/", "Accept-Encoding: gzip;q=0\r\n").status, 406);
  EXPECT_EQ(get("/", "Accept-Encoding: br, *\r\n").status, 200);
}

TEST_F(Webui, NeedsNoKeyButWhatItAsksDoes) {
  config.api_keys = {"key"};
  start();
  EXPECT_EQ(get("/").status, 200);
  EXPECT_EQ(get("/?x=1").status, 200);
  EXPECT_EQ(get("/server_info").status, 401);
}

TEST_F(Webui, CanBeSwitchedOff) {
  config.webui = false;
  start();
  Response page = get("/");
  EXPECT_EQ(page.status, 404);
  EXPECT_NE(page.body.find("--no-webui"), page.body.npos);
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(Webui, SwitchedOffItNeedsAKeyAsEverythingElse) {
  config.webui = false;
  config.api_keys = {"key"};
  start();
  EXPECT_EQ(get("/").status, 401);
}

TEST_F(Webui, LinksOfOtherSitesMayLeadToIt) {
  start();
  std::string link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
  EXPECT_EQ(get("/", link + "Sec-Fetch-Dest: document\r\n").status, 200);
  EXPECT_EQ(get("/", link + "Sec-Fetch-Dest: iframe\r\n").status, 403);
  EXPECT_EQ(get("/health", link + "Sec-Fetch-Dest: document\r\n").status, 403);
}

TEST(GzipComment, IsReadWhereThereIsOne) {
  std::string plain("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03rest", 14);
  EXPECT_EQ(gzip_comment(plain), "");
  std::string commented("\x1f\x8b\x08\x10\x00\x00\x00\x00\x02\x03what\0rest", 19);
  EXPECT_EQ(gzip_comment(commented), "what");
  EXPECT_EQ(gzip_comment(commented.substr(0, 12)), "");
}

}  // namespace
}  // namespace banyan::webui_test
