// Keys of pages: every input changes them, and they are SHA-256 as documented.
#include "cache/page_key.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace banyan::page_key_test {
namespace {

StateDigest states(std::string_view of) {
  return StateDigest(Hasher().text(of).finish());
}

TEST(PageKey, EveryPartOfANamespaceCounts) {
  PageKeys keys;
  std::set<PageKey> seen;
  for (const PageKey& key : {
           keys.root(states("m"), {}),
           keys.root(states("n"), {}),
           keys.root(states("m"), {.adapter = "ab"}),
           keys.root(states("m"), {.salt = "ab"}),
           keys.root(states("m"), {.extra_key = "ab"}),
           keys.root(states("m"), {.adapter = "a", .salt = "b"}),
           keys.root(states("m"), {.adapter = "", .salt = "a", .extra_key = "b"}),
       }) {
    EXPECT_TRUE(seen.insert(key).second);
  }
  EXPECT_EQ(keys.root(states("m"), {}), PageKeys().root(states("m"), {}));
}

TEST(PageKey, APageNamesAllThatComesBeforeIt) {
  PageKeys keys;
  PageKey m = keys.root(states("m"), {}), n = keys.root(states("n"), {});
  std::vector<PrefixToken> one = {1, 2, 3, 4}, two = {1, 2, 3, 5}, image = {1, 2, 3, -4};
  std::set<PageKey> seen = {m, n};
  for (const PageKey& key :
       {keys.page(m, one), keys.page(m, two), keys.page(m, image), keys.page(n, one),
        keys.page(keys.page(m, one), one), keys.page(keys.page(m, two), one),
        keys.page(m, std::span(one).first(3)), keys.page(m, {})}) {
    EXPECT_TRUE(seen.insert(key).second);
  }
  EXPECT_EQ(keys.page(m, one), keys.page(m, one));
  EXPECT_EQ(keys.page(m, one).hex().size(), 32u);
}

// FIPS 180-4's example, so that other programs can make the same keys.
TEST(Hasher, IsSha256) {
  std::string abc = "abc";
  Hasher hasher;
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(hasher.bytes(std::as_bytes(std::span(abc))).finish().hex(),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  }
  EXPECT_NE(Hasher().text("ab").text("c").finish(), Hasher().text("a").text("bc").finish());
}

}  // namespace
}  // namespace banyan::page_key_test
