#include "server/status/metrics.h"

#include <fmt/ranges.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "banyan/request.h"
#include "server/llamacpp/metrics.h"

namespace banyan {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Buckets = prometheus::Histogram::BucketBoundaries;

constexpr double kThroughputWindow_s = 1;
constexpr std::string_view kPrefillBackend = "prefill";  // of server/prefill

// Each value is stored under its first name and exported under both.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kAliases = {{
    {"sglang:prompt_tokens_total", "vllm:prompt_tokens_total"},
    {"sglang:generation_tokens_total", "vllm:generation_tokens_total"},
    {"sglang:cached_tokens_total", "vllm:prefix_cache_hits_total"},
    {"sglang:prompt_tokens_total", "vllm:prefix_cache_queries_total"},
    {"sglang:num_retracted_requests_total", "vllm:num_preemptions_total"},
    {"sglang:num_running_reqs", "vllm:num_requests_running"},
    {"sglang:num_queue_reqs", "vllm:num_requests_waiting"},
    {"sglang:token_usage", "vllm:kv_cache_usage_perc"},
    {"sglang:token_usage", "vllm:gpu_cache_usage_perc"},  // vLLM's name until 0.10
    {"sglang:time_to_first_token_seconds", "vllm:time_to_first_token_seconds"},
    {"sglang:inter_token_latency_seconds", "vllm:inter_token_latency_seconds"},
    {"sglang:time_per_output_token_seconds", "vllm:time_per_output_token_seconds"},
    {"sglang:e2e_request_latency_seconds", "vllm:e2e_request_latency_seconds"},
    {"sglang:queue_time_seconds", "vllm:request_queue_time_seconds"},
    {"banyan:draft_tokens_total", "vllm:spec_decode_num_draft_tokens_total"},
    {"banyan:steps_saved_total", "vllm:spec_decode_num_accepted_tokens_total"},
    {"vllm:request_inference_time_seconds", "sglang:request_inference_time_seconds"},
}};

const Buckets& gap_buckets() {
  static const Buckets kBuckets = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03,
                                   0.04,   0.05,  0.075, 0.1,   0.15, 0.2,   0.3,  0.4,   0.5,
                                   0.75,   1,     2.5,   5,     10,   20,    40,   80};
  return kBuckets;
}

const Buckets& wait_buckets() {
  static const Buckets kBuckets = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                   0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                   20,    40,    80,   160,  320,  640,  1280, 2560};
  return kBuckets;
}

const Buckets& token_buckets() {
  static const Buckets kBuckets = {1,    2,    5,    10,    20,    50,    100,    200,    500,
                                   1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};
  return kBuckets;
}

prometheus::MetricFamily family_of(const char* name, const char* help,
                                   prometheus::MetricType type) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  return family;
}

// One series per computing expert, and one for all zero-computation experts.
void add_experts(std::span<const ExpertCounts> layers, const prometheus::Labels& labels,
                 std::vector<prometheus::MetricFamily>& families) {
  if (layers.empty()) return;
  auto tokens = family_of("banyan:expert_tokens_total", "Tokens routed to the expert",
                          prometheus::MetricType::Counter);
  auto active =
      family_of("banyan:active_experts_mean", "Mean number of computing experts per token",
                prometheus::MetricType::Gauge);
  for (const ExpertCounts& layer : layers) {
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : labels) metric.label.push_back({name, value});
    metric.label.push_back({"layer", layer.layer});
    active.metric.push_back(metric);
    active.metric.back().gauge.value = layer.active_mean();
    metric.label.push_back({"expert", ""});
    auto add = [&](std::string expert, int64_t count) {
      metric.label.back().value = std::move(expert);
      metric.counter.value = count;
      tokens.metric.push_back(metric);
    };
    for (size_t i = 0; i < layer.experts.size(); ++i) add(std::to_string(i), layer.experts[i]);
    if (layer.identities.empty()) continue;
    add("identity", std::accumulate(layer.identities.begin(), layer.identities.end(), int64_t{0}));
  }
  families.push_back(std::move(tokens));
  families.push_back(std::move(active));
}

