// GET /radix_tree: what the prefix cache holds.
#include <fmt/format.h>

#include "api/server_fixture.h"
#include "base/json.h"

namespace banyan::tree_info_test {
namespace {

using test::Response;
using test::ServerTest;

class TreeInfo : public ServerTest {};

TEST_F(TreeInfo, TheTreeShowsWhatIsCached) {
  engine.page_size_tokens = 4;
  start();
  EXPECT_EQ(parse_json(get("/radix_tree").body, "body").value()["branches"].size(), 0u);
  get("/count?tokens=2&prompt=9");
  get("/count?tokens=2&prompt=9");
  Json tree = parse_json(get("/radix_tree").body, "body").value();
  EXPECT_EQ(tree["page_size"], 4);
  EXPECT_EQ(tree["complete"], true);
  EXPECT_EQ(tree["last_use"], 2);
  ASSERT_GE(tree["branches"].size(), 1u);
  const Json& trunk = tree["branches"][0];
  EXPECT_EQ(trunk["parent"], nullptr);
  EXPECT_EQ(trunk["begin"], 0);
  EXPECT_GE(trunk["pages"].get<int>(), 2);
  EXPECT_EQ(trunk["hits"], 1);
  EXPECT_EQ(trunk["sequences"], 0);
  EXPECT_TRUE(trunk.contains("text"));
}

TEST_F(TreeInfo, TheTreesLimitIsChecked) {
  start();
  EXPECT_EQ(get("/radix_tree?limit=1").status, 200);
  for (const char* limit : {"0", "4097", "x", "1x", ""}) {
    Response refused = get(fmt::format("/radix_tree?limit={}", limit));
    EXPECT_EQ(refused.status, 400) << limit;
    EXPECT_NE(refused.body.find("from 1 to 4096"), refused.body.npos) << limit;
  }
}

TEST_F(TreeInfo, NeedsAKeyWhereOneIsSet) {
  config.api_keys = {"key"};
  start();
  EXPECT_EQ(get("/radix_tree").status, 401);
  EXPECT_EQ(get("/radix_tree", "Authorization: Bearer key\r\n").status, 200);
}

}  // namespace
}  // namespace banyan::tree_info_test
