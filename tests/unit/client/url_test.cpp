// Server URLs: which are accepted, and how they are split.
#include "client/url.h"

#include <gtest/gtest.h>

namespace banyan::url_test {
namespace {

TEST(ServerUrl, IsTakenApart) {
  ServerUrl url = parse_server_url("http://127.0.0.1:30000").value();
  EXPECT_EQ(url.host, "127.0.0.1");
  EXPECT_EQ(url.port, "30000");
  EXPECT_EQ(url.prefix, "");
  EXPECT_EQ(url.authority, "127.0.0.1:30000");
  url = parse_server_url("example.org/v2/").value();
  EXPECT_EQ(url.host, "example.org");
  EXPECT_EQ(url.port, "80");
  EXPECT_EQ(url.prefix, "/v2");
  url = parse_server_url("http://[::1]:8000/").value();
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.port, "8000");
  EXPECT_EQ(url.authority, "[::1]:8000");
  EXPECT_FALSE(url.tls);
  url = parse_server_url("https://example.org/v2").value();
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.host, "example.org");
  EXPECT_EQ(url.port, "443");
  EXPECT_EQ(parse_server_url("https://example.org:8443").value().port, "8443");
}

TEST(ServerUrl, RefusesWhatIsNoAddress) {
  for (const char* url :
       {"", "http://", "http://:80", "https://", "http://h:0", "http://h:65536", "http://h:8x",
        "http://h:", "http://[::1", "http://[::1]8", "http://user@h", "http://h/a?b=c",
        "http://h/\r\nX: y", "http://h /", "ftp://h"}) {
    EXPECT_FALSE(parse_server_url(url)) << url;
  }
}

}  // namespace
}  // namespace banyan::url_test
