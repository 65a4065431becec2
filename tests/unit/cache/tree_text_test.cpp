// Text in the pages of the radix tree: what is found, and that evicted pages are not.
#include "cache/tree_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "base/signed.h"
#include "support/states.h"

namespace banyan::tree_text_test {
namespace {

using Tokens = std::vector<TokenId>;

constexpr int kPage = 4;

struct Corpus {
  explicit Corpus(int64_t pages) : tree(test::classes_of({}, kPage), {pages}) {}

  // Computes the full pages of `tokens`, as a sequence would.
  void write(const Tokens& tokens) {
    PrefixMatch match = tree.match(root, tokens);
    Lease lease = tree.lease(match.node);
    int64_t first = match.node->end;
    for (int64_t p = first; p + kPage <= std::ssize(tokens); p += kPage) {
      UnitSet units;
      units[kPathClass] = tree.take(kPathClass);
      tree.publish(lease, std::span(tokens).subspan(as_size(p), kPage), units);
    }
    text.add(lease, tokens, first);
  }

  // The tokens after each place where the last ones of `context` occur.
  std::vector<Tokens> continuations(const Tokens& context, int count) const {
    std::vector<Tokens> all;
    std::array<TreePlace, TreeText::kPlacesMax> places;
    for (TreePlace place : text.find(context, places)) {
      if (place.common_length(context, 32) < TreeText::kMatchMin) continue;
      Tokens tokens;
      for (int i = 0; i < count; ++i) {
        TokenId token = place.next();
        if (token < 0) break;
        tokens.push_back(token);
      }
      all.push_back(tokens);
    }
    return all;
  }

  RadixTree tree;
  RadixNode* root = tree.open({});
  TreeText text;
};

TEST(TreeText, ContinuesAcrossPages) {
  Corpus corpus(20);
  corpus.write({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(corpus.continuations({90, 3, 4, 5, 6}, 4), (std::vector<Tokens>{{7, 8, 9, 10}}));
  EXPECT_EQ(corpus.continuations({5, 6, 7, 8}, 9), (std::vector<Tokens>{{9, 10, 11, 12}}));
  EXPECT_EQ(corpus.continuations({9, 10, 11, 12}, 1), (std::vector<Tokens>{{}}));
  EXPECT_TRUE(corpus.continuations({4, 5, 6}, 1).empty()) << "too short";
  EXPECT_TRUE(corpus.continuations({4, 5, 6, 8}, 1).empty());
}

TEST(TreeText, ComparesBackwardsAcrossPages) {
  Corpus corpus(20);
  corpus.write({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  Tokens context = {3, 4, 5, 6, 7, 8, 9, 10};
  std::array<TreePlace, TreeText::kPlacesMax> places;
  auto found = corpus.text.find(context, places);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].common_length(context, 32), 8);
  EXPECT_EQ(found[0].common_length(context, 5), 5);
  context[2] = 99;
  EXPECT_EQ(found[0].common_length(context, 32), 5);
  Tokens longer = {7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(found[0].common_length(longer, 32), 10) << "the text begins there";
}

TEST(TreeText, TakesThePathUsedLastWhereTextForks) {
  Corpus corpus(20);
  corpus.write({1, 2, 3, 4, 5, 6, 7, 8});
  corpus.write({1, 2, 3, 4, 9, 10, 11, 12});
  EXPECT_EQ(corpus.continuations({1, 2, 3, 4}, 2), (std::vector<Tokens>{{9, 10}}));
  corpus.write({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(corpus.continuations({1, 2, 3, 4}, 2), (std::vector<Tokens>{{5, 6}}));
}

TEST(TreeText, NewestPlacesComeFirstAndReplaceTheOldest) {
  Corpus corpus(80);
  for (int i = 0; i < 6; ++i) corpus.write({100 + i, 1, 2, 3, 4, 200 + i, 7, 8});
  EXPECT_EQ(corpus.continuations({1, 2, 3, 4}, 1),
            (std::vector<Tokens>{{205}, {204}, {203}, {202}}));
}

// Whatever is evicted in between, what is found is text of the tree.
TEST(TreeText, FindsNothingOfEvictedPages) {
  Corpus corpus(24);
  uint64_t draws = 0;
  int64_t found = 0;
  for (int i = 0; i < 400; ++i) {
    Tokens tokens;
    auto first = static_cast<TokenId>(uniform(5, draws++, 0) * 40) * 100;
    for (int t = 0; t < 16; ++t) tokens.push_back(first + t);
    corpus.write(tokens);
    auto wanted = static_cast<TokenId>(uniform(5, draws++, 0) * 40) * 100;
    Tokens context = {wanted, wanted + 1, wanted + 2, wanted + 3, wanted + 4};
    PrefixMatch match = corpus.tree.match(corpus.root, Tokens(context.begin(), context.end()));
    std::vector<Tokens> all = corpus.continuations(context, 2);
    EXPECT_TRUE(match.node->end > 0 || all.empty()) << i;
    for (const Tokens& one : all) {
      EXPECT_EQ(one, (Tokens{wanted + 5, wanted + 6}));
      ++found;
    }
  }
  EXPECT_GT(found, 10);
  corpus.tree.flush();
  EXPECT_TRUE(corpus.continuations({0, 1, 2, 3, 4}, 1).empty());
}

}  // namespace
}  // namespace banyan::tree_text_test