// The grammar compiler keeps its own counters; export them.
void add_grammars(const GrammarStats& stats, size_t waiting, const prometheus::Labels& labels,
                  std::vector<prometheus::MetricFamily>& families) {
  using Type = prometheus::MetricType;
  auto add = [&](const char* name, const char* help, Type type) -> prometheus::ClientMetric& {
    prometheus::MetricFamily& family = families.emplace_back(family_of(name, help, type));
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    for (const auto& [key, value] : labels) metric.label.push_back({key, value});
    return metric;
  };
  auto count = [&](const char* name, const char* help, uint64_t value) {
    add(name, help, Type::Counter).counter.value = value;
  };
  count("sglang:num_grammar_cache_hit_total", "Grammars found compiled in the cache", stats.hits);
  count("sglang:num_grammar_timeout_total", "Grammars whose compilation timed out", stats.timeouts);
  count("banyan:num_grammar_failure_total", "Grammars that failed to compile", stats.failures);
  count("banyan:num_grammar_eviction_total", "Compiled grammars evicted from the cache",
        stats.evictions);
  auto& time = add("sglang:grammar_compilation_time_seconds",
                   "Time to compile a grammar, in seconds", Type::Summary)
                   .summary;
  time.sample_count = stats.misses;
  time.sample_sum = stats.compile_s;
  add("sglang:num_grammar_queue_reqs", "Requests whose grammars are queued or being compiled",
      Type::Gauge)
      .gauge.value = waiting;
  add("banyan:grammar_cache_bytes", "Memory of compiled grammars and their token masks",
      Type::Gauge)
      .gauge.value = stats.bytes;
}

void add_spans(const SpanCounts& spans, const prometheus::Labels& labels,
               std::vector<prometheus::MetricFamily>& families) {
  auto add = [&](const char* name, const char* help, int64_t count) {
    auto& family = families.emplace_back(family_of(name, help, prometheus::MetricType::Counter));
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    for (const auto& [key, value] : labels) metric.label.push_back({key, value});
    metric.counter.value = count;
  };
  add("banyan:spans_exported_total", "Spans accepted by the collector", spans.exported);
  add("banyan:spans_dropped_total", "Spans lost because the collector did not accept them",
      spans.dropped);
}

void add_memory(const MemoryUse& use, const prometheus::Labels& labels,
                std::vector<prometheus::MetricFamily>& families) {
  auto family =
      family_of("banyan:memory_bytes", "Memory by part; heap and resident include other parts",
                prometheus::MetricType::Gauge);
  for (auto [part, bytes] : {std::pair("weights", use.weights),
                             {"pools", use.pools},
                             {"step", use.step},
                             {"grammars", use.grammars},
                             {"request_bodies", use.request_bodies},
                             {"connection_buffers", use.connection_buffers},
                             {"heap_used", use.heap_used},
                             {"heap_free", use.heap_free},
                             {"resident", use.resident}}) {
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    for (const auto& [key, value] : labels) metric.label.push_back({key, value});
    metric.label.push_back({"part", part});
    metric.gauge.value = bytes;
  }
  families.push_back(std::move(family));
}

void add_figures(std::span<const GeneratorFigure> figures, const prometheus::Labels& labels,
                 std::vector<prometheus::MetricFamily>& families) {
  using Type = prometheus::MetricType;
  for (const GeneratorFigure& figure : figures) {
    if (families.empty() || families.back().name != figure.name) {
      families.push_back(family_of(std::string(figure.name).c_str(),
                                   std::string(figure.help).c_str(),
                                   figure.total ? Type::Counter : Type::Gauge));
    }
    prometheus::ClientMetric& metric = families.back().metric.emplace_back();
    for (const auto& [name, value] : labels) metric.label.push_back({name, value});
    if (!figure.label.empty()) {
      metric.label.push_back({std::string(figure.label), figure.label_value});
    }
    (figure.total ? metric.counter.value : metric.gauge.value) = figure.value;
  }
}

