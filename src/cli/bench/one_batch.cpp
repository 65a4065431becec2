// banyan bench one-batch: the speed of one batch of equal requests, without other load.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/os/affinity.h"
#include "base/quote.h"
#include "base/threads/thread_pool.h"
#include "cli/batch_run.h"
#include "cli/format.h"
#include "cli/machine.h"
#include "cli/model_source.h"
#include "cli/options/adapter_options.h"
#include "cli/options/checks.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "engine/context_fill.h"
#include "engine/step_times.h"
#include "engine/work.h"
#include "kernels/select.h"

namespace banyan::cli {
namespace {

constexpr int kBatchSizeMax = 1024;
constexpr int64_t kLengthMax = 1 << 20;

struct BenchOneBatchOptions {
  EngineConfig config;
  AdapterOptions adapters;
  std::string batch_sizes = "1";
  int64_t input_len = 512;
  int64_t output_len = 64;
  int64_t context_fill = 0;
  int repeat = 1;
  uint64_t seed = 0;
  bool no_limits = false;
  bool json = false;
};

// One kind of step: its speed, its cost per token, and the fraction of the machine's limit reached.
struct Rate {
  double tokens_per_s = 0;
  double bytes_per_token = 0, flops_per_token = 0;
  std::optional<double> fraction;

  double bytes_per_s() const { return tokens_per_s * bytes_per_token; }
  double flops_per_s() const { return tokens_per_s * flops_per_token; }
};

struct Measurement {
  BatchShape shape;
  Rate prefill;
  std::optional<Rate> decode;  // absent if output_len is 1

  double decode_tokens_per_s() const { return decode ? decode->tokens_per_s : 0; }
  double prefill_tokens_per_s() const { return prefill.tokens_per_s; }
};

Result<std::vector<BatchShape>> read_shapes(const BenchOneBatchOptions& o) {
  std::vector<BatchShape> shapes;
  for (TokenId size : TRY(parse_numbers(o.batch_sizes, "--batch-size"))) {
    if (size < 1 || size > kBatchSizeMax) {
      return invalid_argument("--batch-size {} is not within 1 to {}", size, kBatchSizeMax);
    }
    shapes.push_back({size, o.input_len, o.output_len, o.context_fill});
  }
  return shapes;
}

// Sets the sizes in `config` to fit the largest of `shapes`.
Result<EngineInfo> choose_sizes(EngineConfig& config, const BenchOneBatchOptions& o,
                                const std::vector<BatchShape>& shapes) {
  config.total_tokens_max = config.page_size_tokens;  // only the model's own limits matter here
  EngineInfo info = TRY(inspect_model(config));
  if (o.context_fill + o.input_len + o.output_len > info.context_length_tokens) {
    return invalid_argument(
        "--context-fill {}, --input-len {} and --output-len {} exceed the context length of {}",
        o.context_fill, o.input_len, o.output_len, info.context_length_tokens);
  }
  if (o.context_fill % config.page_size_tokens != 0) {
    return invalid_argument("--context-fill {} is not a multiple of the page size, {} tokens",
                            o.context_fill, config.page_size_tokens);
  }
  for (const BatchShape& shape : shapes) {
    config.running_max = std::max(config.running_max, shape.batch_size);
    config.queued_max = std::max(config.queued_max, shape.batch_size);
    config.total_tokens_max =
        std::max(config.total_tokens_max, batch_tokens(shape, config, info.context_length_tokens));
  }
  config.radix_cache = o.context_fill > 0;  // otherwise every run must compute its prompts
  return info;
}

struct LoadedEngine {
  std::unique_ptr<Engine> engine;
  double load_s = 0;  // to read and pack, or draw, the weights and to reserve memory

