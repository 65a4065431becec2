// Theorem 3.1 of the SGLang paper, by brute force over small batches through the real scheduler and
// tree, one request at a time, with a cache of exactly the longest request and LRU eviction:
// - no order of service finds more tokens than a depth-first order of the prompts' tree, and each
//   depth-first order finds all that can be found: every token of the tree is computed once;
// - longest prefix first is a depth-first order, whatever the order of arrival, and serves requests
//   that arrive in a depth-first order in just that order.
// Every prompt ends in a token of its own: the last token is computed in any case, since its logits
// are needed, so a prompt that begins another would count its own last token twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/random.h"
#include "replay/replay.h"

namespace banyan::prefix_order_test {
namespace {

using Prompt = std::vector<TokenId>;

Trace batch_of(const std::vector<Prompt>& prompts, const std::vector<int64_t>& order) {
  Trace trace;
  for (int64_t i : order) {
    const Prompt& prompt = prompts[static_cast<size_t>(i)];
    trace.requests.push_back(
        {.blocks = prompt, .prompt_tokens = static_cast<int64_t>(prompt.size())});
  }
  return trace;
}

ReplayReport serve(const Trace& trace, SchedulePolicy policy) {
  constexpr int kNever = 1 << 20;
  return replay(trace, {.scheduler = {.policy = policy,
                                      .aging_period = kNever,
                                      .running_max = 1,
                                      .prefill_rows_max = 64,
                                      .units = {trace.longest_tokens()}}});
}

// Depth first means: when a subtree is left, none of its prompts is still to come.
bool is_depth_first(const std::vector<Prompt>& prompts, const std::vector<int64_t>& order) {
  std::set<Prompt> left;
  Prompt previous;
  for (int64_t i : order) {
    const Prompt& prompt = prompts[static_cast<size_t>(i)];
    auto common =
        static_cast<size_t>(std::ranges::mismatch(previous, prompt).in1 - previous.begin());
    for (size_t end = common + 1; end <= previous.size(); ++end) {
      left.insert(Prompt(previous.begin(), previous.begin() + static_cast<int64_t>(end)));
    }
    for (size_t end = 1; end <= prompt.size(); ++end) {
      if (left.contains(Prompt(prompt.begin(), prompt.begin() + static_cast<int64_t>(end)))) {
        return false;
      }
    }
    previous = prompt;
  }
  return true;
}

std::vector<Prompt> random_batch(uint64_t seed, int requests) {
  uint64_t draws = 0;
  auto below = [&](int end) { return static_cast<TokenId>(uniform(seed, draws++, 0) * end); };
  std::vector<Prompt> prompts;
  for (TokenId i = 0; i < requests; ++i) {
    Prompt prompt;
    for (int tokens = below(6); tokens > 0; --tokens) prompt.push_back(below(2));
    for (int own = 1 + below(3); own > 0; --own) prompt.push_back(100 + i);
    prompts.push_back(prompt);
  }
  return prompts;
}

int64_t tokens_found_at_most(const std::vector<Prompt>& prompts) {
  int64_t tokens = 0;
  std::set<Prompt> nodes;
  for (const Prompt& prompt : prompts) {
    tokens += static_cast<int64_t>(prompt.size());
    for (auto end = prompt.begin() + 1; end <= prompt.end(); ++end) {
      nodes.insert(Prompt(prompt.begin(), end));
    }
  }
  return tokens - static_cast<int64_t>(nodes.size());
}

void check_every_order(const std::vector<Prompt>& prompts) {
  int64_t best = tokens_found_at_most(prompts);
  std::vector<int64_t> order(prompts.size());
  std::iota(order.begin(), order.end(), 0);
  EXPECT_EQ(serve(in_dfs_order(batch_of(prompts, order)), SchedulePolicy::kFcfs).cached_tokens,
            best);
  do {
    Trace batch = batch_of(prompts, order);
    bool depth_first = is_depth_first(prompts, order);
    int64_t found = serve(batch, SchedulePolicy::kFcfs).cached_tokens;
    ASSERT_LE(found, best);
    if (depth_first) {
      ASSERT_EQ(found, best);
    }

    ReplayReport longest_first = serve(batch, SchedulePolicy::kLpm);
    std::vector<int64_t> served;
    for (int64_t i : longest_first.order) served.push_back(order[static_cast<size_t>(i)]);
    ASSERT_TRUE(is_depth_first(prompts, served));
    ASSERT_EQ(longest_first.cached_tokens, best);
    if (depth_first) {
      ASSERT_EQ(served, order);
    }
  } while (std::ranges::next_permutation(order).found);
}

TEST(PrefixOrder, DepthFirstIsBestAndLongestPrefixFirstIsDepthFirst) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    check_every_order(random_batch(seed, 2 + static_cast<int>(seed % 4)));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  for (uint64_t seed = 100; seed < 108; ++seed) {
    check_every_order(random_batch(seed, 6));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  check_every_order(random_batch(200, 7));
}

TEST(PrefixOrder, KnowsADepthFirstOrder) {
  std::vector<Prompt> prompts = {{0, 1, 100}, {0, 101}, {1, 102}, {0, 1, 103}};
  EXPECT_TRUE(is_depth_first(prompts, {0, 3, 1, 2}));
  EXPECT_TRUE(is_depth_first(prompts, {2, 1, 3, 0}));
  EXPECT_FALSE(is_depth_first(prompts, {0, 1, 3, 2})) << "0 1 is left and comes again";
  EXPECT_FALSE(is_depth_first(prompts, {0, 3, 2, 1})) << "0 is left and comes again";
}

}  // namespace
}  // namespace banyan::prefix_order_test