// Adapters with requests that run, and with such that wait, as Gateway API's pickers read them.
void add_adapters(const Metrics::Others& others, const prometheus::Labels& labels,
                  std::vector<prometheus::MetricFamily>& families) {
  std::vector<std::string_view> running, waiting;
  for (const AdapterInfo& adapter : others.adapters) {
    if (adapter.running > 0) running.push_back(adapter.name);
    if (adapter.sequences > adapter.running) waiting.push_back(adapter.name);
  }
  auto family =
      family_of("vllm:lora_requests_info", "Adapters; their value is a time, the latest one counts",
                prometheus::MetricType::Gauge);
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  for (const auto& [key, value] : labels) metric.label.push_back({key, value});
  metric.label.push_back({"max_lora", std::to_string(others.adapters_max)});
  metric.label.push_back({"running_lora_adapters", fmt::format("{}", fmt::join(running, ","))});
  metric.label.push_back({"waiting_lora_adapters", fmt::format("{}", fmt::join(waiting, ","))});
  metric.gauge.value = static_cast<double>(std::time(nullptr));
  families.push_back(std::move(family));
}

}  // namespace

struct Metrics::Impl {
  explicit Impl(const std::string& model_name) : labels{{"model_name", model_name}} {}

  prometheus::Counter& counter(const char* name, const char* help,
                               const prometheus::Labels& more = {}) {
    auto& family =
        prometheus::BuildCounter().Name(name).Help(help).Labels(labels).Register(registry);
    return family.Add(more);
  }
  prometheus::Gauge& gauge(const char* name, const char* help,
                           const prometheus::Labels& more = {}) {
    auto& family = prometheus::BuildGauge().Name(name).Help(help).Labels(labels).Register(registry);
    return family.Add(more);
  }
  prometheus::Histogram& histogram(const char* name, const char* help, const Buckets& buckets) {
    auto& family =
        prometheus::BuildHistogram().Name(name).Help(help).Labels(labels).Register(registry);
    return family.Add({}, buckets);
  }
  // Metrics that Gateway API inference pickers read in addition to queue length and cache usage.
  void describe(const EngineInfo& info) {
    std::string page_size = std::to_string(info.page_size_tokens);
    std::string pages = std::to_string(info.total_tokens_max / std::max(1, info.page_size_tokens));
    gauge("vllm:cache_config_info", "Configuration of the KV cache pages",
          {{"block_size", page_size},
           {"cache_dtype", info.kv_cache_dtype},
           {"num_gpu_blocks", pages}})
        .Set(1);
    gauge("sglang:cache_config_info", "Configuration of the KV cache pages",
          {{"page_size", page_size}, {"num_pages", pages}})
        .Set(1);
  }
  prometheus::Counter& finished_for(FinishReason reason) {
    return counter("vllm:request_success_total", "Finished requests by finish reason",
                   {{"finished_reason", to_string(reason)}});
  }

  prometheus::Registry registry;
  prometheus::Labels labels;
  EngineStats last;
  double prompt_s = 0, predicted_s = 0;  // over all requests
  int64_t tokens_max = 0;                // of the longest request
  int64_t page_size_tokens = 1;
  int64_t state_bytes_per_sequence = 0;
  int64_t window_tokens = 0;
  std::vector<std::string> kinds;  // of units
  SteadyClock::time_point window_begin = SteadyClock::now(), last_step = window_begin;

