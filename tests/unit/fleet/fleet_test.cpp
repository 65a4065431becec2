// The fleet simulation: routing finds cached prefixes, and no request is lost when workers die.
#include "fleet/fleet.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"

namespace banyan::fleet_test {
namespace {

// Conversations: each turn's prompt is the one before and a page more.
Trace conversations(int count, int turns, double every_s) {
  Trace trace{.block_tokens = 64};
  for (int turn = 0; turn < turns; ++turn) {
    for (int c = 0; c < count; ++c) {
      TraceRequest request{.arrival_s = (turn * count + c) * every_s, .output_tokens = 20};
      for (int i = 0; i < 20 + turn; ++i) request.blocks.push_back(c * 1000 + i);
      request.prompt_tokens = std::ssize(request.blocks) * 64;
      trace.requests.push_back(request);
    }
  }
  return trace;
}

FleetSimulation small_fleet(std::string_view policy) {
  return {.worker = {.scheduler = {.running_max = 8,
                                   .prefill_rows_max = 512,
                                   .classes = {.page_size_tokens = 64},
                                   .units = {400}}},
          .workers = 4,
          .policy = find_routing_policy(policy)};
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(Fleet, ChoosingByCostFindsPrefixesAgain) {
  Trace trace = conversations(40, 8, 0.06);
  FleetReport cost = simulate_fleet(trace, small_fleet("cost"));
  FleetReport turns = simulate_fleet(trace, small_fleet("random"));
  for (const FleetReport* report : {&cost, &turns}) {
    EXPECT_EQ(report->ended, 320);
    EXPECT_EQ(std::ssize(report->ttft_s), 320);
    EXPECT_EQ(report->prompt_tokens, trace.prompt_tokens());
    EXPECT_EQ(report->gaps, 0);
  }
  EXPECT_GT(cost.hit_rate(), 1.5 * turns.hit_rate());
  EXPECT_LT(mean(cost.ttft_s), mean(turns.ttft_s));
}

TEST(Fleet, NothingIsLostWhenWorkersDie) {
  Trace trace = conversations(20, 6, 0.1);
  FleetSimulation fleet = small_fleet("cost");
  fleet.deaths_per_worker_hour = 200;
  fleet.restart_s = 2;
  fleet.cells = 2;
  fleet.rounds = 2;
  fleet.round_s = 15;
  fleet.copies = 2;
  FleetReport report = simulate_fleet(trace, fleet);
  EXPECT_EQ(report.requests, 480);
  EXPECT_EQ(report.ended, 480);
  EXPECT_EQ(std::ssize(report.ttft_s), 480);
  EXPECT_GT(report.deaths, 2);
  EXPECT_GT(report.resubmitted, 0);
  FleetReport again = simulate_fleet(trace, fleet);
  EXPECT_EQ(again.ttft_s, report.ttft_s) << "a run is a function of its arguments";
}

TEST(Fleet, CoarseTokensKeepHits) {
  Trace trace = conversations(40, 8, 0.06);
  FleetSimulation fleet = small_fleet("cost");
  FleetReport fine = simulate_fleet(trace, fleet);
  fleet.worker.tokens_per_unit = 64;
  fleet.worker.scheduler.classes.page_size_tokens = 1;
  fleet.worker.scheduler.prefill_rows_max = 8;
  FleetReport coarse = simulate_fleet(trace, fleet);
  EXPECT_EQ(coarse.ended, 320);
  EXPECT_NEAR(coarse.hit_rate(), fine.hit_rate(), 0.1);
}

}  // namespace
}  // namespace banyan::fleet_test
