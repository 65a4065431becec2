// banyan bench one-batch: how fast one batch of equal requests runs, alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/quote.h"
#include "cli/batch_run.h"
#include "cli/format.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace banyan::cli {
namespace {

constexpr int kBatchSizeMax = 1024;
constexpr int64_t kLengthMax = 1 << 20;

struct Options {
  EngineConfig config;
  std::string batch_sizes = "1";
  int64_t input_len = 512;
  int64_t output_len = 64;
  int repeat = 1;
  uint64_t seed = 0;
  bool json = false;
};

struct Measurement {
  BatchShape shape;
  double prefill_tokens_per_s = 0, prefill_flops_per_s = 0;
  // Not there when output_len is 1.
  std::optional<double> decode_tokens_per_s, decode_flops_per_s, decode_bytes_per_s;
};

Result<std::vector<BatchShape>> read_shapes(const Options& o) {
  std::vector<BatchShape> shapes;
  for (TokenId size : TRY(parse_numbers(o.batch_sizes, "--batch-size"))) {
    if (size < 1 || size > kBatchSizeMax) {
      return invalid_argument("--batch-size {} is not within 1 to {}", size, kBatchSizeMax);
    }
    shapes.push_back({size, o.input_len, o.output_len});
  }
  return shapes;
}

// Loads an engine with room for the largest of `shapes`; sets the sizes in `config`.
Result<std::unique_ptr<Engine>> load_engine(EngineConfig& config, const Options& o,
                                            const std::vector<BatchShape>& shapes) {
  config.total_tokens_max = config.page_size_tokens;  // only the model's own limits matter here
  EngineInfo info = TRY(inspect_model(config));
  if (o.input_len + o.output_len > info.context_length_tokens) {
    return invalid_argument("--input-len {} and --output-len {} exceed the context length of {}",
                            o.input_len, o.output_len, info.context_length_tokens);
  }
  for (const BatchShape& shape : shapes) {
    config.running_max = std::max(config.running_max, shape.batch_size);
    config.queued_max = std::max(config.queued_max, shape.batch_size);
    config.total_tokens_max =
        std::max(config.total_tokens_max, batch_tokens(shape, config, info.context_length_tokens));
  }
  config.radix_cache = false;  // every run computes its prompts
  ProgressLine progress("loading");
  return Engine::load(config, progress.load_progress());
}

// Rates of one run. A token costs two flops per weight that it passes through, and attention over
// the tokens before it; only the last prompt token passes through the output head. A decode step
// reads the weights once and every sequence's states.
Measurement rates(const EngineInfo& info, const BatchShape& shape, const BatchTiming& timing) {
  auto batch = static_cast<double>(shape.batch_size);
  auto input = static_cast<double>(shape.input_len);
  auto steps = static_cast<double>(timing.decode_steps);
  auto tokens = static_cast<double>(timing.decode_tokens);
  double per_key = static_cast<double>(info.attention_flops_per_key);
  double head = 2 * static_cast<double>(info.vocabulary) * static_cast<double>(info.hidden);
  double token_flops = 2 * static_cast<double>(info.parameters_active);

  Measurement m{.shape = shape};
  m.prefill_tokens_per_s = batch * input / timing.prefill_s;
  m.prefill_flops_per_s =
      batch * (input * (token_flops - head) + head + per_key * input * (input + 1) / 2) /
      timing.prefill_s;
  if (timing.decode_steps == 0) return m;
  // Over the steps a context grows from input + 1 to input + steps tokens.
  double context = input + (steps + 1) / 2;
  m.decode_tokens_per_s = tokens / timing.decode_s;
  m.decode_flops_per_s = tokens * (token_flops + per_key * context) / timing.decode_s;
  m.decode_bytes_per_s = (steps * static_cast<double>(info.weight_bytes_streamed) +
                          tokens * context * static_cast<double>(info.state_bytes_per_token)) /
                         timing.decode_s;
  return m;
}

// The run in the middle by prefill and the one in the middle by decode.
Measurement median(std::vector<Measurement> runs) {
  auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::ranges::nth_element(runs, middle, {}, &Measurement::decode_tokens_per_s);
  Measurement result = *middle;
  std::ranges::nth_element(runs, middle, {}, &Measurement::prefill_tokens_per_s);
  result.prefill_tokens_per_s = middle->prefill_tokens_per_s;
  result.prefill_flops_per_s = middle->prefill_flops_per_s;
  return result;
}

Result<std::vector<Measurement>> measure(Engine& engine, const EngineConfig& config,
                                         const std::vector<BatchShape>& shapes, const Options& o) {
  ProgressLine progress("bench");
  progress.show("warming up");
  BatchShape warm_up{shapes[0].batch_size, std::min<int64_t>(o.input_len, 32),
                     std::min<int64_t>(o.output_len, 4)};
  TRY(run_batch(engine, config, warm_up, o.seed));
  std::vector<Measurement> results;
  for (const BatchShape& shape : shapes) {
    std::vector<Measurement> runs;
    for (int i = 0; i < o.repeat; ++i) {
      progress.show(fmt::format("batch size {}, run {} of {}", shape.batch_size, i + 1, o.repeat));
      BatchTiming timing = TRY(run_batch(engine, config, shape, o.seed));
      runs.push_back(rates(engine.info(), shape, timing));
    }
    results.push_back(median(std::move(runs)));
  }
  return results;
}

Json optional_json(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const EngineInfo& info, const Options& o, const std::vector<Measurement>& results) {
  Json list = Json::array();
  for (const Measurement& m : results) {
    list.push_back({{"batch_size", m.shape.batch_size},
                    {"input_len", m.shape.input_len},
                    {"output_len", m.shape.output_len},
                    {"prefill_tokens_per_s", m.prefill_tokens_per_s},
                    {"decode_tokens_per_s", optional_json(m.decode_tokens_per_s)},
                    {"prefill_flops_per_s", m.prefill_flops_per_s},
                    {"decode_flops_per_s", optional_json(m.decode_flops_per_s)},
                    {"decode_bytes_per_s", optional_json(m.decode_bytes_per_s)},
                    {"prefill_fraction", nullptr},
                    {"decode_fraction", nullptr}});
  }
  return {{"machine", describe_machine(info)},
          {"model",
           {{"path", o.config.model_path},
            {"family", info.architecture},
            {"load_format", o.config.load_format},
            {"parameters_total", info.parameters_total},
            {"parameters_active", info.parameters_active},
            {"weight_bytes", info.weight_bytes}}},
          {"repeat", o.repeat},
          {"results", std::move(list)}};
}

std::string table(const std::vector<Measurement>& results) {
  auto cell = [](std::optional<double> value, double unit) {
    return value ? fmt::format("{:.1f}", *value / unit) : std::string("-");
  };
  auto row = [](auto&&... cells) {
    return fmt::format("{:>10} {:>9} {:>10} | {:>14} {:>9} | {:>13} {:>8} {:>9}\n", cells...);
  };
  std::string text = row("batch size", "input len", "output len", "prefill tok/s", "GFLOP/s",
                         "decode tok/s", "GB/s", "GFLOP/s");
  for (const Measurement& m : results) {
    text += row(m.shape.batch_size, m.shape.input_len, m.shape.output_len,
                cell(m.prefill_tokens_per_s, 1), cell(m.prefill_flops_per_s, 1e9),
                cell(m.decode_tokens_per_s, 1), cell(m.decode_bytes_per_s, 1e9),
                cell(m.decode_flops_per_s, 1e9));
  }
  return text;
}

Result<int> bench(const Options& o) {
  std::vector<BatchShape> shapes = TRY(read_shapes(o));
  EngineConfig config = o.config;
  std::unique_ptr<Engine> engine = TRY(load_engine(config, o, shapes));
  std::vector<Measurement> results = TRY(measure(*engine, config, shapes, o));
  if (o.json) {
    fmt::print("{}\n", dump_json(to_json(engine->info(), o, results)));
    return kExitSuccess;
  }
  write_stdout(table(results));
  Json machine = describe_machine(engine->info());
  fmt::print(stderr, "{}{}, {} threads, {} kernels{}\n", dim(), machine["cpu"].get<std::string>(),
             engine->info().threads, engine->info().kernels, undim());
  return kExitSuccess;
}

VerbAction declare(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("--batch-size", o->batch_sizes, "Sequences at once; a list is measured in turn")
      ->type_name("1,8,32");
  app.add_option("--input-len", o->input_len, "Tokens of each prompt, drawn at random")
      ->check(CLI::Range(int64_t{1}, kLengthMax))
      ->type_name("N");
  app.add_option("--output-len", o->output_len, "Tokens made for each; 1 leaves out decode")
      ->check(CLI::Range(int64_t{1}, kLengthMax))
      ->type_name("N");
  app.add_option("--repeat", o->repeat, "Runs of each batch size; the median is reported")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  app.add_option("--seed", o->seed, "Draws other prompts")->check(check_seed)->type_name("S");
  app.add_flag("--json", o->json, "Print one JSON object: machine, model, results");
  add_model_options(app, o->config);
  o->config.running_max = 1;
  return [o] { return bench(*o); };
}

}  // namespace

const Verb kBenchOneBatchVerb = {
    "bench one-batch", "Speed of one batch: prefill and decode tokens/s",
    "  banyan bench one-batch --model models/Qwen3-0.6B --batch-size 1,8,32\n"
    "  banyan bench one-batch --model folder-with-config.json --load-format dummy --json\n"
    "\n"
    "Prefill is timed from submission until every sequence has its first token, decode over the\n"
    "steps after that. GB/s counts the weights and states that decode reads. prefill_fraction and\n"
    "decode_fraction in the JSON are parts of the machine's own limit; they are null until that\n"
    "has been measured.\n",
    declare};

}  // namespace banyan::cli
