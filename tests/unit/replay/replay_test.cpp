// Replays of small traces, whose hits and times are known in advance.
#include "replay/replay.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/shared.h"

namespace banyan::replay_test {
namespace {

constexpr int kPage = 4;

ReplayConfig config_of(int64_t pages, int running_max = 1) {
  return {.scheduler = {.running_max = running_max,
                        .prefill_rows_max = 64,
                        .classes = {.page_size_tokens = kPage},
                        .units = {pages}},
          .check = true};
}

// One request for each list of blocks of a page, all there from the beginning.
Trace trace_of(const std::vector<std::vector<TokenId>>& prompts, int64_t output_tokens = 0) {
  Trace trace{.block_tokens = kPage};
  for (const std::vector<TokenId>& blocks : prompts) {
    auto id = static_cast<TokenId>(trace.requests.size());
    trace.requests.push_back({.blocks = blocks,
                              .prompt_tokens = static_cast<int64_t>(blocks.size()) * kPage,
                              .output_tokens = output_tokens,
                              .output = 1000 + id});
  }
  return trace;
}

TEST(Replay, FindsWhatWasComputed) {
  Trace trace = trace_of({{1, 2, 3}, {1, 4}, {1, 2, 5}, {1, 2, 3}});
  ReplayReport report = replay(trace, config_of(100));
  EXPECT_EQ(report.requests, 4);
  EXPECT_EQ(report.prompt_tokens, 44);
  // Nothing, a page, two pages, and all but the last token, whose logits are needed.
  EXPECT_EQ(report.cached_tokens, 0 + 4 + 8 + 11);
  EXPECT_EQ(report.computed_rows, 44 - 23);
  EXPECT_EQ(report.order, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(report.retracted, 0);
}

TEST(Replay, ForgetsTheLeastRecentlyUsed) {
  // Room for three pages: each prompt drives out the one before, but for the common page.
  Trace trace = trace_of({{1, 2, 3}, {1, 4, 5}, {1, 2, 3}, {6, 7, 8}, {1, 2, 3}});
  EXPECT_EQ(replay(trace, config_of(3)).cached_tokens, 0 + 4 + 4 + 0 + 0);
  EXPECT_EQ(replay(trace, config_of(8)).cached_tokens, 0 + 4 + 11 + 0 + 11);
}

TEST(Replay, AStoreKeepsWhatMemoryForgets) {
  Trace trace = trace_of({{1, 2, 3}, {1, 4, 5}, {1, 2, 3}, {6, 7, 8}, {1, 2, 3}});
  ReplayConfig config = config_of(4);
  // A page that a prompt ends in is computed: its last token has to be.
  constexpr int64_t kAll = 0 + 4 + 8 + 0 + 8;
  EXPECT_LT(replay(trace, config).cached_tokens, kAll);
  config.storage_pages = 100;
  config.storage_write_policy = "write_through";
  ReplayReport through = replay(trace, config);
  EXPECT_EQ(through.cached_tokens, kAll);
  EXPECT_GT(through.restored_tokens, 0);
  EXPECT_LT(through.restored_tokens, through.cached_tokens);
  EXPECT_EQ(through.stored_tokens, 8 * kPage);  // each page once
  config.storage_write_policy = "write_through_selective";
  EXPECT_LT(replay(trace, config).stored_tokens, 8 * kPage);
  config.storage_pages = 1;
  config.storage_write_policy = "write_through";
  EXPECT_LT(replay(trace, config).cached_tokens, kAll);
}

TEST(Replay, CachedAnswersServeTheNextTurn) {
  Trace trace = trace_of({{1, 2}, {9}}, 6);
  TraceRequest next{.after = 0, .output_tokens = 6, .output = 1002};
  next.blocks = {1, 1, 1, 1, 2, 2, 2, 2, 1000, 1000, 1000, 1000, 1000, 1000, 3};
  trace.block_tokens = 1;
  trace.requests[0].blocks = {1, 1, 1, 1, 2, 2, 2, 2};
  trace.requests[1].blocks = {9, 9, 9, 9};
  next.prompt_tokens = static_cast<int64_t>(next.blocks.size());
  trace.requests.push_back(next);
  ReplayReport report = replay(trace, config_of(100));
  EXPECT_EQ(report.cached_tokens, 8 + 5) << "the last token of an answer is never computed";
  EXPECT_EQ(report.order, (std::vector<int64_t>{0, 1, 2}));
}

TEST(Replay, DepthFirstTakesTheNextTurnAtOnce) {
  Trace trace{.block_tokens = 1};
  for (TokenId i = 0; i < 3; ++i) {
    std::vector<TokenId> first(8, i), next(8, i);
    next.insert(next.end(), {100 + i, 100 + i, 200 + i});
    int64_t index = 2 * i;
    trace.requests.push_back(
        {.blocks = first, .prompt_tokens = 8, .output_tokens = 2, .output = 100 + i});
    trace.requests.push_back({.after = index, .blocks = next, .prompt_tokens = 11});
  }
  ReplayConfig config = config_of(3);
  EXPECT_EQ(replay(trace, config).order, (std::vector<int64_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(replay(trace, config).cached_tokens, 0);
  config.scheduler.policy = SchedulePolicy::kPriority;
  ReplayReport report = replay(in_dfs_order(trace), config);
  EXPECT_EQ(report.order, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(report.cached_tokens, 3 * 9);
}

TEST(Replay, KeepsTime) {
  Trace trace = trace_of({{1, 2}, {3}}, 3);
  trace.requests[1].arrival_s = 2;
  ReplayConfig config = config_of(100);
  config.step_s = 1;
  config.row_s = 0.125;
  config.speedup = 2;
  // Eight rows of prompt; a step for each of two more tokens; then the second's four rows.
  ReplayReport report = replay(trace, config);
  EXPECT_EQ(report.steps, 6);
  EXPECT_DOUBLE_EQ(report.end_s, 6 + 0.125 * (8 + 2 + 4 + 2));
  EXPECT_EQ(report.cold_wait_s, (std::vector<double>{0, 3 + 0.125 * 10 - 1}));
  EXPECT_DOUBLE_EQ(report.worst_wait_ratio, 0.25) << "the next admission of four allowed";
  trace.requests[1].arrival_s = 20;
  EXPECT_DOUBLE_EQ(replay(trace, config).end_s, 10 + 3 + 0.125 * 6) << "idle until it comes";
}

TEST(Replay, TheLongestPrefixFirstUsesASmallCacheBetter) {
  Trace trace = trace_of({{1, 2, 10}, {3, 4, 11}, {1, 2, 12}, {3, 4, 13}, {1, 2, 14}, {3, 4, 15}});
  ReplayConfig config = config_of(3);
  EXPECT_EQ(replay(trace, config).cached_tokens, 0);
  EXPECT_EQ(replay(in_dfs_order(trace), config).cached_tokens, 4 * 8);
  config.scheduler.policy = SchedulePolicy::kLpm;
  ReplayReport report = replay(trace, config);
  EXPECT_EQ(report.order, (std::vector<int64_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(report.cached_tokens, 4 * 8);
}

// Random arrivals and prompts with common beginnings: who waits longest keeps to the bound of
// engine/schedule/waiting_queue.h, and with room for everything no order finds more than another.
TEST(Replay, WaitsKeepTheirBoundAndRoomMakesOrdersEqual) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    uint64_t draws = 0;
    auto below = [&](int end) { return static_cast<TokenId>(uniform(seed, draws++, 0) * end); };
    std::vector<std::vector<TokenId>> prompts;
    for (TokenId i = 0; i < 200; ++i) prompts.push_back({below(3), below(4), below(20), 100 + i});
    Trace trace = trace_of(prompts, 2);
    spread_arrivals(trace, 3, seed);
    int64_t pages = 8 + below(40);
    ReplayConfig config = config_of(pages, 1 + below(3));
    config.scheduler.policy = SchedulePolicy::kLpm;
    config.scheduler.aging_period = 1 + below(5);
    config.step_s = 0.3;
    ReplayReport report = replay(trace, config);
    EXPECT_LE(report.worst_wait_ratio, 1) << "seed " << seed;
    EXPECT_EQ(report.order.size(), 200u);

    ReplayConfig roomy = one_at_a_time(config);
    roomy.scheduler.units[kPathClass] = pages_for_all(trace, kPage);
    int64_t best = replay(trace, roomy).cached_tokens;
    EXPECT_EQ(replay(in_dfs_order(trace), roomy).cached_tokens, best) << "seed " << seed;
    EXPECT_GE(best, report.cached_tokens);
  }
}

TEST(Replay, RepeatsExactly) {
  REQUIRE_SHARED("data/mt-bench");
  auto trace = read_trace(test::shared_path("data/mt-bench/question.jsonl"), 64);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->requests.size(), 160u);
  spread_arrivals(*trace, 5, 1);
  ReplayConfig config = config_of(1000, 8);
  config.scheduler.policy = SchedulePolicy::kLpm;
  config.step_s = 0.05;
  ReplayReport once = replay(*trace, config), again = replay(*trace, config);
  EXPECT_EQ(once.order, again.order);
  EXPECT_EQ(once.cached_tokens, again.cached_tokens);
  EXPECT_DOUBLE_EQ(once.end_s, again.end_s);
}

}  // namespace
}  // namespace banyan::replay_test
