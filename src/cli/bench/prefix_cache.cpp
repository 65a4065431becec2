// banyan bench prefix-cache: the cache hit rate of a trace, by policy and capacity.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <span>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "base/percentile.h"
#include "base/signed.h"
#include "cache/state_classes.h"
#include "cli/format.h"
#include "cli/options/checks.h"
#include "cli/options/options.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "replay/replay.h"

namespace banyan::cli {
namespace {

constexpr const char* kSharedPrefix = "generated-shared-prefix";
constexpr int64_t kTraceTokensMax = int64_t{1} << 31;
constexpr int64_t kPageSizeMax = 1024;
constexpr int kChunkTokens = 64;  // chunk of the existing recurrent mixers

struct BenchPrefixCacheOptions {
  std::string trace;
  std::string capacities = "1000000";
  std::string policies = "lpm,fcfs";
  std::string storage_tokens;  // a list; empty: no store
  std::string write_policies = "write_back";
  int page_size_tokens = 64;
  int running_max = 64;
  int64_t chunked_prefill_tokens = 8192;
  int aging_period = 4;
  double speedup = 1, step_ms = 10, row_us = 20;
  double request_rate = 0;      // 0: all arrive at once
  int64_t snapshot_tokens = 0;  // 0: no recurrent state
  double snapshot_ratio = 0.3;
  int64_t snapshot_interval_tokens = 16384;
  bool reuse_generated_state = false;
  SharedPrefixShape shape;
  uint64_t seed = 0;
  bool json = false;
};

struct Outcome {
  int64_t capacity_tokens = 0;
  std::string policy;
  ReplayReport report;
  double lru_hit_rate = 0;  // in order of arrival, one request at a time
};

// Memory with a store below it; one request at a time, in order of arrival.
struct StorageOutcome {
  int64_t capacity_tokens = 0, storage_tokens = 0;
  std::string write_policy;
  ReplayReport report;
};

Result<Trace> load_trace(const BenchPrefixCacheOptions& o) {
  Trace trace;
  if (o.trace == kSharedPrefix) {
    SharedPrefixShape shape = o.shape;
    shape.seed = o.seed;
    double tokens = static_cast<double>(shape.groups) * shape.prompts_per_group *
                    (shape.system_prompt_tokens + shape.question_tokens);
    if (tokens > kTraceTokensMax) {
      return invalid_argument("--trace {} has {:.0f} tokens; the limit is {}", o.trace, tokens,
                              kTraceTokensMax);
    }
    trace = shared_prefix_trace(shape);
  } else {
    trace = TRY(read_trace(o.trace, o.shape.output_tokens));
  }
  if (o.request_rate > 0) spread_arrivals(trace, o.request_rate, o.seed);
  return trace;
}

Result<std::vector<int64_t>> read_capacities(const BenchPrefixCacheOptions& o, const Trace& trace) {
  std::vector<int64_t> capacities;
  for (int32_t tokens : TRY(parse_numbers(o.capacities, "--capacity-tokens"))) {
    int64_t longest = trace.longest_tokens() + o.page_size_tokens;
    if (o.snapshot_tokens > 0) {
      longest = static_cast<int64_t>(longest / (1 - o.snapshot_ratio)) + 1;
    }
    if (tokens < longest) {
      return invalid_argument("--capacity-tokens {} is less than the longest request takes, {}",
                              tokens, longest);
    }
    capacities.push_back(tokens);
  }
  return capacities;
}

// A list of names, each of which must be in `known`.
Result<std::vector<std::string>> read_names(std::string_view option, const std::string& text,
                                            const std::vector<std::string>& known) {
  std::vector<std::string> names;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');) {
    if (std::ranges::find(known, name) == known.end()) {
      return invalid_argument("{} \"{}\" is not one of {}", option, name, fmt::join(known, ", "));
    }
    names.push_back(name);
  }
  if (names.empty()) return invalid_argument("{} names none", option);
  return names;
}

// Gives part of the capacity to snapshots of recurrent state.
void make_recurrent(const BenchPrefixCacheOptions& o, int64_t capacity_tokens,
                    SchedulerConfig& config) {
  auto snapshots = static_cast<int64_t>(o.snapshot_ratio * capacity_tokens) / o.snapshot_tokens;
  StateSpec state{.unit = StateUnit::kSlot,
                  .reach = StateReach::kPoint,
                  .alignment_tokens = kChunkTokens,
                  .two_forms = !o.reuse_generated_state};
  config.classes = *classify_states(std::span(&state, 1), o.page_size_tokens);
  config.snapshot_interval_tokens = o.snapshot_interval_tokens;
  int64_t alignment = config.classes.resume_alignment_tokens;
  config.prefill_rows_max = (config.prefill_rows_max + alignment - 1) / alignment * alignment;
  for (int c = 0; c < config.classes.count; ++c) {
    if (!config.classes[c].snapshots()) continue;
    config.units[as_size(c)] = o.running_max + std::max<int64_t>(1, snapshots);
  }
  config.units[kPathClass] -= snapshots * o.snapshot_tokens / o.page_size_tokens;
}

ReplayConfig replay_config(const BenchPrefixCacheOptions& o, int64_t capacity_tokens) {
  int64_t page = o.page_size_tokens;
  return {.scheduler = {.aging_period = o.aging_period,
                        .running_max = o.running_max,
                        .prefill_rows_max = o.chunked_prefill_tokens,
                        .classes = {.page_size_tokens = o.page_size_tokens},
                        .units = {capacity_tokens / page}},
          .step_s = o.step_ms / 1000,
          .row_s = o.row_us / 1e6,
          .speedup = o.speedup};
}

class Bench {
 public:
  Bench(const BenchPrefixCacheOptions& o, const Trace& trace) : o_(o), trace_(trace) {}

