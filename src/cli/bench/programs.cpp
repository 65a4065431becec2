// banyan bench programs: the paper's workloads as programs, with and without each optimisation.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <stop_token>
#include <thread>

#include "base/error.h"
#include "base/percentile.h"
#include "base/quote.h"
#include "cli/format.h"
#include "cli/options/checks.h"
#include "cli/options/engine_options.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "llm/llm_parts.h"
#include "program/reuse_meter.h"
#include "program/workloads.h"

namespace banyan::cli {
namespace {

// The optimisations that are enabled. THE LIST.
struct ProgramSetting {
  std::string_view name;
  bool radix_cache = true, fork_hints = true, jump_forward = true, keep_prefixes = true;
};
constexpr std::array kProgramSettings = {
    ProgramSetting{.name = "all"},
    ProgramSetting{.name = "no-radix-cache", .radix_cache = false},
    ProgramSetting{.name = "unhinted-forks", .fork_hints = false},
    ProgramSetting{.name = "unkept-prefixes", .keep_prefixes = false},
    ProgramSetting{.name = "no-jump-forward", .jump_forward = false},
};
constexpr std::string_view kPeer = "peer";

struct BenchProgramsOptions {
  EngineOptions engine = serving_options();
  std::string programs;
  std::string settings;
  size_t instances = 16;
  int parallelism = 16;
  int repeat = 1;
  std::string peer_url, peer_api = "completions", peer_model, peer_key;
  bool json = false;
};

struct ProgramFigures {
  double seconds = 0;
  double p50_s = 0, p99_s = 0;  // per program
  int64_t prompt_tokens = 0;
  double hit_rate = 0;
  std::optional<double> optimum;  // hit rate of an unbounded cache
  CallUsage usage;
  std::optional<int64_t> steps;
  std::optional<Error> error;

  // True if interrupted by Ctrl-C.
  bool cut_off() const { return error && InterruptScope::raised(); }
};

struct ProgramRow {
  std::string_view workload, setting;
  ProgramFigures figures;
};

// The entries of `all` listed in `names`, in that order; all if the list is empty.
template <class Entry>
Result<std::vector<Entry>> chosen(std::span<const Entry> all, const std::string& names,
                                  std::string_view option) {
  std::vector<Entry> some;
  for (auto part : std::views::split(names, ',')) {
    std::string_view name(part.begin(), part.end());
    auto found = std::ranges::find(all, name, &Entry::name);
    if (found == all.end()) {
      std::vector<std::string_view> known;
      for (const Entry& entry : all) known.push_back(entry.name);
      return invalid_argument("{} {} is not one of {}", option, quote(name),
                              fmt::join(known, ", "));
    }
    some.push_back(*found);
  }
  return some.empty() ? std::vector<Entry>(all.begin(), all.end()) : some;
}

// Notifies programs of Ctrl-C.
class InterruptWatch {
 public:
  std::stop_token token() const { return interrupted_.get_token(); }

