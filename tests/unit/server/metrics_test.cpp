// What /metrics says of drafts.
#include "server/status/metrics.h"

#include <gtest/gtest.h>

namespace banyan::metrics_test {
namespace {

TEST(Metrics, CountWhatEachDrafterDid) {
  Metrics metrics;
  metrics.begin("m", {}, 1);
  StepReport report;
  report.stats.drafters[0] = {.name = "forced", .drafts = 1, .draft_tokens = 4};
  report.stats.drafters[1] = {.name = "suffix",
                              .drafts = 3,
                              .draft_tokens = 12,
                              .accepted_tokens = 7,
                              .branches = 5,
                              .followed_branches = 2,
                              .time_s = 0.5};
  metrics.step(report);
  report.stats.drafters[1].branches += 1;
  metrics.step(report);
  std::string text = metrics.text({});
  for (const char* line : {"drafter_tokens_total{model_name=\"m\",drafter=\"forced\"} 4",
                           "drafter_tokens_total{model_name=\"m\",drafter=\"suffix\"} 12",
                           "drafter_accepted_tokens_total{model_name=\"m\",drafter=\"suffix\"} 7",
                           "drafter_branches_total{model_name=\"m\",drafter=\"suffix\"} 6",
                           "drafter_followed_branches_total{model_name=\"m\",drafter=\"suffix\"} 2",
                           "drafter_seconds_total{model_name=\"m\",drafter=\"suffix\"} 0.5"}) {
    EXPECT_NE(text.find(std::string("\nbanyan:") + line + "\n"), text.npos) << line << "\n" << text;
  }
  EXPECT_EQ(text.find("drafter_branches_total{model_name=\"m\",drafter=\"forced\""), text.npos);
}

}  // namespace
}  // namespace banyan::metrics_test
