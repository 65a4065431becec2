#include "client/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "base/percentile.h"
#include "base/quote.h"

namespace banyan {
namespace {

constexpr size_t kTableColumns = 50;

double rate(int64_t count, double seconds) {
  return seconds > 0 ? count / seconds : 0;
}

// Milliseconds of one request.
struct RequestLatency {
  double ttft_ms = 0, e2e_ms = 0;
  double tpot_ms = 0;  // 0 for a single token
};

RequestLatency latency_of(const RequestRecord& record) {
  RequestLatency latency{.ttft_ms = (record.first_s - record.begin_s) * 1e3,
                         .e2e_ms = (record.last_s - record.begin_s) * 1e3};
  if (record.output_tokens > 1) {
    latency.tpot_ms = (record.last_s - record.first_s) * 1e3 / (record.output_tokens - 1);
  }
  return latency;
}

bool meets(const RequestLatency& latency, const GoodputLimits& limits) {
  return latency.ttft_ms <= limits.ttft_ms.value_or(latency.ttft_ms) &&
         latency.tpot_ms <= limits.tpot_ms.value_or(latency.tpot_ms) &&
         latency.e2e_ms <= limits.e2e_ms.value_or(latency.e2e_ms);
}

class Table {
 public:
  void title(std::string_view text, char rule) {
    text_ += fmt::format("{}\n", centred(text, rule));
  }
  void row(std::string_view name, int64_t value) { row(name, fmt::format("{}", value)); }
  void row(std::string_view name, double value) { row(name, fmt::format("{:.2f}", value)); }
  void row(std::string_view name, std::string_view value) {
    text_ += fmt::format("{:<40} {:<10}\n", name, value);
  }
  std::string end() { return text_ + std::string(kTableColumns, '=') + "\n"; }

 private:
  static std::string centred(std::string_view text, char rule) {
    size_t space = kTableColumns - std::min(kTableColumns, text.size());
    return std::string(space / 2, rule) + std::string(text) + std::string(space - space / 2, rule);
  }

  std::string text_;
};

std::string rate_name(double requests_per_s) {
  if (requests_per_s == 0) return "trace";
  return std::isinf(requests_per_s) ? "inf" : fmt::format("{:g}", requests_per_s);
}

void add_distribution(Json& json, const std::string& name, const Distribution& d) {
  json["mean_" + name + "_ms"] = d.mean;
  json["median_" + name + "_ms"] = d.median;
  json["std_" + name + "_ms"] = d.std;
  json["p90_" + name + "_ms"] = d.p90;
  json["p95_" + name + "_ms"] = d.p95;
  json["p99_" + name + "_ms"] = d.p99;
  json["max_" + name + "_ms"] = d.max;
}

}  // namespace

Distribution distribution_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  double count = samples.size();
  Distribution d;
  d.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  double squares = 0;
  for (double sample : samples) squares += (sample - d.mean) * (sample - d.mean);
  d.std = std::sqrt(squares / count);
  d.median = percentile(samples, 0.5);
  d.p90 = percentile(samples, 0.9);
  d.p95 = percentile(samples, 0.95);
  d.p99 = percentile(samples, 0.99);
  d.max = samples.back();
  return d;
}

Result<GoodputLimits> read_goodput(const std::vector<std::string>& words) {
  GoodputLimits limits;
  for (const std::string& word : words) {
    size_t colon = std::min(word.find(':'), word.size());
    std::string name = word.substr(0, colon);
    std::optional<double>* limit = name == "ttft"   ? &limits.ttft_ms
                                   : name == "tpot" ? &limits.tpot_ms
                                   : name == "e2el" ? &limits.e2e_ms
                                                    : nullptr;
    double ms = -1;
    const char *begin = word.data() + std::min(colon + 1, word.size()),
               *end = word.data() + word.size();
    bool number = std::from_chars(begin, end, ms).ptr == end && begin != end;
    if (limit == nullptr || !number || !(ms >= 0)) {
      return invalid_argument(
          "--goodput {} is not ttft:MS, tpot:MS or e2el:MS, with a number of milliseconds",
          quote(word));
    }
    if (limit->has_value()) return invalid_argument("--goodput has {} twice", name);
    *limit = ms;
  }
  return limits;
}

BenchReport report_of(const BenchResult& result, const GoodputLimits& limits) {
  BenchReport r{.duration_s = result.duration_s, .concurrency_peak = result.concurrency_peak};
  std::vector<double> e2e_ms, ttft_ms, tpot_ms;
  int64_t good = 0;
  for (const RequestRecord& record : result.records) {
    if (!record.ok) {
      ++r.failed;
      continue;
    }
    ++r.completed;
    r.input_tokens += record.prompt_tokens;
    r.output_tokens += record.output_tokens;
    r.cached_tokens += record.cached_tokens;
    RequestLatency latency = latency_of(record);
    e2e_ms.push_back(latency.e2e_ms);
    ttft_ms.push_back(latency.ttft_ms);
    if (record.output_tokens > 1) tpot_ms.push_back(latency.tpot_ms);
    good += meets(latency, limits);
  }
  if (r.input_tokens > 0) {
    r.cache_hit_rate = static_cast<double>(r.cached_tokens) / r.input_tokens;
  }
  r.requests_per_s = rate(r.completed, r.duration_s);
  if (limits.any()) r.goodput_requests_per_s = rate(good, r.duration_s);
  r.input_tokens_per_s = rate(r.input_tokens, r.duration_s);
  r.output_tokens_per_s = rate(r.output_tokens, r.duration_s);
  // Skip the last, partial second, unless it is the only one.
  const std::vector<int64_t>& seconds = result.tokens_by_second;
  r.output_tokens_per_s_peak = r.output_tokens_per_s;
  for (size_t i = 0; i + 1 < seconds.size(); ++i) {
    r.output_tokens_per_s_peak =
        std::max(r.output_tokens_per_s_peak, static_cast<double>(seconds[i]));
  }
  double busy_s = std::accumulate(e2e_ms.begin(), e2e_ms.end(), 0.0) / 1e3;
  if (r.duration_s > 0) r.concurrency = busy_s / r.duration_s;
  r.e2e_ms = distribution_of(std::move(e2e_ms));
  r.ttft_ms = distribution_of(std::move(ttft_ms));
  r.tpot_ms = distribution_of(std::move(tpot_ms));
  r.itl_ms = distribution_of({result.gaps_ms.begin(), result.gaps_ms.end()});
  return r;
}