 private:
  std::stop_source interrupted_;
  std::jthread thread_{[this](const std::stop_token& over) {
    while (!over.stop_requested()) {
      if (InterruptScope::raised()) interrupted_.request_stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }};
};

// Runs all instances of a workload once.
Result<ProgramFigures> run_workload(const Workload& workload, std::string_view setting,
                                    std::shared_ptr<Backend> backend, InterpreterOptions how,
                                    const BenchProgramsOptions& o) {
  Interpreter interpreter(std::move(backend), how);
  std::vector<double> times(o.instances);
  InterruptWatch watch;
  BatchOptions batch{.run = {.stop = watch.token()}, .parallelism = o.parallelism};
  batch.progress = progress_line(fmt::format("{}, {}", workload.name, setting));
  auto now_s = [begin = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<BatchResult> results = TRY(interpreter.run_batch(
      o.instances,
      [&](State& s, size_t index) {
        double begun = now_s();
        workload.body(s, index);
        (void)s.text();  // waits for the last addition
        times[index] = now_s() - begun;
      },
      std::move(batch)));
  ProgramFigures figures{.seconds = now_s()};
  std::ranges::sort(times);
  figures.p50_s = percentile(times, 0.5);
  figures.p99_s = percentile(times, 0.99);
  for (const BatchResult& result : results) {
    if (result.error && !figures.error) figures.error = result.error;
    figures.usage += result.usage;
  }
  return figures;
}

Result<ProgramFigures> run_here(const Workload& workload, const ProgramSetting& setting, Llm& llm,
                                const BenchProgramsOptions& o) {
  llm.engine().flush_cache();
  EngineStats before = llm.engine().stats();
  auto meter = std::make_shared<ReuseMeter>(in_process_backend(llm));
  InterpreterOptions how{.fork_hints = setting.fork_hints, .keep_prefixes = setting.keep_prefixes};
  ProgramFigures figures = TRY(run_workload(workload, setting.name, meter, how, o));
  Reuse reuse = TRY(meter->reuse(*tokenizer_of(llm)));
  meter.reset();  // releases the engine
  EngineStats after = llm.engine().stats();
  auto part = [&](int64_t tokens) {
    return static_cast<double>(tokens) / std::max<int64_t>(reuse.prompt_tokens, 1);
  };
  figures.prompt_tokens = reuse.prompt_tokens;
  figures.hit_rate = 1 - part(after.prompt_tokens - before.prompt_tokens);
  figures.optimum = part(reuse.reusable_tokens);
  figures.steps = after.steps - before.steps;
  return figures;
}

Result<ProgramFigures> run_there(const Workload& workload, const std::shared_ptr<Backend>& peer,
                                 const BenchProgramsOptions& o) {
  ProgramFigures figures = TRY(run_workload(workload, kPeer, peer, {}, o));
  figures.prompt_tokens = figures.usage.prompt_tokens;
  figures.hit_rate = static_cast<double>(figures.usage.cached_tokens) /
                     std::max<int64_t>(figures.prompt_tokens, 1);
  return figures;
}

// The median of several runs; all runs must succeed. Returns an interrupted run as it is.
Result<ProgramFigures> median_of(int runs, const std::function<Result<ProgramFigures>()>& run) {
  std::vector<ProgramFigures> all;
  for (int i = 0; i < runs; ++i) {
    all.push_back(TRY(run()));
    if (all.back().cut_off()) return all.back();
  }
  auto middle = all.begin() + std::ssize(all) / 2;
  std::ranges::nth_element(all, middle, {}, &ProgramFigures::seconds);
  return *middle;
}

using MeasureProgram = std::function<Result<ProgramFigures>(const Workload& workload)>;

// Rows of all programs for one setting; fewer after Ctrl-C.
Status measure_programs(const std::vector<Workload>& programs, std::string_view setting, int runs,
                        const MeasureProgram& run, std::vector<ProgramRow>& rows) {
  for (const Workload& workload : programs) {
    if (InterruptScope::raised()) return {};
    ProgramFigures figures = TRY(median_of(runs, [&] { return run(workload); }));
    if (figures.cut_off()) return {};
    rows.push_back({workload.name, setting, std::move(figures)});
  }
  return {};
}

Status measure_here(const std::vector<Workload>& programs, const ProgramSetting& setting,
                    const BenchProgramsOptions& o, std::vector<ProgramRow>& rows) {
  EngineConfig config = o.engine.config;
  config.radix_cache = config.radix_cache && setting.radix_cache;
  config.jump_forward = config.jump_forward && setting.jump_forward;
  std::unique_ptr<Llm> llm = TRY(load_llm(config));
  if (!llm->has_tokenizer()) {
    return unsupported("{} has no tokenizer files, which programs need", config.model_path);
  }
  BenchProgramsOptions warm_up = o;
  warm_up.instances = std::min<size_t>(o.instances, 2);
  TRY(run_here(programs.front(), setting, *llm, warm_up));
  auto run = [&](const Workload& workload) { return run_here(workload, setting, *llm, o); };
  return measure_programs(programs, setting.name, o.repeat, run, rows);
}

Status measure_there(const std::vector<Workload>& programs, const BenchProgramsOptions& o,
                     std::vector<ProgramRow>& rows) {
  ConnectOptions connect{
      .api = o.peer_api == "generate" ? RemoteApi::kGenerate : RemoteApi::kCompletions,
      .model = o.peer_model,
      .api_key = o.peer_key};
  std::shared_ptr<Backend> peer = TRY(connect_backend(o.peer_url, connect));
  BenchProgramsOptions warm_up = o;
  warm_up.instances = 1;
  TRY(run_there(programs.front(), peer, warm_up));
  auto run = [&](const Workload& workload) { return run_there(workload, peer, o); };
  return measure_programs(programs, kPeer, o.repeat, run, rows);
}

// The run time of `row` relative to the same workload under the first setting; nothing if either
// failed.
std::optional<double> time_ratio(const ProgramRow& row, const std::vector<ProgramRow>& rows) {
  auto first = std::ranges::find(rows, row.workload, &ProgramRow::workload);
  if (first->figures.error || row.figures.error) return std::nullopt;
  return row.figures.seconds / first->figures.seconds;
}

std::string program_table(const std::vector<ProgramRow>& rows, size_t instances) {
  auto line = [](auto&&... cells) {
    return fmt::format(
        "{:<19} {:<15} |{:>10} {:>6} {:>6} |{:>10} {:>6} {:>7} |{:>7} {:>6} |{:>6}\n", cells...);
  };
  auto percent = [](double share) { return fmt::format("{:.1f}%", 100 * share); };
  std::string text = line("workload", "setting", "programs/s", "p50 s", "p99 s", "prompt tok",
                          "hits", "optimum", "new tok", "steps", "time");
  for (const ProgramRow& row : rows) {
    const ProgramFigures& f = row.figures;
    if (f.error) {
      text += fmt::format("{:<19} {:<15} | {}\n", row.workload, row.setting, f.error->message);
      continue;
    }
    std::optional<double> ratio = time_ratio(row, rows);
    text += line(row.workload, row.setting,
                 fmt::format("{:.2f}", static_cast<double>(instances) / f.seconds),
                 fmt::format("{:.2f}", f.p50_s), fmt::format("{:.2f}", f.p99_s),
                 format_digits(f.prompt_tokens), percent(f.hit_rate),
                 f.optimum ? percent(*f.optimum) : "-", f.usage.completion_tokens,
                 f.steps ? std::to_string(*f.steps) : "-",
                 ratio ? fmt::format("x{:.2f}", *ratio) : "-");
  }
  return text;
}

// The geometric mean of the ratios of each setting's rows.
std::string program_means(const std::vector<ProgramRow>& rows) {
  std::string text;
  std::vector<std::string_view> told = {rows.front().setting};  // the first is the baseline
  for (const ProgramRow& row : rows) {
    if (std::ranges::find(told, row.setting) != told.end()) continue;
    told.push_back(row.setting);
    double sum = 0;
    int count = 0;
    for (const ProgramRow& other : rows) {
      std::optional<double> ratio = time_ratio(other, rows);
      if (other.setting != row.setting || !ratio) continue;
      sum += std::log(*ratio);
      ++count;
    }
    if (count == 0) continue;
    text += fmt::format("{}: x{:.2f} of the time with {}, geometric mean of {}\n", row.setting,
                        std::exp(sum / count), rows.front().setting, count);
  }
  return text;
}

Json program_json(const ProgramRow& row, const std::vector<ProgramRow>& rows, size_t instances) {
  const ProgramFigures& f = row.figures;
  if (f.error) {
    return {{"workload", row.workload}, {"setting", row.setting}, {"error", f.error->message}};
  }
  auto optional = [](auto value) { return value ? Json(*value) : Json(nullptr); };
  return {{"workload", row.workload},
          {"setting", row.setting},
          {"seconds", f.seconds},
          {"programs_per_s", instances / f.seconds},
          {"latency_p50_s", f.p50_s},
          {"latency_p99_s", f.p99_s},
          {"prompt_tokens", f.prompt_tokens},
          {"hit_rate", f.hit_rate},
          {"optimal_hit_rate", optional(f.optimum)},
          {"new_tokens", f.usage.completion_tokens},
          {"calls", f.usage.calls},
          {"steps", optional(f.steps)},
          {"time_ratio", optional(time_ratio(row, rows))}};
}

// The runs that Ctrl-C skipped, a line per setting: "no-radix-cache: judge, retrieval".
std::string left_out(const std::vector<ProgramRow>& rows, const std::vector<Workload>& programs,
                     const std::vector<std::string_view>& settings) {
  std::string text;
  for (std::string_view setting : settings) {
    std::vector<std::string_view> missing;
    for (const Workload& workload : programs) {
      auto measured = [&](const ProgramRow& row) {
        return row.workload == workload.name && row.setting == setting;
      };
      if (std::ranges::none_of(rows, measured)) missing.push_back(workload.name);
    }
    bool all = missing.size() == programs.size() && missing.size() > 1;
    if (all) missing = {"every program"};
    if (!missing.empty()) text += fmt::format("  {}: {}\n", setting, fmt::join(missing, ", "));
  }
  return text;
}

void print_rows(const std::vector<ProgramRow>& rows, const BenchProgramsOptions& o) {
  if (!o.json) {
    if (!rows.empty()) write_stdout(program_table(rows, o.instances) + program_means(rows));
    return;
  }
  Json list = Json::array();
  for (const ProgramRow& row : rows) list.push_back(program_json(row, rows, o.instances));
  write_stdout(dump_json({{"model", o.engine.config.model_path},
                          {"instances", o.instances},
                          {"parallelism", o.parallelism},
                          {"repeat", o.repeat},
                          {"results", std::move(list)}}) +
               "\n");
}

Status measure_all(const std::vector<Workload>& programs,
                   const std::vector<ProgramSetting>& settings, const BenchProgramsOptions& o,
                   std::vector<ProgramRow>& rows) {
  for (const ProgramSetting& setting : settings) {
    if (!InterruptScope::raised()) TRY(measure_here(programs, setting, o, rows));
  }
  if (!o.peer_url.empty() && !InterruptScope::raised()) TRY(measure_there(programs, o, rows));
  return {};
}

Result<int> bench(BenchProgramsOptions& o) {
  TRY(o.engine.settle());
  std::vector<Workload> programs = TRY(chosen(workloads(), o.programs, "--programs"));
  std::vector<ProgramSetting> settings =
      TRY(chosen(std::span<const ProgramSetting>(kProgramSettings), o.settings, "--settings"));
  std::vector<std::string_view> names;
  for (const ProgramSetting& setting : settings) names.push_back(setting.name);
  if (!o.peer_url.empty()) names.push_back(kPeer);

  InterruptScope interrupt(InterruptScope::Second::kEndsProgram);
  std::vector<ProgramRow> rows;
  Status ended = measure_all(programs, settings, o, rows);
  auto place = [&](const ProgramRow& row) {
    return std::ranges::find(programs, row.workload, &Workload::name) - programs.begin();
  };
  std::ranges::stable_sort(rows, {}, place);
  if (ended || !rows.empty()) print_rows(rows, o);
  TRY(std::move(ended));
  std::string missing = left_out(rows, programs, names);
  if (!missing.empty()) {
    fmt::print(stderr, "banyan: interrupted; not measured:\n{}", missing);
    return kExitInterrupt;
  }
  bool failed = std::ranges::any_of(
      rows, [](const ProgramRow& row) { return row.figures.error && row.setting != kPeer; });
  return failed ? kExitFailure : kExitSuccess;
}

VerbAction declare_bench_programs(CLI::App& app) {
  auto o = std::make_shared<BenchProgramsOptions>();
  auto list = [](auto entries) {
    std::vector<std::string_view> names;
    for (const auto& entry : entries) names.push_back(entry.name);
    return fmt::format("{}", fmt::join(names, ", "));
  };
  app.add_option("--programs", o->programs,
                 "Programs to run, as a list [all]: " + list(workloads()))
      ->default_str("")
      ->type_name("A,B");
  app.add_option("--settings", o->settings,
                 "Settings to compare, as a list [all]; times are relative to the first: " +
                     list(std::span<const ProgramSetting>(kProgramSettings)))
      ->default_str("")
      ->type_name("A,B");
  app.add_option("--instances", o->instances, "Programs per workload")
      ->check(between(1, 1 << 20))
      ->type_name("N");
  app.add_option("--parallelism", o->parallelism, "Programs at the same time")
      ->check(between(1, 1 << 16))
      ->type_name("N");
  app.add_option("--repeat", o->repeat, "Runs of each; the median is reported")
      ->check(between(1, 1000))
      ->type_name("N");
  app.add_option("--peer-url", o->peer_url, "Also run them through this server")
      ->default_str("")
      ->type_name("URL");
  app.add_option("--peer-api", o->peer_api, "Its API: completions is OpenAI's")
      ->transform(one_of({"completions", "generate"}))
      ->type_name("NAME");
  app.add_option("--peer-model", o->peer_model, "Name of its model [its first]")
      ->default_str("")
      ->type_name("NAME");
  app.add_option("--peer-api-key", o->peer_key, "Key to send")
      ->envname("OPENAI_API_KEY")
      ->default_str("")
      ->type_name("KEY");
  app.add_flag("--json", o->json, "Print one JSON object");
  add_model_options(app, o->engine.config);
  add_engine_options(app, o->engine);
  return [o] { return bench(*o); };
}

}  // namespace

const Verb kBenchProgramsVerb = {
    "bench programs", "Programs with branches: what the prefix cache and the hints give them",
    "  banyan bench programs models/banyan-nano\n"
    "  banyan bench programs models/Qwen3-0.6B --programs judge,tree_of_thought\n"
    "  banyan bench programs folder-with-config.json --load-format dummy --settings all "
    "\\\n"
    "      --peer-url http://127.0.0.1:8080\n"
    "\n"
    "The lengths of texts and answers do not depend on the model. Hits are prompt tokens that "
    "were\n"
    "not computed; the optimum is what an endless cache would have had of the same prompts and\n"
    "answers, in the order in which they came. Time is a workload's under the first setting, and\n"
    "how many times that it took under another one. A peer should ignore ends of text when asked\n"
    "(ignore_eos), or it has less to do. Ctrl-C prints what is measured so far.\n",
    declare_bench_programs};

}  // namespace banyan::cli
