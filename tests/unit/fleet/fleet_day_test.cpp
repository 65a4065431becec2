// A thousand simulated workers for BANYAN_FLEET_HOURS hours; each hour one in a hundred dies.
// `scripts/test --full` runs a day, which takes half an hour.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "fleet/fleet.h"
#include "support/shared.h"

namespace banyan::test::fleet_day_test {
namespace {

// As `bench fleet` with --workers 1000 --cells 8 --copies 125 --row-us 1250 --report-interval 1
// --tokens-per-unit 512 --page-size 512.
FleetSimulation thousand_workers(const Trace& trace, double hours) {
  FleetSimulation fleet = {.worker = {.scheduler = {.policy = SchedulePolicy::kLpm,
                                                    .running_max = 64,
                                                    .prefill_rows_max = 4,
                                                    .classes = {.page_size_tokens = 1},
                                                    .units = {3'000'000 / 512}},
                                      .times = {.prompt_row_s = 1250e-6},
                                      .tokens_per_unit = 512},
                           .workers = 1000,
                           .cells = 8,
                           .policy = find_routing_policy("cost"),
                           .copies = 125,
                           .report_interval_s = 1};
  fleet.speedup = speedup_for_load(trace, fleet, 0.85);
  fleet.round_s = trace.requests.back().arrival_s / fleet.speedup;
  fleet.rounds = static_cast<int>(std::max(1.0, std::ceil(hours * 3600 / fleet.round_s)));
  return fleet;
}

TEST(FleetDay, NothingIsLostAndHitsStayWhileWorkersDie) {
  const char* hours = std::getenv("BANYAN_FLEET_HOURS");
  if (hours == nullptr) GTEST_SKIP() << "BANYAN_FLEET_HOURS is not set";
  REQUIRE_SHARED("data/mooncake/conversation_trace.jsonl");
  Result<Trace> trace = read_trace(shared_path("data/mooncake/conversation_trace.jsonl"), 0);
  ASSERT_TRUE(trace) << trace.error().message;
  FleetSimulation fleet = thousand_workers(*trace, std::atof(hours));
  FleetReport undisturbed = simulate_fleet(*trace, fleet);
  fleet.deaths_per_worker_hour = 0.01;
  FleetReport report = simulate_fleet(*trace, fleet);
  EXPECT_GT(report.deaths, 5 * std::atof(hours));
  EXPECT_GT(report.resubmitted, 0);
  EXPECT_EQ(report.ended, report.requests);
  EXPECT_EQ(report.gaps, 0);
  EXPECT_GT(report.hit_rate(), undisturbed.hit_rate() - 0.03);
  fmt::print("{} requests, {} deaths, {} resubmitted, hits {:.1f}% and {:.1f}% without deaths\n",
             report.requests, report.deaths, report.resubmitted, 100 * report.hit_rate(),
             100 * undisturbed.hit_rate());
}

}  // namespace
}  // namespace banyan::test::fleet_day_test
