// GET /decode_limit: the upper bound of the machine's decode speed.
#include <fmt/format.h>

#include <algorithm>

#include "api/server_fixture.h"
#include "base/json.h"

namespace banyan::decode_limit_test {
namespace {

using test::Response;
using test::ServerTest;

class DecodeLimit : public ServerTest {
 public:
  Json limit(const std::string& query = "") const {
    Response answer = get("/decode_limit" + query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return parse_json(answer.body, "body").value();
  }
};

TEST_F(DecodeLimit, FollowsFromBytesAndBandwidth) {
  start();
  Json one = limit();
  EXPECT_EQ(one["sequences"], 1);
  EXPECT_EQ(one["context_tokens"], 1);
  double tokens = one["tokens_per_s_limit"].get<double>();
  double reading =
      one["bandwidth_bytes_per_s"].get<double>() / one["bytes_per_token"].get<double>();
  double computing =
      one["operations_per_s"].get<double>() / one["operations_per_token"].get<double>();
  EXPECT_GT(tokens, 0);
  EXPECT_NEAR(tokens / std::min(reading, computing), 1, 1e-9);
  EXPECT_EQ(one["bound_by"], reading <= computing ? "memory" : "arithmetic");
}

TEST_F(DecodeLimit, IsMeasuredOnce) {
  start();
  Json first = limit(), second = limit();
  EXPECT_EQ(first, second);
}

TEST_F(DecodeLimit, SequencesShareTheWeightsAndContextsCost) {
  start();
  double one = limit()["bytes_per_token"].get<double>();
  EXPECT_LT(limit("?sequences=2")["bytes_per_token"].get<double>(), one);
  EXPECT_GT(limit("?context=16")["bytes_per_token"].get<double>(), one);
}

TEST_F(DecodeLimit, NumbersOutOfRangeAreRefused) {
  engine.running_max = 4;
  start();
  EXPECT_EQ(get("/decode_limit?sequences=4").status, 200);
  for (const char* query : {"sequences=0", "sequences=5", "sequences=x", "context=0", "context="}) {
    Response refused = get(fmt::format("/decode_limit?{}", query));
    EXPECT_EQ(refused.status, 400) << query;
    EXPECT_NE(refused.body.find("must be an integer from 1 to"), refused.body.npos) << query;
  }
}

// A stream runs until the client disconnects.
TEST_F(DecodeLimit, IsNotMeasuredWhileRequestsRun) {
  start();
  test::Client reader = client();
  reader.send("GET /stream?tokens=200000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(eventually([](const Server::Counts& c) { return c.engine.running == 1; }));
  EXPECT_EQ(get("/decode_limit").status, 503);
}

}  // namespace
}  // namespace banyan::decode_limit_test