  double bytes_per_s() const { return static_cast<double>(engine->info().weight_bytes) / load_s; }
};

Result<LoadedEngine> load_engine(const EngineConfig& config) {
  ProgressLine progress("loading");
  auto began = std::chrono::steady_clock::now();
  std::unique_ptr<Engine> engine = TRY(Engine::load(config, progress.load_progress()));
  std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
  return LoadedEngine{std::move(engine), passed.count()};
}

// The limit is the larger of the time to read the bytes and the time to compute the products.
Rate rate_of(const Work& work, double tokens, double seconds,
             const std::optional<MachineLimits>& limits) {
  Rate rate{.tokens_per_s = tokens / seconds,
            .bytes_per_token = work.bytes / tokens,
            .flops_per_token = work.all_operations() / tokens};
  if (limits) {
    double least =
        std::max(work.bytes / limits->bytes_per_s, work.seconds(limits->operations_per_s));
    rate.fraction = least / seconds;
  }
  return rate;
}

Measurement rates(const EngineInfo& info, const BatchShape& shape, const BatchTiming& timing,
                  const std::optional<MachineLimits>& limits) {
  Work prefill = prompt_work(info, shape.batch_size, shape.context_fill + shape.input_len);
  if (shape.context_fill > 0) {
    Work before = prompt_work(info, shape.batch_size, shape.context_fill);
    for (size_t i = 0; i < before.operations.size(); ++i) {
      prefill.operations[i] -= before.operations[i];
    }
  }
  double prompt_tokens = shape.batch_size * shape.input_len;
  Measurement m{.shape = shape,
                .prefill = rate_of(prefill, prompt_tokens, timing.prefill_s, limits)};
  if (timing.decode_steps == 0) return m;
  // During the steps the context grows from input + 1 to input + steps tokens.
  double steps = timing.decode_steps;
  double context = (shape.context_fill + shape.input_len) + (steps + 1) / 2;
  Work decode = decode_work(info, shape.batch_size, context);
  // If the prompts of a batch end at different times, some steps have fewer sequences.
  double tokens_per_step = timing.decode_tokens / steps;
  m.decode = rate_of(decode, tokens_per_step, timing.decode_s / steps, limits);
  return m;
}

// The median run by prefill and the median run by decode.
Measurement median(std::vector<Measurement> runs) {
  auto middle = runs.begin() + runs.size() / 2;
  std::ranges::nth_element(runs, middle, {}, &Measurement::decode_tokens_per_s);
  Measurement result = *middle;
  std::ranges::nth_element(runs, middle, {}, &Measurement::prefill_tokens_per_s);
  result.prefill = middle->prefill;
  return result;
}

struct BatchRuns {
  std::vector<Measurement> medians;     // of each shape
  std::vector<StepsObserved> observed;  // all runs
};

void observe(const BatchShape& shape, const BatchTiming& timing,
             std::vector<StepsObserved>& observed) {
  observed.push_back({.steps = timing.prefill_steps,
                      .prompt_rows = shape.batch_size * shape.input_len,
                      .decode_rows = timing.decoded_during_prefill,
                      .time_s = timing.prefill_s});
  if (timing.decode_steps == 0) return;
  observed.push_back({.steps = timing.decode_steps,
                      .decode_rows = timing.decode_tokens,
                      .time_s = timing.decode_s});
}

// Takes about a second. Runs before the model is loaded, because it needs memory.
Result<std::optional<MachineLimits>> measure_limits(const BenchOneBatchOptions& o,
                                                    const EngineInfo& info) {
  constexpr double kSeconds = 0.04;
  if (o.no_limits) return std::nullopt;
  ProgressLine progress("measuring the machine");
  progress.show("");
  ThreadPool threads(info.threads);
  if (o.config.pin_threads) pin_workers(threads);
  const KernelTable* kernels = TRY(select_kernels(info.kernels));
  return LimitMeter(threads, kSeconds).limits(limit_probes(*kernels));
}

Result<BatchRuns> measure(Engine& engine, const EngineConfig& config,
                          const std::vector<BatchShape>& shapes, const BenchOneBatchOptions& o,
                          const std::optional<MachineLimits>& limits) {
  ProgressLine progress("bench");
  progress.show("warming up");
  BatchShape warm_up{shapes[0].batch_size, std::min<int64_t>(o.input_len, 32),
                     std::min<int64_t>(o.output_len, 4)};
  if (o.context_fill > 0) {
    progress.show("filling the context");
    std::vector<TokenId> tokens = context_tokens(o.context_fill, engine.info().vocabulary);
    TRY(fill_context(engine, tokens, o.seed));
  }
  uint64_t seed = o.seed;
  TRY(run_batch(engine, config, warm_up, seed));
  BatchRuns measured;
  for (const BatchShape& shape : shapes) {
    std::vector<Measurement> runs;
    for (int i = 0; i < o.repeat; ++i) {
      progress.show(fmt::format("batch size {}, run {} of {}", shape.batch_size, i + 1, o.repeat));
      BatchTiming timing =
          TRY(run_batch(engine, config, shape, o.context_fill > 0 ? ++seed : seed));
      runs.push_back(rates(engine.info(), shape, timing, limits));
      observe(shape, timing, measured.observed);
    }
    measured.medians.push_back(median(std::move(runs)));
  }
  return measured;
}

Json optional_json(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

// Null for values that were not measured.
Json rates_json(const Measurement& m) {
  auto decode = [&](auto value) { return m.decode ? Json(value(*m.decode)) : Json(nullptr); };
  return {{"batch_size", m.shape.batch_size},
          {"input_len", m.shape.input_len},
          {"output_len", m.shape.output_len},
          {"context_fill", m.shape.context_fill},
          {"prefill_tokens_per_s", m.prefill.tokens_per_s},
          {"prefill_bytes_per_token", m.prefill.bytes_per_token},
          {"prefill_flops_per_token", m.prefill.flops_per_token},
          {"prefill_flops_per_s", m.prefill.flops_per_s()},
          {"prefill_fraction", optional_json(m.prefill.fraction)},
          {"decode_tokens_per_s", decode([](const Rate& r) { return r.tokens_per_s; })},
          {"decode_bytes_per_token", decode([](const Rate& r) { return r.bytes_per_token; })},
          {"decode_flops_per_token", decode([](const Rate& r) { return r.flops_per_token; })},
          {"decode_bytes_per_s", decode([](const Rate& r) { return r.bytes_per_s(); })},
          {"decode_flops_per_s", decode([](const Rate& r) { return r.flops_per_s(); })},
          {"decode_fraction", decode([](const Rate& r) { return optional_json(r.fraction); })}};
}

Json limits_json(const std::optional<MachineLimits>& limits) {
  if (!limits) return nullptr;
  auto rate = [&](Operand operand) {
    return limits->operations_per_s[static_cast<size_t>(operand)];
  };
  return {{"read_bytes_per_s", limits->bytes_per_s},
          {"f32_flops_per_s", rate(Operand::kF32)},
          {"bf16_flops_per_s", rate(Operand::kBF16)},
          {"int8_ops_per_s", rate(Operand::kInt8)}};
}

Json to_json(const LoadedEngine& loaded, const BenchOneBatchOptions& o,
             const std::optional<MachineLimits>& limits, const BatchRuns& measured) {
  const EngineInfo& info = loaded.engine->info();
  Json list = Json::array();
  for (const Measurement& m : measured.medians) list.push_back(rates_json(m));
  Result<FittedSteps> step_times = fit_step_times(measured.observed);
  return {{"machine", describe_machine(info)},
          {"limits", limits_json(limits)},
          {"model",
           {{"path", o.config.model_path},
            {"family", info.architecture},
            {"load_format", o.config.load_format},
            {"load_s", loaded.load_s},
            {"parameters_total", info.parameters_total},
            {"parameters_active", info.parameters_active},
            {"weight_bytes", info.weight_bytes},
            {"selected_keys", info.selected_keys},
            {"index_bytes_per_token", info.index_bytes_per_token}}},
          {"repeat", o.repeat},
          {"step_times", step_times ? to_json(*step_times) : Json(nullptr)},
          {"results", std::move(list)}};
}

std::string table(const std::vector<Measurement>& results) {
  auto row = [](auto&&... cells) {
    return fmt::format(
        "{:>5} {:>6} {:>6} |{:>9} {:>12} {:>8} {:>6} |{:>9} {:>9} {:>12} {:>6} {:>6}\n", cells...);
  };
  auto cell = [](double value, double unit) {
    double x = value / unit;
    return fmt::format("{:.{}f}", x, x < 10 ? 3 : 1);
  };
  auto part = [](std::optional<double> fraction) {
    return fraction ? fmt::format("{:.2f}", *fraction) : std::string("-");
  };
  std::string text = fmt::format("{:19} |{:^38} |{:^46}\n", "", "prefill", "decode");
  text += row("batch", "input", "output", "tokens/s", "GFLOP/token", "GFLOP/s", "limit", "tokens/s",
              "MB/token", "GFLOP/token", "GB/s", "limit");
  for (const Measurement& m : results) {
    std::array<std::string, 5> decode;
    decode.fill("-");
    if (const auto& d = m.decode) {
      decode = {cell(d->tokens_per_s, 1), cell(d->bytes_per_token, 1e6),
                cell(d->flops_per_token, 1e9), cell(d->bytes_per_s(), 1e9), part(d->fraction)};
    }
    text += row(m.shape.batch_size, m.shape.input_len, m.shape.output_len,
                cell(m.prefill.tokens_per_s, 1), cell(m.prefill.flops_per_token, 1e9),
                cell(m.prefill.flops_per_s(), 1e9), part(m.prefill.fraction), decode[0], decode[1],
                decode[2], decode[3], decode[4]);
  }
  return text;
}

std::string describe(const LoadedEngine& loaded) {
  return fmt::format("weights: {:.0f} MB in memory after {:.2f} s ({:.1f} GB/s)\n",
                     static_cast<double>(loaded.engine->info().weight_bytes) / 1e6, loaded.load_s,
                     loaded.bytes_per_s() / 1e9);
}

std::string describe(const MachineLimits& limits) {
  return fmt::format(
      "limits: reads {:.1f} GB/s; products of f32 {:.0f}, bf16 {:.0f}, int8 {:.0f} G/s",
      limits.bytes_per_s / 1e9, limits.operations_per_s[0] / 1e9, limits.operations_per_s[1] / 1e9,
      limits.operations_per_s[2] / 1e9);
}

Result<int> bench(const BenchOneBatchOptions& o) {
  std::vector<BatchShape> shapes = TRY(read_shapes(o));
  EngineConfig config = o.config;
  config.model_path = TRY(locate_model(o.config.model_path));
  TRY(locate_adapters(config));
  if (config.expert_counts && !o.json) {
    return invalid_argument("--expert-counts is shown by --json only; add it");
  }
  EngineInfo info = TRY(choose_sizes(config, o, shapes));
  std::optional<MachineLimits> limits = TRY(measure_limits(o, info));
  LoadedEngine loaded = TRY(load_engine(config));
  Engine& engine = *loaded.engine;
  BatchRuns measured = TRY(measure(engine, config, shapes, o, limits));
  if (o.json) {
    Json json = to_json(loaded, o, limits, measured);
    if (config.expert_counts) json["expert_counts"] = expert_counts_json(engine.expert_counts());
    fmt::print("{}\n", dump_json(json));
    return kExitSuccess;
  }
  write_stdout(table(measured.medians));
  Json machine = describe_machine(engine.info());
  fmt::print(stderr, "{}{}, {} threads, {} kernels\n{}{}{}", dim(),
             machine["cpu"].get<std::string>(), engine.info().threads, engine.info().kernels,
             limits ? describe(*limits) + "\n" : "", describe(loaded), undim());
  return kExitSuccess;
}

VerbAction declare_bench_one_batch(CLI::App& app) {
  auto o = std::make_shared<BenchOneBatchOptions>();
  app.add_option("--batch-size", o->batch_sizes,
                 "Sequences per batch; each entry of a list is measured")
      ->type_name("1,8,32");
  app.add_option("--input-len", o->input_len, "Tokens of each prompt, drawn at random")
      ->check(between(int64_t{1}, kLengthMax))
      ->type_name("N");
  app.add_option("--output-len", o->output_len, "Tokens generated per sequence; 1: no decoding")
      ->check(between(int64_t{1}, kLengthMax))
      ->type_name("N");
  app.add_option("--context-fill", o->context_fill,
                 "Tokens before each prompt, the same for all, with random states that are not "
                 "computed: shows the speed after a long context")
      ->check(between(int64_t{0}, kLengthMax))
      ->type_name("N");
  app.add_option("--repeat", o->repeat, "Runs of each batch size; the median is reported")
      ->check(between(1, 1000))
      ->type_name("N");
  app.add_option("--seed", o->seed, "Random seed of the prompts")
      ->check(check_seed)
      ->type_name("S");
  app.add_flag("--no-limits", o->no_limits,
               "Do not measure the machine's limits (saves a second) or print fractions of them");
  app.add_flag("--json", o->json, "Print one JSON object: machine, limits, model, results");
  app.add_flag("--expert-counts", o->config.expert_counts,
               "With --json: how often each expert of each layer was chosen in all runs");
  add_model_options(app, o->config, {.generates = false});
  add_adapter_options(app, o->config, o->adapters);
  o->config.running_max = 1;
  return [o] { return bench(*o); };
}

}  // namespace

const Verb kBenchOneBatchVerb = {
    "bench one-batch", "Speed of one batch: prefill and decode tokens/s",
    "  banyan bench one-batch models/Qwen3-0.6B --batch-size 1,8,32\n"
    "  banyan bench one-batch folder-with-config.json --load-format dummy --json\n"
    "\n"
    "Prefill is timed from submission until every sequence has its first token, decode over the\n"
    "steps after that. What a token costs follows from the model's shapes: bytes are the weights\n"
    "that a step reads, once for all its sequences, and the states; operations are the products\n"
    "with weights and of attention. The limit is the time that these bytes or these products,\n"
    "whichever take longer, would need at what `bench machine` measures; in the table and in\n"
    "prefill_fraction and decode_fraction it stands as a part of the time they took: more than 1\n"
    "for a model that the caches hold. With --lora-paths, the sequences of a batch have those\n"
    "adapters in turn, whose bytes and operations are not counted. Of two or more batch sizes,\n"
    "\"step_times\" in the JSON is what a step, a row of a prompt and a row of decoding take,\n"
    "fitted to all runs: a file for `serve --emulate-steps` and `bench fleet --step-times`.\n",
    declare_bench_one_batch};

}  // namespace banyan::cli
