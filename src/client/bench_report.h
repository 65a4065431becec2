// The results of a load test, as a table and as JSON. Lines and keys match SGLang's bench_serving,
// so that scripts for one read the other. Stateless; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "client/bench.h"

namespace banyan {

// Statistics of unsorted samples; zeros if there are none. Percentiles are interpolated between
// neighbours.
struct Distribution {
  double mean = 0, median = 0, std = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};
Distribution distribution_of(std::vector<double> samples);

// What a request must meet to count for the goodput; absent: no limit. Names and meanings are those
// of vLLM's --goodput: the time to the first token, the mean time per further token, and the whole.
struct GoodputLimits {
  std::optional<double> ttft_ms, tpot_ms, e2e_ms;

  bool any() const { return ttft_ms || tpot_ms || e2e_ms; }
};
// Reads "ttft:MS", "tpot:MS" and "e2el:MS", each at most once.
Result<GoodputLimits> read_goodput(const std::vector<std::string>& words);

// Covers successful requests only.
struct BenchReport {
  int64_t completed = 0, failed = 0;
  double duration_s = 0;
  int64_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;
  double cache_hit_rate = 0;  // [0, 1], fraction of the input tokens
  double requests_per_s = 0, input_tokens_per_s = 0, output_tokens_per_s = 0;
  double output_tokens_per_s_peak = 0;  // over whole seconds
  double concurrency = 0;               // mean
  int64_t concurrency_peak = 0;
  std::optional<double> accept_length;
  std::optional<double> goodput_requests_per_s;  // of requests that met all limits; none: no limits
  Distribution e2e_ms, ttft_ms, tpot_ms, itl_ms;
};
BenchReport report_of(const BenchResult& result, const GoodputLimits& limits = {});

// The parameters of the run, printed with its results.
struct BenchSetting {
  std::string backend, dataset, base_url, model;
  double requests_per_s = 0;    // infinite: all at once; 0: the dataset's times
  int64_t concurrency_max = 0;  // 0: no limit
};

std::string table_of(const BenchReport& report, const BenchSetting& setting);
Json json_of(const BenchReport& report, const BenchSetting& setting, const BenchResult& result);

}  // namespace banyan
