// banyan bench fleet: compares routing policies over many simulated workers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "base/percentile.h"
#include "cli/format.h"
#include "cli/options/checks.h"
#include "cli/options/options.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "engine/step_times.h"
#include "fleet/fleet.h"

namespace banyan::cli {
namespace {

constexpr int kWorkersMax = 16384;

struct BenchFleetOptions {
  std::string trace;
  std::string policies = "cost,cache_aware,least_loaded,round_robin,random";
  int workers = 8, cells = 1, copies = 1;
  double hours = 0;  // 0: once through the trace
  int64_t capacity_tokens = 3'000'000;
  int page_size_tokens = 64;
  int64_t tokens_per_unit = 1;
  int running_max = 64;
  int64_t chunked_prefill_tokens = 2048;
  double step_ms = 10, row_us = 125, decode_row_us = 100;
  std::string step_times;  // a file that replaces these three
  double load = 0.85;
  double speedup = 0;  // replaces the load
  double event_delay_s = 0.01, report_interval_s = 0.1;
  double deaths_percent_per_hour = 0, restart_s = 60;
  uint64_t seed = 0;
  bool json = false;
};

struct PolicyRun {
  std::string policy;
  FleetReport report;
};

double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / values.size();
}

Result<StepTimes> times_of(const BenchFleetOptions& o) {
  if (!o.step_times.empty()) return read_step_times(o.step_times);
  return StepTimes{.step_s = o.step_ms / 1e3,
                   .prompt_row_s = o.row_us / 1e6,
                   .decode_row_s = o.decode_row_us / 1e6};
}

FleetSimulation simulation_of(const BenchFleetOptions& o, const StepTimes& times,
                              const Trace& trace) {
  int64_t unit = o.tokens_per_unit;
  FleetSimulation simulation{
      .worker = {.scheduler = {.policy = SchedulePolicy::kLpm,
                               .running_max = o.running_max,
                               .prefill_rows_max =
                                   std::max<int64_t>(1, o.chunked_prefill_tokens / unit),
                               .units = {o.capacity_tokens / o.page_size_tokens}},
                 .times = times,
                 .tokens_per_unit = unit},
      .workers = o.workers,
      .cells = o.cells,
      .copies = o.copies,
      .event_delay_s = o.event_delay_s,
      .report_interval_s = o.report_interval_s,
      .deaths_per_worker_hour = o.deaths_percent_per_hour / 100,
      .restart_s = o.restart_s,
      .seed = o.seed};
  simulation.worker.scheduler.classes.page_size_tokens =
      static_cast<int>(o.page_size_tokens / unit);
  simulation.speedup = o.speedup > 0 ? o.speedup : speedup_for_load(trace, simulation, o.load);
  double last_s = trace.requests.back().arrival_s / simulation.speedup;
  simulation.round_s = last_s;
  if (o.hours > 0) {
    simulation.rounds = static_cast<int>(std::max(1.0, std::ceil(o.hours * 3600 / last_s)));
  }
  return simulation;
}

Status check(const BenchFleetOptions& o, const Trace& trace) {
  int64_t unit = o.tokens_per_unit;
  if ((o.page_size_tokens & (o.page_size_tokens - 1)) != 0) {
    return invalid_argument("--page-size {} is not a power of two", o.page_size_tokens);
  }
  if (o.page_size_tokens % unit != 0) {
    return invalid_argument("--tokens-per-unit {} does not divide --page-size {}", unit,
                            o.page_size_tokens);
  }
  if (trace.block_tokens % unit != 0) {
    return invalid_argument("--tokens-per-unit {} does not divide the trace's blocks of {} tokens",
                            unit, trace.block_tokens);
  }
  if (trace.longest_tokens() + 2 * o.page_size_tokens > o.capacity_tokens) {
    return invalid_argument("--capacity-tokens {} is less than the longest request takes, {}",
                            o.capacity_tokens, trace.longest_tokens() + 2 * o.page_size_tokens);
  }
  for (const TraceRequest& request : trace.requests) {
    if (request.after >= 0)
      return unsupported(
          "--trace has chats of several turns without arrival times; take a trace in Mooncake's "
          "format");
  }
  if (trace.requests.back().arrival_s <= 0) {
    return invalid_argument(
        "--trace: all requests arrive at once, so there is no load to simulate");
  }
  if (o.cells > o.workers) {
    return invalid_argument("--cells {} is more than --workers {}", o.cells, o.workers);
  }
  return {};
}

Result<std::vector<const RoutingPolicy*>> read_policies(const std::string& text) {
  std::vector<const RoutingPolicy*> policies;
  std::istringstream list(text);
  for (std::string name; std::getline(list, name, ',');) {
    const RoutingPolicy* policy = find_routing_policy(name);
    if (policy == nullptr) {
      std::vector<std::string_view> known;
      for (const RoutingPolicy& p : routing_policies()) known.push_back(p.name);
      return invalid_argument("--policy \"{}\" is not one of {}", name, fmt::join(known, ", "));
    }
    policies.push_back(policy);
  }
  if (policies.empty()) return invalid_argument("--policy names no policy");
  return policies;
}

std::string table(const std::vector<PolicyRun>& outcomes) {
  std::string text = fmt::format(
      "{:>12} | {:>6} | {:>8} {:>7} {:>7} | {:>9} {:>7} | {:>6} {:>11} {:>6} {:>5} | {:>8} {:>7}\n",
      "policy", "hits", "ttft s", "p50", "p99", "latency s", "p99", "deaths", "resubmitted",
      "queued", "lost", "p50 us", "p99 us");
  for (const auto& [policy, r] : outcomes) {
    text += fmt::format(
        "{:>12} | {:>5.1f}% | {:>8.2f} {:>7.2f} {:>7.1f} | {:>9.1f} {:>7.1f} | {:>6} {:>11} {:>6} "
        "{:>5} | {:>8.1f} {:>7.1f}\n",
        policy, 100 * r.hit_rate(), mean(r.ttft_s), percentile(r.ttft_s, 0.5),
        percentile(r.ttft_s, 0.99), mean(r.latency_s), percentile(r.latency_s, 0.99), r.deaths,
        r.resubmitted, r.queued, r.requests - r.ended, percentile(r.decision_us, 0.5),
        percentile(r.decision_us, 0.99));
  }
  return text;
}

Json to_json(const std::vector<PolicyRun>& outcomes, double speedup) {
  Json list = Json::array();
  for (const auto& [policy, r] : outcomes) {
    list.push_back({{"policy", policy},
                    {"requests", r.requests},
                    {"lost", r.requests - r.ended},
                    {"hit_rate", r.hit_rate()},
                    {"ttft_mean_s", mean(r.ttft_s)},
                    {"ttft_p50_s", percentile(r.ttft_s, 0.5)},
                    {"ttft_p99_s", percentile(r.ttft_s, 0.99)},
                    {"latency_mean_s", mean(r.latency_s)},
                    {"latency_p99_s", percentile(r.latency_s, 0.99)},
                    {"deaths", r.deaths},
                    {"resubmitted", r.resubmitted},
                    {"queued", r.queued},
                    {"simulated_s", r.end_s},
                    {"decision_p50_us", percentile(r.decision_us, 0.5)},
                    {"decision_p99_us", percentile(r.decision_us, 0.99)}});
  }
  return {{"speedup", speedup}, {"results", std::move(list)}};
}

Result<int> bench(const BenchFleetOptions& o) {
  auto policies = TRY(read_policies(o.policies));
  Trace trace = TRY(read_trace(o.trace, 0));
  TRY(check(o, trace));
  FleetSimulation simulation = simulation_of(o, TRY(times_of(o)), trace);
  std::vector<PolicyRun> outcomes;
  {
    ProgressLine progress("bench");
    for (const RoutingPolicy* policy : policies) {
      simulation.policy = policy;
      int64_t all = std::ssize(trace.requests) * o.copies * simulation.rounds;
      outcomes.push_back(
          {std::string(policy->name), simulate_fleet(trace, simulation, [&](int64_t ended) {
             progress.show(fmt::format("{}: request {} of {}", policy->name, ended, all));
           })});
    }
  }
  if (o.json) {
    fmt::print("{}\n", dump_json(to_json(outcomes, simulation.speedup)));
    return kExitSuccess;
  }
  write_stdout(table(outcomes));
  const FleetReport& first = outcomes.front().report;
  fmt::print(stderr, "{}{} requests in {:.1f} simulated hours, the trace's clock times {:.2f}{}\n",
             dim(), first.requests, first.end_s / 3600, simulation.speedup, undim());
  return kExitSuccess;
}

void declare_worker(CLI::App& app, BenchFleetOptions& o) {
  app.add_option("--capacity-tokens", o.capacity_tokens, "Tokens that a worker's cache holds")
      ->check(between(int64_t{1}, int64_t{1} << 40))
      ->type_name("N");
  app.add_option("--page-size", o.page_size_tokens, "Tokens per page, a power of two")
      ->check(between(1, 1 << 16))
      ->type_name("N");
  app.add_option("--tokens-per-unit", o.tokens_per_unit,
                 "Simulate this many tokens as one: faster, but times mean little")
      ->check(between(int64_t{1}, int64_t{1} << 16))
      ->type_name("N");
  app.add_option("--max-running-requests", o.running_max, "Maximum requests per step")
      ->check(between(1, 1 << 16))
      ->type_name("N");
  app.add_option("--chunked-prefill-size", o.chunked_prefill_tokens,
                 "Maximum prompt tokens per step")
      ->check(between(int64_t{1}, int64_t{1} << 24))
      ->type_name("N");
  CLI::Option* file = app.add_option("--step-times", o.step_times,
                                     "File with step times, as `bench one-batch --json` fits them")
                          ->type_name("FILE");
  auto time = [&](const char* name, double& value, const char* what) {
    app.add_option(name, value, what)->check(between(0.0, 1e6))->type_name("T")->excludes(file);
  };
  time("--step-ms", o.step_ms, "Or: time of a step...");
  time("--row-us", o.row_us, "... of each row of a prompt in it...");
  time("--decode-row-us", o.decode_row_us, "... and of each decoding sequence");
}

VerbAction declare_bench_fleet(CLI::App& app) {
  auto o = std::make_shared<BenchFleetOptions>();
  app.add_option("--trace", o->trace, "A Mooncake trace")->required()->type_name("FILE");
  app.add_option("--policy", o->policies, "Policies of the router")->type_name("P,P");
  app.add_option("--workers", o->workers, "Workers")
      ->check(between(1, kWorkersMax))
      ->type_name("N");
  app.add_option("--cells", o->cells, "Groups of workers, each with its own router")
      ->check(between(1, kWorkersMax))
      ->type_name("N");
  app.add_option("--copies", o->copies,
                 "Play the trace N times concurrently, with different prompts")
      ->check(between(1, kWorkersMax))
      ->type_name("N");
  app.add_option("--hours", o->hours, "Repeat it for this many hours; 0: play it once")
      ->check(between(0.0, 1e4))
      ->type_name("T");
  declare_worker(app, *o);
  app.add_option(
         "--load", o->load,
         "Play it so fast that it would take this share of all workers' time without a cache")
      ->check(between(0.01, 100.0))
      ->type_name("F");
  app.add_option("--speedup", o->speedup,
                 "Instead of --load: play it this many times as fast as recorded")
      ->check(between(1e-6, 1e6))
      ->type_name("F")
      ->excludes("--load");
  app.add_option("--event-delay", o->event_delay_s, "Seconds until routers receive an event")
      ->check(between(0.0, 1e4))
      ->type_name("T");
  app.add_option("--report-interval", o->report_interval_s, "Seconds between load reports")
      ->check(between(0.0, 1e4))
      ->type_name("T");
  app.add_option("--deaths", o->deaths_percent_per_hour, "Percentage of workers that die per hour")
      ->check(between(0.0, 1e4))
      ->type_name("F");
  app.add_option("--restart", o->restart_s, "Seconds until a dead worker is back, empty")
      ->check(between(0.0, 1e6))
      ->type_name("T");
  app.add_option("--seed", o->seed, "Random seed")->check(check_seed)->type_name("S");
  app.add_flag("--json", o->json, "Print one JSON object");
  return [o] { return bench(*o); };
}

}  // namespace

const Verb kBenchFleetVerb = {
    "bench fleet", "Many simulated workers behind a router, by its policy",
    "  banyan bench fleet --trace conversation_trace.jsonl\n"
    "  banyan bench fleet --trace conversation_trace.jsonl --policy cost --event-delay 10\n"
    "  banyan bench fleet --trace conversation_trace.jsonl --policy cost --workers 1000\n"
    "      --cells 8 --copies 125 --hours 24 --deaths 1 --tokens-per-unit 512 --page-size 512\n"
    "\n"
    "Each worker is the real scheduler and radix tree without a model, and the choice that of\n"
    "`banyan route`. hits: the part of prompt tokens that workers had. ttft: seconds until the\n"
    "first token; latency: until the last. A worker that dies takes its cache along; its requests\n"
    "go on elsewhere (resubmitted) with what their clients have. queued: times that no worker had\n"
    "room. p50 us, p99 us: real time of a decision, without hashing.\n",
    declare_bench_fleet};

}  // namespace banyan::cli