  double unbounded() {
    int64_t pages = pages_for_all(trace_, o_.page_size_tokens);
    ReplayConfig config = one_at_a_time(replay_config(o_, pages * o_.page_size_tokens));
    return run("unbounded cache", trace_, config).hit_rate();
  }

  std::vector<Outcome> outcomes(const std::vector<int64_t>& capacities,
                                const std::vector<std::string>& policies) {
    std::vector<Outcome> outcomes;
    for (int64_t capacity : capacities) {
      ReplayConfig config = replay_config(o_, capacity);
      if (o_.snapshot_tokens > 0) make_recurrent(o_, capacity, config.scheduler);
      std::string what = fmt::format("{} tokens", format_digits(capacity));
      double lru = run(what + ", one at a time", trace_, one_at_a_time(config)).hit_rate();
      for (const std::string& policy : policies) {
        bool dfs = policy == "dfs";
        config.scheduler.policy = schedule_policy(dfs ? "priority" : policy);
        ReplayReport report =
            run(what + ", " + policy, dfs ? in_dfs_order(trace_) : trace_, config);
        outcomes.push_back({capacity, policy, std::move(report), lru});
      }
    }
    return outcomes;
  }

  std::vector<StorageOutcome> storage_outcomes(const std::vector<int64_t>& capacities,
                                               const std::vector<int32_t>& storage,
                                               const std::vector<std::string>& write_policies) {
    std::vector<StorageOutcome> outcomes;
    for (int64_t capacity : capacities) {
      for (int64_t tokens : storage) {
        for (const std::string& policy : write_policies) {
          ReplayConfig config = one_at_a_time(replay_config(o_, capacity));
          config.storage_pages = tokens / o_.page_size_tokens;
          config.storage_write_policy = policy;
          std::string what = fmt::format("{} tokens over {} in a store, {}",
                                         format_digits(capacity), format_digits(tokens), policy);
          outcomes.push_back({capacity, tokens, policy, run(what, trace_, config)});
        }
      }
    }
    return outcomes;
  }

 private:
  ReplayReport run(const std::string& what, const Trace& trace, const ReplayConfig& config) {
    int64_t shown = 0;
    return replay(trace, config, [&](int64_t ended) {
      if (ended < shown + 100) return;
      shown = ended;
      progress_.show(fmt::format("{}: request {} of {}", what, ended, trace.requests.size()));
    });
  }

