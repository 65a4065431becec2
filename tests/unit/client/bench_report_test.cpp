// The report of a load test: its statistics, and the lines and keys that scripts read.
#include "client/bench_report.h"

#include <gtest/gtest.h>

#include <limits>

namespace banyan::bench_report_test {
namespace {

BenchResult two_requests() {
  BenchResult result{.gaps_ms = {100, 100, 100, 300},
                     .tokens_by_second = {6, 1},
                     .duration_s = 2,
                     .concurrency_peak = 2,
                     .failures = {{"HTTP 503", 1}}};
  result.records.push_back({.ok = true,
                            .begin_s = 0,
                            .first_s = 0.2,
                            .last_s = 0.5,
                            .prompt_tokens = 30,
                            .cached_tokens = 10,
                            .output_tokens = 4});
  result.records.push_back({.error = "HTTP 503: full", .prompt_tokens = 1000});
  result.records.push_back({.ok = true,
                            .begin_s = 0,
                            .first_s = 0.4,
                            .last_s = 1.5,
                            .prompt_tokens = 10,
                            .output_tokens = 2});
  return result;
}

TEST(BenchReport, PercentilesLieBetweenSamples) {
  Distribution d = distribution_of({4, 1, 3, 2});
  EXPECT_EQ(d.mean, 2.5);
  EXPECT_EQ(d.median, 2.5);
  EXPECT_NEAR(d.std, 1.118, 1e-3);
  EXPECT_NEAR(d.p90, 3.7, 1e-9);
  EXPECT_NEAR(d.p99, 3.97, 1e-9);
  EXPECT_EQ(d.max, 4);
  EXPECT_EQ(distribution_of({7}).p99, 7);
  EXPECT_EQ(distribution_of({}).mean, 0);
}

TEST(BenchReport, CountsWhatSucceeded) {
  BenchReport r = report_of(two_requests());
  EXPECT_EQ(r.completed, 2);
  EXPECT_EQ(r.failed, 1);
  EXPECT_EQ(r.input_tokens, 40);
  EXPECT_EQ(r.output_tokens, 6);
  EXPECT_EQ(r.cache_hit_rate, 0.25);
  EXPECT_EQ(r.requests_per_s, 1);
  EXPECT_EQ(r.input_tokens_per_s, 20);
  EXPECT_EQ(r.output_tokens_per_s, 3);
  EXPECT_EQ(r.output_tokens_per_s_peak, 6);
  EXPECT_EQ(r.concurrency, 1);
  EXPECT_NEAR(r.e2e_ms.mean, 1000, 1e-9);
  EXPECT_NEAR(r.ttft_ms.mean, 300, 1e-9);
  EXPECT_NEAR(r.tpot_ms.mean, 600, 1e-9);
  EXPECT_EQ(r.itl_ms.max, 300);
}

TEST(BenchReport, CountsRequestsWithinAllLimitsForTheGoodput) {
  BenchResult result = two_requests();  // ttft 200 and 400, tpot 100 and 1100, e2e 500 and 1500
  auto goodput = [&](const std::vector<std::string>& words) {
    return report_of(result, read_goodput(words).value()).goodput_requests_per_s;
  };
  EXPECT_EQ(goodput({}), std::nullopt);
  EXPECT_EQ(goodput({"ttft:400.5"}), 1);
  EXPECT_EQ(goodput({"ttft:300"}), 0.5);
  EXPECT_EQ(goodput({"ttft:100"}), 0);
  EXPECT_EQ(goodput({"tpot:150"}), 0.5);
  EXPECT_EQ(goodput({"ttft:500", "tpot:2000", "e2el:1000"}), 0.5);
  result.records[0].output_tokens = 1;  // no time per further token
  EXPECT_EQ(goodput({"tpot:0"}), 0.5);
  GoodputLimits limits{.ttft_ms = 300};
  EXPECT_NE(table_of(report_of(result, limits), {}).find("Request goodput (req/s):"),
            std::string::npos);
  EXPECT_EQ(json_of(report_of(result, limits), {}, result)["request_goodput"], 0.5);
  EXPECT_TRUE(json_of(report_of(result), {}, result)["request_goodput"].is_null());
}

TEST(BenchReport, RefusesLimitsThatAreNone) {
  for (const char* word :
       {"", "ttft", "ttft:", "ttft:x", "ttft:-1", "ttft:5ms", "ttft:nan", "itl:5", ":5"}) {
    Result<GoodputLimits> limits = read_goodput({word});
    ASSERT_FALSE(limits) << word;
    EXPECT_TRUE(limits.error().message.contains("ttft:MS, tpot:MS or e2el:MS"));
  }
  EXPECT_EQ(read_goodput({"tpot:5", "tpot:6"}).error().message, "--goodput has tpot twice");
}

TEST(BenchReport, TableHasTheLinesThatScriptsLookFor) {
  BenchSetting setting{.backend = "sglang",
                       .requests_per_s = std::numeric_limits<double>::infinity(),
                       .concurrency_max = 8};
  BenchReport report = report_of(two_requests());
  report.accept_length = 1.5;
  std::string table = table_of(report, setting);
  for (const char* line : {
           "============ Serving Benchmark Result ============\n",
           "Traffic request rate:                    inf       \n",
           "Max request concurrency:                 8         \n",
           "Successful requests:                     2         \n",
           "Failed requests:                         1         \n",
           "Benchmark duration (s):                  2.00      \n",
           "Total cached tokens:                     10        \n",
           "Cache hit rate:                          25.0%     \n",
           "Output token throughput (tok/s):         3.00      \n",
           "Peak concurrent requests:                2         \n",
           "Accept length:                           1.50      \n",
           "----------------End-to-End Latency----------------\n",
           "P99 TTFT (ms):                           398.00    \n",
           "P95 ITL (ms):                            270.00    \n",
           "==================================================\n",
       }) {
    EXPECT_NE(table.find(line), std::string::npos) << line << table;
  }
  EXPECT_NE(table_of(report, {}).find("Max request concurrency:                 not set"),
            std::string::npos);
}

TEST(BenchReport, JsonHasTheKeysThatScriptsRead) {
  BenchResult result = two_requests();
  Json json = json_of(report_of(result), {.backend = "sglang", .dataset = "random"}, result);
  for (const char* key : {"backend",
                          "dataset_name",
                          "request_rate",
                          "max_concurrency",
                          "duration",
                          "completed",
                          "total_input_tokens",
                          "total_output_tokens",
                          "request_throughput",
                          "input_throughput",
                          "output_throughput",
                          "total_throughput",
                          "mean_e2e_latency_ms",
                          "median_e2e_latency_ms",
                          "std_e2e_latency_ms",
                          "p90_e2e_latency_ms",
                          "p99_e2e_latency_ms",
                          "mean_ttft_ms",
                          "median_ttft_ms",
                          "std_ttft_ms",
                          "p99_ttft_ms",
                          "mean_tpot_ms",
                          "median_tpot_ms",
                          "p99_tpot_ms",
                          "mean_itl_ms",
                          "median_itl_ms",
                          "p95_itl_ms",
                          "p99_itl_ms",
                          "max_itl_ms",
                          "concurrency",
                          "accept_length",
                          "max_concurrent_requests",
                          "total_cached_tokens",
                          "cache_hit_rate"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["completed"], 2);
  EXPECT_EQ(json["errors"], (Json{{"HTTP 503", 1}}));
  EXPECT_EQ(json["request_rate"], "trace");
  EXPECT_TRUE(json["accept_length"].is_null());
}

}  // namespace
}  // namespace banyan::bench_report_test