std::string table_of(const BenchReport& r, const BenchSetting& setting) {
  Table table;
  table.title(" Serving Benchmark Result ", '=');
  table.row("Backend:", setting.backend);
  table.row("Traffic request rate:", rate_name(setting.requests_per_s));
  table.row("Max request concurrency:",
            setting.concurrency_max > 0 ? fmt::format("{}", setting.concurrency_max) : "not set");
  table.row("Successful requests:", r.completed);
  if (r.failed > 0) table.row("Failed requests:", r.failed);
  table.row("Benchmark duration (s):", r.duration_s);
  table.row("Total input tokens:", r.input_tokens);
  table.row("Total generated tokens:", r.output_tokens);
  table.row("Total cached tokens:", r.cached_tokens);
  table.row("Cache hit rate:", fmt::format("{:.1f}%", 100 * r.cache_hit_rate));
  table.row("Request throughput (req/s):", r.requests_per_s);
  if (r.goodput_requests_per_s) {
    table.row("Request goodput (req/s):", *r.goodput_requests_per_s);
  }
  table.row("Input token throughput (tok/s):", r.input_tokens_per_s);
  table.row("Output token throughput (tok/s):", r.output_tokens_per_s);
  table.row("Peak output token throughput (tok/s):", r.output_tokens_per_s_peak);
  table.row("Peak concurrent requests:", r.concurrency_peak);
  table.row("Total token throughput (tok/s):", r.input_tokens_per_s + r.output_tokens_per_s);
  table.row("Concurrency:", r.concurrency);
  if (r.accept_length) table.row("Accept length:", *r.accept_length);
  table.title("End-to-End Latency", '-');
  table.row("Mean E2E Latency (ms):", r.e2e_ms.mean);
  table.row("Median E2E Latency (ms):", r.e2e_ms.median);
  table.row("P90 E2E Latency (ms):", r.e2e_ms.p90);
  table.row("P99 E2E Latency (ms):", r.e2e_ms.p99);
  table.title("Time to First Token", '-');
  table.row("Mean TTFT (ms):", r.ttft_ms.mean);
  table.row("Median TTFT (ms):", r.ttft_ms.median);
  table.row("P99 TTFT (ms):", r.ttft_ms.p99);
  table.title("Time per Output Token (excl. 1st token)", '-');
  table.row("Mean TPOT (ms):", r.tpot_ms.mean);
  table.row("Median TPOT (ms):", r.tpot_ms.median);
  table.row("P99 TPOT (ms):", r.tpot_ms.p99);
  table.title("Inter-Token Latency", '-');
  table.row("Mean ITL (ms):", r.itl_ms.mean);
  table.row("Median ITL (ms):", r.itl_ms.median);
  table.row("P95 ITL (ms):", r.itl_ms.p95);
  table.row("P99 ITL (ms):", r.itl_ms.p99);
  table.row("Max ITL (ms):", r.itl_ms.max);
  return table.end();
}

Json json_of(const BenchReport& r, const BenchSetting& setting, const BenchResult& result) {
  Json json = {
      {"backend", setting.backend},
      {"dataset_name", setting.dataset},
      {"base_url", setting.base_url},
      {"model", setting.model},
      {"request_rate", rate_name(setting.requests_per_s)},
      {"max_concurrency",
       setting.concurrency_max > 0 ? Json(setting.concurrency_max) : Json(nullptr)},
      {"completed", r.completed},
      {"failed", r.failed},
      {"interrupted", result.interrupted},
      {"errors", Json::object()},
      {"duration", r.duration_s},
      {"total_input_tokens", r.input_tokens},
      {"total_output_tokens", r.output_tokens},
      {"total_cached_tokens", r.cached_tokens},
      {"cache_hit_rate", r.cache_hit_rate},
      {"request_throughput", r.requests_per_s},
      {"request_goodput",
       r.goodput_requests_per_s ? Json(*r.goodput_requests_per_s) : Json(nullptr)},
      {"input_throughput", r.input_tokens_per_s},
      {"output_throughput", r.output_tokens_per_s},
      {"max_output_tokens_per_s", r.output_tokens_per_s_peak},
      {"total_throughput", r.input_tokens_per_s + r.output_tokens_per_s},
      {"concurrency", r.concurrency},
      {"max_concurrent_requests", r.concurrency_peak},
      {"accept_length", r.accept_length ? Json(*r.accept_length) : Json(nullptr)},
  };
  for (const auto& [reason, count] : result.failures) json["errors"][reason] = count;
  add_distribution(json, "e2e_latency", r.e2e_ms);
  add_distribution(json, "ttft", r.ttft_ms);
  add_distribution(json, "tpot", r.tpot_ms);
  add_distribution(json, "itl", r.itl_ms);
  return json;
}

}  // namespace banyan