  prometheus::Counter& prompt_tokens =
      counter("sglang:prompt_tokens_total", "Prompt tokens, computed or cached");
  prometheus::Counter& generated_tokens =
      counter("sglang:generation_tokens_total", "Generated tokens");
  prometheus::Counter& cached_tokens =
      counter("sglang:cached_tokens_total", "Prompt tokens taken from the cache",
              {{"cache_source", "device"}});
  prometheus::Counter& requests = counter("sglang:num_requests_total", "Requests that ended");
  prometheus::Counter& aborted =
      counter("sglang:num_aborted_requests_total", "Requests ended by their client or a limit");
  prometheus::Counter& refused =
      counter("banyan:refused_requests_total", "Requests rejected by the engine");
  prometheus::Counter& retracted =
      counter("sglang:num_retracted_requests_total",
              "Times that a request was preempted and freed its pages");
  prometheus::Counter& drafts = counter("vllm:spec_decode_num_drafts_total", "Drafts verified");
  prometheus::Counter& draft_tokens = counter("banyan:draft_tokens_total", "Draft tokens proposed");
  prometheus::Counter& steps_saved =
      counter("banyan:steps_saved_total", "Accepted draft tokens; each saved its request one step");

  // By drafter: "forced" for text that a grammar forces.
  void count_drafters(const EngineStats& now) {
    auto count = [this](const char* name, const char* help, const char* label, std::string value,
                        double more) {
      if (more > 0) counter(name, help, {{label, std::move(value)}}).Increment(more);
    };
    for (size_t i = 0; i < now.drafters.size(); ++i) {
      const DrafterStats &drafter = now.drafters[i], &before = last.drafters[i];
      std::string name(drafter.name);
      count("banyan:drafter_tokens_total", "Draft tokens proposed, by drafter", "drafter", name,
            drafter.draft_tokens - before.draft_tokens);
      count("banyan:drafter_accepted_tokens_total", "Accepted draft tokens, by drafter", "drafter",
            name, drafter.accepted_tokens - before.accepted_tokens);
      count("banyan:drafter_branches_total", "Branches of draft trees verified, by drafter",
            "drafter", name, drafter.branches - before.branches);
      count("banyan:drafter_followed_branches_total",
            "Branches of draft trees with accepted tokens, by drafter", "drafter", name,
            drafter.followed_branches - before.followed_branches);
      count("banyan:drafter_seconds_total", "Time spent drafting, in seconds, by drafter",
            "drafter", name, drafter.time_s - before.time_s);
    }
    for (size_t i = 0; i < now.accepted_at.size(); ++i) {
      count("vllm:spec_decode_num_accepted_tokens_per_pos_total",
            "Accepted draft tokens, by position in the draft", "position", std::to_string(i),
            now.accepted_at[i] - last.accepted_at[i]);
    }
  }

  // These appear only with a store, and only with values other than zero.
  void count_storage(const CacheStorageStats& now, const CacheStorageStats& before) {
    for (size_t i = 0; i < now.layer_count; ++i) {
      count_layer(now.layers[i], before.layers[i]);
      bool same = now.layers[i].units == before.layers[i].units &&
                  now.layers[i].health == before.layers[i].health;
      if (!same || before.layer_count == 0) set_layer(now.layers[i]);
    }
    auto gained = [](int64_t a, int64_t b) -> double { return a - b; };
    add("banyan:evicted_unwritten_total", "Units that left memory before they were stored",
        gained(now.evicted_unwritten, before.evicted_unwritten), {});
    add("banyan:restore_seconds_saved_total", "Time of computing that loading saved, estimated",
        now.saved_s - before.saved_s, {});
    for (size_t i = 0; i < now.misses.size(); ++i) {
      add("banyan:tier_miss_total", "Units, or prefixes, that were not loaded, by reason",
          gained(now.misses[i], before.misses[i]),
          {{"reason", std::string(CacheStorageStats::kMissNames[i])}});
    }
  }

