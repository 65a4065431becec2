// What a load test has found: the table that people compare between servers, and JSON. Lines and
// keys are those of SGLang's bench_serving, so that scripts for the one read the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "client/bench.h"

namespace banyan {

// Of samples in any order; zeros without any. Percentiles lie between the two nearest samples.
struct Distribution {
  double mean = 0, median = 0, std = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};
Distribution distribution_of(std::vector<double> samples);

// Figures are of the requests that succeeded.
struct BenchReport {
  int64_t completed = 0, failed = 0;
  double duration_s = 0;
  int64_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;
  double cache_hit_rate = 0;  // [0, 1], of the input tokens
  double requests_per_s = 0, input_tokens_per_s = 0, output_tokens_per_s = 0;
  double output_tokens_per_s_peak = 0;  // over whole seconds
  double concurrency = 0;               // on average
  int64_t concurrency_peak = 0;
  std::optional<double> accept_length;
  Distribution e2e_ms, ttft_ms, tpot_ms, itl_ms;
};
BenchReport report_of(const BenchResult& result);

// What was asked for, to print with the figures.
struct BenchSetting {
  std::string backend, dataset, base_url, model;
  double requests_per_s = 0;    // infinite: all at once; 0: as the dataset says
  int64_t concurrency_max = 0;  // 0: no limit
};

std::string table_of(const BenchReport& report, const BenchSetting& setting);
Json json_of(const BenchReport& report, const BenchSetting& setting, const BenchResult& result);

}  // namespace banyan