  const BenchPrefixCacheOptions& o_;
  const Trace& trace_;
  ProgressLine progress_{"bench"};
};

struct DecisionTimes {
  int64_t waiting_min = 0;
  double p50_us = 0, p99_us = 0;
  double admission_p50_us = 0;  // of decisions that admitted somebody, per admitted request
};

// Of the 10% of steps with the longest queue.
DecisionTimes busiest(std::vector<ReplayReport::Decision> decisions) {
  std::ranges::sort(decisions, std::greater<>{}, &ReplayReport::Decision::waiting);
  decisions.resize((decisions.size() + 9) / 10);
  std::vector<double> all_us, admission_us;
  for (const auto& decision : decisions) {
    all_us.push_back(decision.time_s * 1e6);
    if (decision.admitted == 0) continue;
    admission_us.push_back(all_us.back() / decision.admitted);
  }
  std::ranges::sort(all_us);
  std::ranges::sort(admission_us);
  return {.waiting_min = decisions.empty() ? 0 : decisions.back().waiting,
          .p50_us = percentile(all_us, 0.5),
          .p99_us = percentile(all_us, 0.99),
          .admission_p50_us = percentile(admission_us, 0.5)};
}

Json to_json(const Trace& trace, double unbounded, const std::vector<Outcome>& outcomes) {
  Json list = Json::array();
  for (const auto& [capacity, policy, r, lru] : outcomes) {
    DecisionTimes times = busiest(r.decisions);
    list.push_back({{"capacity_tokens", capacity},
                    {"policy", policy},
                    {"hit_rate", r.hit_rate()},
                    {"lru_hit_rate", lru},
                    {"cached_tokens", r.cached_tokens},
                    {"computed_rows", r.computed_rows},
                    {"cold_requests", r.cold_wait_s.size()},
                    {"cold_wait_p50_s", percentile(r.cold_wait_s, 0.5)},
                    {"cold_wait_p99_s", percentile(r.cold_wait_s, 0.99)},
                    {"cold_wait_max_s", percentile(r.cold_wait_s, 1)},
                    {"cold_wait_bound_ratio", r.worst_wait_ratio},
                    {"retracted", r.retracted},
                    {"steps", r.steps},
                    {"simulated_s", r.end_s},
                    {"decision_waiting_min", times.waiting_min},
                    {"decision_p50_us", times.p50_us},
                    {"decision_p99_us", times.p99_us},
                    {"admission_p50_us", times.admission_p50_us}});
  }
  return {{"requests", trace.requests.size()},
          {"prompt_tokens", trace.prompt_tokens()},
          {"unbounded_hit_rate", unbounded},
          {"results", std::move(list)}};
}

std::string table(double unbounded, const std::vector<Outcome>& outcomes) {
  auto row = [](auto&&... cells) {
    return fmt::format(
        "{:>11} {:>6} | {:>6} {:>7} {:>7} | {:>8} {:>7} {:>7} {:>6} | {:>9} | {:>7} {:>7} {:>7} "
        "{:>7}\n",
        cells...);
  };
  auto percent = [](double part) { return fmt::format("{:.1f}%", 100 * part); };
  auto of_best = [&](double hit_rate) { return unbounded > 0 ? hit_rate / unbounded : 1; };
  auto one_decimal = [](double value) { return fmt::format("{:.1f}", value); };
  std::string text = row("capacity", "policy", "hits", "of best", "LRU's", "cold p50", "p99", "max",
                         "bound", "retracted", "waiting", "p50 us", "p99 us", "admit");
  for (const auto& [capacity, policy, r, lru] : outcomes) {
    DecisionTimes times = busiest(r.decisions);
    text += row(
        format_digits(capacity), policy, percent(r.hit_rate()), percent(of_best(r.hit_rate())),
        percent(of_best(lru)), one_decimal(percentile(r.cold_wait_s, 0.5)),
        one_decimal(percentile(r.cold_wait_s, 0.99)), one_decimal(percentile(r.cold_wait_s, 1)),
        fmt::format("{:.2f}", r.worst_wait_ratio), r.retracted, times.waiting_min,
        one_decimal(times.p50_us), one_decimal(times.p99_us), one_decimal(times.admission_p50_us));
  }
  return text;
}

Json to_json(const std::vector<StorageOutcome>& outcomes) {
  Json list = Json::array();
  for (const auto& [capacity, storage, policy, r] : outcomes) {
    list.push_back({{"capacity_tokens", capacity},
                    {"storage_tokens", storage},
                    {"write_policy", policy},
                    {"hit_rate", r.hit_rate()},
                    {"cached_tokens", r.cached_tokens},
                    {"restored_tokens", r.restored_tokens},
                    {"stored_tokens", r.stored_tokens}});
  }
  return list;
}

std::string table(const std::vector<StorageOutcome>& outcomes) {
  std::string text = fmt::format("{:>11} {:>11} {:>23} | {:>6} {:>9} {:>12}\n", "capacity",
                                 "storage", "write policy", "hits", "restored", "written");
  for (const auto& [capacity, storage, policy, r] : outcomes) {
    double restored = static_cast<double>(r.restored_tokens) / r.prompt_tokens;
    text += fmt::format("{:>11} {:>11} {:>23} | {:>5.1f}% {:>8.1f}% {:>12}\n",
                        format_digits(capacity), format_digits(storage), policy, 100 * r.hit_rate(),
                        100 * restored, format_digits(r.stored_tokens));
  }
  return text;
}

Result<int> bench(const BenchPrefixCacheOptions& o) {
  if ((o.page_size_tokens & (o.page_size_tokens - 1)) != 0) {
    return invalid_argument("--page-size {} is not a power of two", o.page_size_tokens);
  }
  std::vector<std::string> policies =
      TRY(read_names("--policy", o.policies, {"fcfs", "lpm", "dfs"}));
  std::vector<std::string> write_policies =
      TRY(read_names("--hicache-write-policy", o.write_policies,
                     {"write_back", "write_through", "write_through_selective"}));
  std::vector<int32_t> storage;
  if (!o.storage_tokens.empty()) {
    if (o.snapshot_tokens > 0) {
      return unsupported("--storage-tokens cannot be combined with --snapshot-tokens yet");
    }
    storage = TRY(parse_numbers(o.storage_tokens, "--storage-tokens"));
  }
  Trace trace = TRY(load_trace(o));
  std::vector<int64_t> capacities = TRY(read_capacities(o, trace));
  double unbounded = 0;
  std::vector<Outcome> outcomes;
  std::vector<StorageOutcome> stored;
  {
    Bench runs(o, trace);
    unbounded = runs.unbounded();
    outcomes = runs.outcomes(capacities, policies);
    stored = runs.storage_outcomes(capacities, storage, write_policies);
  }
  if (o.json) {
    Json json = to_json(trace, unbounded, outcomes);
    if (!stored.empty()) json["storage"] = to_json(stored);
    fmt::print("{}\n", dump_json(json));
    return kExitSuccess;
  }
  write_stdout(table(unbounded, outcomes));
  if (!stored.empty()) write_stdout("\n" + table(stored));
  fmt::print(stderr, "{}{} requests, {} prompt tokens; an unbounded cache has {:.1f}% of them{}\n",
             dim(), trace.requests.size(), format_digits(trace.prompt_tokens()), 100 * unbounded,
             undim());
  return kExitSuccess;
}

void declare_snapshots(CLI::App& app, BenchPrefixCacheOptions& o) {
  app.add_option(
         "--snapshot-tokens", o.snapshot_tokens,
         "Recurrent models: memory of a state snapshot, in tokens of the cache; 0: no snapshots")
      ->check(between(int64_t{0}, int64_t{1} << 24))
      ->type_name("N");
  app.add_option("--recurrent-state-memory-ratio", o.snapshot_ratio,
                 "Fraction of the capacity for snapshots")
      ->check(between(0.0, 0.9))
      ->type_name("F");
  app.add_option("--snapshot-interval-tokens", o.snapshot_interval_tokens,
                 "Tokens between snapshots in long prompts")
      ->check(between(int64_t{1}, int64_t{1} << 31))
      ->type_name("N");
  app.add_flag("--reuse-generated-state", o.reuse_generated_state, "Resume after answers too");
}

void declare_shape(CLI::App& app, SharedPrefixShape& shape) {
  auto count = [&](const char* name, int64_t& value, int64_t min, const char* text) {
    app.add_option(name, value, text)->check(between(min, int64_t{1} << 24))->type_name("N");
  };
  count("--gsp-num-groups", shape.groups, 1, "generated-shared-prefix: system prompts");
  count("--gsp-prompts-per-group", shape.prompts_per_group, 1, "Requests with each");
  count("--gsp-system-prompt-len", shape.system_prompt_tokens, 1, "Tokens of a system prompt");
  count("--gsp-question-len", shape.question_tokens, 1, "Tokens of a request's own question");
  count("--output-len", shape.output_tokens, 0, "Tokens of every answer, but in Mooncake traces");
}

VerbAction declare_bench_prefix_cache(CLI::App& app) {
  auto o = std::make_shared<BenchPrefixCacheOptions>();
  app.add_option("--trace", o->trace,
                 "A Mooncake trace, chats as in MT-bench, or "
                 "generated-shared-prefix")
      ->required()
      ->type_name("FILE");
  app.add_option("--capacity-tokens", o->capacities, "Capacity of the cache in tokens")
      ->type_name("N,N");
  app.add_option("--policy", o->policies, "fcfs, lpm; dfs: all at once, in the best order")
      ->type_name("P,P");
  app.add_option("--storage-tokens", o->storage_tokens,
                 "Tokens that a store outside memory holds (serve --hicache-storage-backend)")
      ->type_name("N,N");
  app.add_option("--hicache-write-policy", o->write_policies,
                 "Its write policy: write_back, write_through, write_through_selective")
      ->type_name("P,P");
  app.add_option("--page-size", o->page_size_tokens, "Tokens per page, a power of two")
      ->check(between(int64_t{1}, kPageSizeMax))
      ->type_name("N");
  app.add_option("--max-running-requests", o->running_max, "Maximum requests per step")
      ->check(between(1, 1 << 16))
      ->type_name("N");
  app.add_option("--chunked-prefill-size", o->chunked_prefill_tokens,
                 "Maximum prompt tokens per step, in addition to one token per decoding request")
      ->check(between(int64_t{1}, int64_t{1} << 24))
      ->type_name("N");
  app.add_option("--aging-period", o->aging_period,
                 "lpm: every Nth admission goes to the request that has waited longest")
      ->check(between(1, 1 << 20))
      ->type_name("N");
  app.add_option("--speedup", o->speedup, "Replay arrivals X times as fast as recorded")
      ->check(between(1e-6, 1e9))
      ->type_name("X");
  app.add_option("--request-rate", o->request_rate,
                 "Poisson arrivals per second instead of the recorded ones; 0: as recorded")
      ->check(between(0.0, 1e9))
      ->type_name("R");
  app.add_option("--step-ms", o->step_ms, "Simulated time of a step...")
      ->check(between(0.0, 1e6))
      ->type_name("T");
  app.add_option("--row-us", o->row_us, "... and of each row in it")
      ->check(between(0.0, 1e6))
      ->type_name("T");
  declare_shape(app, o->shape);
  declare_snapshots(app, *o);
  app.add_option("--seed", o->seed, "Random seed of the arrivals and the order")
      ->check(check_seed)
      ->type_name("S");
  app.add_flag("--json", o->json, "Print one JSON object");
  return [o] { return bench(*o); };
}

}  // namespace