  void count_layer(const CacheLayerStats& now, const CacheLayerStats& before) {
    prometheus::Labels tier = {{"tier", std::string(now.backend)}};
    auto gained = [](int64_t a, int64_t b) -> double { return a - b; };
    double restored = gained(now.restored_tokens, before.restored_tokens);
    if (now.backend == kPrefillBackend) {
      add("banyan:prefilled_tokens_total", "Prompt tokens that prefill workers computed", restored,
          {});
    } else {
      add("sglang:cached_tokens_total", "Prompt tokens taken from the cache", restored,
          {{"cache_source", (now.backend == "host" ? "" : "storage_") + std::string(now.backend)}});
    }
    add("banyan:tier_read_bytes_total", "Read from the store",
        gained(now.read_bytes, before.read_bytes), tier);
    add("banyan:tier_write_bytes_total", "Written to the store",
        gained(now.written_bytes, before.written_bytes), tier);
    add("banyan:tier_load_seconds_total", "Time of its reads, each counted whole",
        now.read_s - before.read_s, tier);
    add("banyan:tier_write_seconds_total", "Time of its writes, each counted whole",
        now.write_s - before.write_s, tier);
    add("banyan:tier_evicted_total", "Units that it evicted",
        gained(now.evicted_units, before.evicted_units), tier);
  }

  void add(const char* name, const char* help, double more, const prometheus::Labels& labels) {
    if (more > 0) counter(name, help, labels).Increment(more);
  }

  void set_layer(const CacheLayerStats& now) {
    auto set = [&](const char* name, const char* help, int64_t value,
                   prometheus::Labels labels = {}) {
      labels.try_emplace("tier", now.backend);
      gauge(name, help, labels).Set(value);
    };
    for (size_t c = 0; c < kinds.size(); ++c) {
      set("banyan:tier_units", "Units in the store", now.units[c], {{"kind", kinds[c]}});
      set("banyan:tier_bytes", "Bytes of them", now.bytes[c], {{"kind", kinds[c]}});
    }
    set("banyan:tier_capacity_bytes", "What it may take; 0: its server knows", now.capacity_bytes);
    for (const char* state : {"on", "read-only", "off"}) {
      set("banyan:tier_state", "1 for the state that it is in", now.health == state ? 1 : 0,
          {{"state", state}});
    }
  }

  prometheus::Counter& constrained =
      counter("sglang:num_grammar_total", "Requests with grammar-constrained output");

  prometheus::Gauge& running = gauge("sglang:num_running_reqs", "Running requests");
  prometheus::Gauge& queued = gauge("sglang:num_queue_reqs", "Queued requests");
  prometheus::Gauge& used_tokens =
      gauge("sglang:num_used_tokens", "Tokens in KV cache pages in use");
  prometheus::Gauge& total_tokens =
      gauge("sglang:max_total_num_tokens", "Capacity of the KV cache, in tokens");
  prometheus::Gauge& token_usage =
      gauge("sglang:token_usage", "Fraction of the KV cache pages in use");
  prometheus::Gauge& snapshots = gauge("banyan:recurrent_snapshots",
                                       "Recurrent state snapshots at the ends of cached prefixes");
  prometheus::Gauge& state_slots =
      gauge("banyan:recurrent_slots", "Slots for recurrent states, of sequences and snapshots");
  prometheus::Gauge& snapshot_bytes =
      gauge("banyan:recurrent_snapshot_bytes", "Memory of recurrent state snapshots");
  prometheus::Gauge& throughput = gauge("sglang:gen_throughput", "Generated tokens per second");
  prometheus::Gauge& hit_rate =
      gauge("sglang:cache_hit_rate",
            "Fraction of prompt tokens found in the cache, in the last step with prompts");
  prometheus::Gauge& retracted_now =
      gauge("sglang:num_retracted_reqs", "Requests preempted in the last step");
  prometheus::Gauge& accept_length = gauge(
      "sglang:spec_accept_length", "Mean tokens per verified draft, including the model's own");
  prometheus::Gauge& accept_rate =
      gauge("sglang:spec_accept_rate", "Fraction of draft tokens accepted");
  prometheus::Gauge& load_time =
      gauge("sglang:engine_load_weights_time", "Time to load the model, in seconds");

