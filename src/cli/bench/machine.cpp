// banyan bench machine: the machine's peak rates, which kernels are compared with.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/os/affinity.h"
#include "base/threads/thread_pool.h"
#include "cli/bench/kernel_choices.h"
#include "cli/format.h"
#include "cli/machine.h"
#include "cli/options/checks.h"
#include "cli/options/model_options.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "kernels/select.h"
#include "quant/formats.h"

namespace banyan::cli {
namespace {

struct BenchMachineOptions {
  int threads = 0;
  double seconds = 0.05;
  bool refresh = false;
  bool json = false;
};

// One figure per number of threads.
struct Row {
  std::string name;
  std::string unit;
  double unit_size;
  std::vector<double> values;
};

struct Measured {
  std::vector<int> threads;
  std::vector<Row> rows;
};

struct TableProbes {
  std::string name;
  const LimitProbes* probes;
};

std::vector<TableProbes> all_probes() {
  std::vector<TableProbes> all;
  for (const std::string& name : available_kernels()) {
    all.push_back({name, &limit_probes(**select_kernels(name))});
  }
  return all;
}

Row& row_named(Measured& measured, std::string_view name, std::string_view unit, double size) {
  auto it = std::ranges::find(measured.rows, name, &Row::name);
  if (it != measured.rows.end()) return *it;
  return measured.rows.emplace_back(std::string(name), std::string(unit), size);
}

void measure(int threads, double seconds, ProgressLine& progress, Measured& measured) {
  auto show = [&](std::string_view what) {
    progress.show(fmt::format("{}, {} thread{}", what, threads, threads > 1 ? "s" : ""));
  };
  show("memory");
  ThreadPool pool(threads);
  pin_workers(pool);
  LimitMeter meter(pool, seconds);
  std::vector<TableProbes> all = all_probes();
  ReadLimit read = meter.read(*all.back().probes);
  row_named(measured, "read, plain loop", "GB/s", 1e9).values.push_back(read.plain_bytes_per_s);
  row_named(measured, "read, best prefetch", "GB/s", 1e9).values.push_back(read.bytes_per_s);
  row_named(measured, "  bytes ahead", "", 1).values.push_back(read.ahead_bytes);
  size_t column = measured.threads.size();
  for (const TableProbes& table : all) {
    for (const ProductProbe& probe : table.probes->products) {
      show(probe.name);
      bool integers = probe.operand == Operand::kInt8;
      Row& row = row_named(measured, probe.name, integers ? "GOP/s" : "GFLOP/s", 1e9);
      if (row.values.size() > column) continue;  // an instruction also used by another table
      row.values.push_back(meter.operations_per_s(probe));
    }
  }
  show("barrier");
  row_named(measured, "barrier", "us", 1e-6).values.push_back(meter.barrier_s());
  measured.threads.push_back(threads);
}

// {kernels, weights, instruction}: the instruction that limits the products of each table and
// format.
Json bounds() {
  Json list = Json::array();
  for (const TableProbes& table : all_probes()) {
    for (const WeightFormat& format : weight_formats()) {
      list.push_back({{"kernels", table.name},
                      {"weights", format.name},
                      {"limit", probes_of(*table.probes, format.operand)[0].name}});
    }
  }
  return list;
}

Json to_json(const Measured& measured, const RefreshedChoices& chosen) {
  Json limits = Json::array();
  for (const Row& row : measured.rows) {
    Json values = Json::array();
    for (double value : row.values) values.push_back(value / row.unit_size);
    std::string_view name = row.name;
    name.remove_prefix(name.find_first_not_of(' '));
    limits.push_back({{"name", name}, {"unit", row.unit}, {"values", std::move(values)}});
  }
  return {{"machine", describe_machine()},
          {"threads", measured.threads},
          {"limits", std::move(limits)},
          {"bounds", bounds()},
          {"choices", choices_json(chosen)}};
}

std::string number(double value) {
  return fmt::format("{:.{}f}", value, value > 0 && value < 100 ? (value < 10 ? 2 : 1) : 0);
}

std::string limits_table(const Measured& measured) {
  std::string text = fmt::format("{:<24}", "");
  for (int threads : measured.threads) {
    text += fmt::format("{:>12}", fmt::format("{} thread{}", threads, threads > 1 ? "s" : ""));
  }
  text += '\n';
  for (const Row& row : measured.rows) {
    text += fmt::format("{:<24}", row.name);
    for (double value : row.values) text += fmt::format("{:>12}", number(value / row.unit_size));
    text += fmt::format("  {}\n", row.unit);
  }
  return text;
}

// The formats whose products an instruction limits: a line per instruction and table.
std::string bounds_table() {
  std::string text = fmt::format("\n{:<14}{:<24}{}\n", "kernels", "limit of products", "weights");
  for (const TableProbes& table : all_probes()) {
    std::vector<std::pair<std::string_view, std::string>> lines;
    for (const WeightFormat& format : weight_formats()) {
      std::string_view limit = probes_of(*table.probes, format.operand)[0].name;
      auto it = std::ranges::find(lines, limit, [](const auto& line) { return line.first; });
      if (it == lines.end()) {
        lines.emplace_back(limit, format.name);
      } else {
        it->second += fmt::format(", {}", format.name);
      }
    }
    for (const auto& [limit, formats] : lines) {
      text += fmt::format("{:<14}{:<24}{}\n", table.name, limit, formats);
    }
  }
  return text;
}

Result<int> bench(const BenchMachineOptions& o) {
  // The probe runs first, so that it cannot disturb caches that are measured here.
  ChoosingMachine self = this_machine();
  RefreshedChoices chosen = {.choices = {}, .tables = {}, .speeds = {}, .file = ""};
  if (o.refresh) {
    chosen = TRY(refresh_kernels(self));
  } else {
    chosen.choices = choose_kernels(self);
  }
  int threads = o.threads > 0 ? o.threads : usable_processors();
  Measured measured;
  {
    ProgressLine progress("measuring");
    measure(1, o.seconds, progress, measured);
    if (threads > 1) measure(threads, o.seconds, progress, measured);
  }
  if (o.json) {
    fmt::print("{}\n", dump_json(to_json(measured, chosen)));
    return kExitSuccess;
  }
  write_stdout(limits_table(measured) + bounds_table() + choices_table(chosen));
  Json machine = describe_machine();
  fmt::print(stderr, "{}{}, {} processors{}\n", dim(), machine["cpu"].get<std::string>(),
             machine["processors"].get<int>(), undim());
  return kExitSuccess;
}

VerbAction declare_bench_machine(CLI::App& app) {
  auto o = std::make_shared<BenchMachineOptions>();
  add_threads_option(app, o->threads, "Measured besides one thread; 0: one per processor");
  app.add_option("--seconds", o->seconds, "Seconds per figure; the best run counts")
      ->check(between(1e-3, 60.0))
      ->type_name("S");
  app.add_flag(
      "--refresh", o->refresh,
      "Measure which kernels are the fastest here for each format of weights, and keep the "
      "result for --kernels auto");
  app.add_flag("--json", o->json,
               "Print one JSON object: machine, threads, limits, bounds, choices");
  return [o] { return bench(*o); };
}

}  // namespace

const Verb kBenchMachineVerb = {
    "bench machine", "What this machine can do at most: bandwidth, arithmetic, barriers",
    "  banyan bench machine\n"
    "  banyan bench machine --threads 4 --seconds 0.2 --json\n"
    "  banyan bench machine --refresh\n"
    "\n"
    "Each figure is the best of many short runs, because other programs can only make a run\n"
    "slower. Reads are of memory that no cache holds, on huge pages where the system gives them.\n"
    "The second table says which figure bounds a format's products on each kernel table; decoding\n"
    "one sequence is bounded by the reads. The third says which kernels --kernels auto takes for "
    "a\n"
    "model whose weights are mostly of that format, and why.\n",
    declare_bench_machine};

}  // namespace banyan::cli