const Verb kBenchPrefixCacheVerb = {
    "bench prefix-cache", "What a trace finds in the prefix cache, by policy and capacity",
    "  banyan bench prefix-cache --trace conversation_trace.jsonl --capacity-tokens "
    "3000000,10000000\n"
    "  banyan bench prefix-cache --trace generated-shared-prefix --policy lpm,fcfs,dfs\n"
    "  banyan bench prefix-cache --trace conversation_trace.jsonl --capacity-tokens 3000000\n"
    "      --storage-tokens 10000000,30000000 --hicache-write-policy write_back,write_through\n"
    "\n"
    "The trace runs through the real scheduler and radix tree, without a model, on a simulated\n"
    "clock. hits: the part of prompt tokens found in the cache; of best: of what an unbounded\n"
    "cache has; LRU's: the same for one request at a time in order of arrival. cold: seconds that\n"
    "requests waited that found at most a tenth of their prompt; bound: the worst wait, in\n"
    "admissions, by its bound of (n + 1) * aging period after n others, of all requests that\n"
    "did not wait for another to compute their prefix. With --snapshot-tokens only positions can\n"
    "be resumed from that have a snapshot, and of best is of what pages alone could do. waiting, "
    "p50, p99,\n"
    "admit: time of a decision in the tenth of steps with the most requests waiting, which are at\n"
    "least so many; the last is the median over those that admitted somebody, for each of them.\n"
    "\n"
    "With --storage-tokens a second table has hits in memory and a store together, one request at\n"
    "a time in order of arrival; restored: the part of prompt tokens that came from the store;\n"
    "written: tokens written to it.\n",
    declare_bench_prefix_cache};

}  // namespace banyan::cli