  prometheus::Histogram& first_token =
      histogram("sglang:time_to_first_token_seconds", "Time from submission to the first token",
                wait_buckets());
  prometheus::Histogram& next_token = histogram(
      "sglang:inter_token_latency_seconds", "Time between two tokens of a request", gap_buckets());
  prometheus::Histogram& per_token =
      histogram("sglang:time_per_output_token_seconds",
                "Mean time per token after the first, per request", gap_buckets());
  prometheus::Histogram& total =
      histogram("sglang:e2e_request_latency_seconds", "Time from submission to the last token",
                wait_buckets());
  prometheus::Histogram& queue_time = histogram(
      "sglang:queue_time_seconds", "Time from submission to the first step", wait_buckets());
  prometheus::Histogram& prefill_time =
      histogram("vllm:request_prefill_time_seconds", "Time from the first step to the first token",
                wait_buckets());
  prometheus::Histogram& decode_time = histogram(
      "vllm:request_decode_time_seconds", "Time from the first token to the last", wait_buckets());
  prometheus::Histogram& inference_time =
      histogram("vllm:request_inference_time_seconds", "Time from the first step to the last token",
                wait_buckets());
  prometheus::Histogram& request_prompt =
      histogram("vllm:request_prompt_tokens", "Prompt tokens per request", token_buckets());
  prometheus::Histogram& request_generated =
      histogram("vllm:request_generation_tokens", "Generated tokens per request", token_buckets());
  prometheus::Histogram& request_max =
      histogram("vllm:request_params_max_tokens", "Maximum new tokens requested, per request",
                token_buckets());
};

Metrics::Metrics() = default;
Metrics::~Metrics() = default;

void Metrics::begin(const std::string& model_name, const EngineInfo& info, double load_s) {
  impl_ = std::make_unique<Impl>(model_name);
  impl_->page_size_tokens = info.page_size_tokens;
  for (const StateClassSummary& c : info.state_classes) impl_->kinds.push_back(c.name);
  impl_->state_bytes_per_sequence = info.state_bytes_per_sequence;
  impl_->total_tokens.Set(info.total_tokens_max);
  impl_->load_time.Set(load_s);
  for (FinishReason reason : {FinishReason::kStop, FinishReason::kLength, FinishReason::kCancelled,
                              FinishReason::kTimeout, FinishReason::kError}) {
    impl_->finished_for(reason);
  }
  impl_->describe(info);
}

void Metrics::first_token(double since_submission_s) {
  impl_->first_token.Observe(since_submission_s);
}

void Metrics::next_token(double since_previous_s) {
  impl_->next_token.Observe(since_previous_s);
}

void Metrics::finished(const RequestTimes& times) {
  impl_->requests.Increment();
  impl_->finished_for(times.finish).Increment();
  bool cut_short = times.finish != FinishReason::kStop && times.finish != FinishReason::kLength;
  if (cut_short) impl_->aborted.Increment();
  impl_->total.Observe(times.total_s);
  impl_->queue_time.Observe(times.queued_s);
  impl_->request_prompt.Observe(times.prompt_tokens);
  impl_->request_generated.Observe(times.generated_tokens);
  impl_->request_max.Observe(times.new_tokens_max);
  impl_->inference_time.Observe(std::max(0.0, times.total_s - times.queued_s));
  if (times.generated_tokens == 0) return;
  double decode_s = times.total_s - times.first_token_s;
  impl_->prompt_s += std::max(0.0, times.first_token_s - times.queued_s);
  impl_->predicted_s += decode_s;
  impl_->tokens_max = std::max(impl_->tokens_max, times.prompt_tokens + times.generated_tokens);
  impl_->prefill_time.Observe(std::max(0.0, times.first_token_s - times.queued_s));
  impl_->decode_time.Observe(decode_s);
  if (times.generated_tokens > 1) {
    impl_->per_token.Observe(decode_s / (times.generated_tokens - 1));
  }
}

void Metrics::rejected() {
  impl_->refused.Increment();
}

void Metrics::constrained() {
  impl_->constrained.Increment();
}

// Prompt tokens that other engines have computed for this one.
static int64_t prefilled_tokens(const EngineStats& stats) {
  int64_t tokens = 0;
  for (const CacheLayerStats& layer : stats.storage.layers) {
    if (layer.backend == kPrefillBackend) tokens += layer.restored_tokens;
  }
  return tokens;
}

void Metrics::step(const StepReport& report) {
  const EngineStats& now = report.stats;
  const EngineStats& last = impl_->last;
  auto count = [](int64_t n) -> double { return n; };
  double computed = count(now.prompt_tokens - last.prompt_tokens);
  double cached = count(now.cached_tokens - last.cached_tokens);
  impl_->prompt_tokens.Increment(computed + cached +
                                 count(prefilled_tokens(now) - prefilled_tokens(last)));
  double restored = count(now.storage.restored_tokens - last.storage.restored_tokens);
  impl_->cached_tokens.Increment(std::max(0.0, cached - restored));
  impl_->count_storage(now.storage, last.storage);
  impl_->generated_tokens.Increment(count(now.generated_tokens - last.generated_tokens));
  impl_->retracted.Increment(count(now.retracted - last.retracted));
  impl_->retracted_now.Set(count(now.retracted - last.retracted));
  impl_->drafts.Increment(count(now.drafts - last.drafts));
  impl_->draft_tokens.Increment(count(now.draft_tokens - last.draft_tokens));
  impl_->count_drafters(now);
  impl_->steps_saved.Increment(count(now.accepted_draft_tokens - last.accepted_draft_tokens));
  if (now.drafts > 0) {
    impl_->accept_length.Set(1 + count(now.accepted_draft_tokens) / count(now.drafts));
    impl_->accept_rate.Set(count(now.accepted_draft_tokens) / count(now.draft_tokens));
  }
  if (computed + cached > 0) impl_->hit_rate.Set(cached / (computed + cached));
  impl_->running.Set(count(now.running));
  impl_->queued.Set(count(now.queued));
  int64_t used = now.pages_total - now.pages_free - now.pages_cached;
  impl_->used_tokens.Set(count(used * impl_->page_size_tokens));
  impl_->snapshots.Set(count(now.slots_cached));
  impl_->state_slots.Set(count(now.slots_total));
  impl_->snapshot_bytes.Set(count(now.slots_cached * impl_->state_bytes_per_sequence));
  impl_->token_usage.Set(now.pages_total > 0 ? count(used) / count(now.pages_total) : 0);

  impl_->window_tokens += now.generated_tokens - last.generated_tokens;
  impl_->last_step = SteadyClock::now();
  double window_s = std::chrono::duration<double>(impl_->last_step - impl_->window_begin).count();
  if (window_s >= kThroughputWindow_s) {
    impl_->throughput.Set(count(std::exchange(impl_->window_tokens, 0)) / window_s);
    impl_->window_begin = impl_->last_step;
  }
  impl_->last = now;
}

std::string Metrics::text(const Others& others) const {
  if (!impl_) return "";
  auto idle = std::chrono::duration<double>(SteadyClock::now() - impl_->last_step);
  if (idle.count() > 2 * kThroughputWindow_s) impl_->throughput.Set(0);
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  size_t own = families.size();
  for (auto [name, alias] : kAliases) {
    for (size_t i = 0; i < own; ++i) {
      if (families[i].name != name) continue;
      families.push_back(families[i]);
      families.back().name = alias;
    }
  }
  add_experts(others.experts, impl_->labels, families);
  add_grammars(others.grammars, others.grammars_waiting, impl_->labels, families);
  add_memory(others.memory, impl_->labels, families);
  if (others.spans) add_spans(*others.spans, impl_->labels, families);
  add_figures(others.generator, impl_->labels, families);
  add_adapters(others, impl_->labels, families);
  LlamaFigures llama = {.stats = impl_->last,
                        .prompt_s = impl_->prompt_s,
                        .predicted_s = impl_->predicted_s,
                        .tokens_max = impl_->tokens_max};
  return prometheus::TextSerializer().Serialize(families) + llama_metrics(llama);
}

}  // namespace banyan
