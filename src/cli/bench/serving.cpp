// banyan bench serving: load-tests a server, ours or another.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <boost/asio/io_context.hpp>
#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/quote.h"
#include "base/signed.h"
#include "cli/format.h"
#include "cli/machine.h"
#include "cli/options/checks.h"
#include "cli/options/options.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "client/bench.h"
#include "client/bench_report.h"
#include "client/dataset.h"
#include "client/serving_api.h"

namespace banyan::cli {
namespace {

constexpr int64_t kPromptsMax = 10'000'000;
constexpr int64_t kTokensMax = 1 << 24;
constexpr size_t kFailuresShown = 3;

struct Backend {
  const char* name;
  ServingApi api;
};

// Includes the names of bench_serving.
constexpr std::array<Backend, 8> kBackends = {{
    {"sglang", ServingApi::kSglang},
    {"sglang-oai", ServingApi::kCompletions},
    {"openai-completions", ServingApi::kCompletions},
    {"vllm", ServingApi::kCompletions},
    {"llama-server", ServingApi::kCompletions},
    {"openai-chat", ServingApi::kChat},
    {"sglang-oai-chat", ServingApi::kChat},
    {"vllm-chat", ServingApi::kChat},
}};

struct BenchServingOptions {
  std::string base_url = "http://127.0.0.1:30000";
  std::string backend = "sglang";
  std::vector<std::string> dataset = {"random"};
  std::string dataset_path;
  std::string model, api_key, extra_body, output_file;
  std::vector<std::string> goodput;  // "ttft:200"
  int64_t prompts = 1000;
  RandomShape random;
  GroupedShape grouped;
  double request_rate = std::numeric_limits<double>::infinity();
  bool rate_given = false;
  int64_t concurrency_max = 0;
  int64_t vocabulary = 0;
  int64_t warmup_requests = 1;
  double timeout_s = 6 * 3600;
  uint64_t seed = 1;
  bool flush_cache = false, disable_ignore_eos = false, json = false;
};

ServingApi api_of(const std::string& name) {
  for (const Backend& backend : kBackends) {
    if (name == backend.name) return backend.api;
  }
  return ServingApi::kSglang;  // the option accepts no other names
}

Result<std::string> dataset_file(const BenchServingOptions& o) {
  std::string path = o.dataset.size() > 1 ? o.dataset[1] : o.dataset_path;
  if (path.empty()) {
    return invalid_argument("--dataset {} needs a file: --dataset {} FILE", o.dataset[0],
                            o.dataset[0]);
  }
  return path;
}

Result<Dataset> make_dataset(const BenchServingOptions& o) {
  const std::string& name = o.dataset[0];
  bool from_file = name == "mooncake" || name == "mt-bench";
  if (o.dataset.size() > 1 && !from_file) {
    return invalid_argument("--dataset {} takes no file; remove {}", name, quote(o.dataset[1]));
  }
  auto prompts_max = as_size(o.prompts);
  if (name == "random" || name == "random-ids") {
    RandomShape shape = o.random;
    shape.prompts = o.prompts;
    return random_dataset(shape, o.seed);
  }
  if (name == "generated-shared-prefix") {
    if (o.grouped.groups * o.grouped.prompts_per_group > kPromptsMax) {
      return invalid_argument("--gsp-num-groups {} times --gsp-prompts-per-group {} exceeds {}",
                              o.grouped.groups, o.grouped.prompts_per_group, kPromptsMax);
    }
    return shared_prefix_dataset(o.grouped, o.seed);
  }
  if (name == "mooncake") return read_mooncake(TRY(dataset_file(o)), prompts_max, o.seed);
  if (name == "mt-bench") {
    return read_conversations(TRY(dataset_file(o)), prompts_max, o.random.output_len);
  }
  return invalid_argument(
      "--dataset {} is not one of random, generated-shared-prefix, mooncake FILE, mt-bench FILE",
      quote(name));
}

Result<ServerUrl> parse_base_url(const std::string& url) {
  Result<ServerUrl> parsed = parse_server_url(url);
  if (!parsed) return invalid_argument("--base-url {}", parsed.error().message);
  return parsed;
}

HttpClient::Headers headers_of(const BenchServingOptions& o) {
  HttpClient::Headers headers = {{"User-Agent", fmt::format("banyan/{}", BANYAN_VERSION)}};
  if (!o.api_key.empty()) headers.emplace_back("Authorization", "Bearer " + o.api_key);
  return headers;
}

Status check(const BenchServingOptions& o) {
  if (o.api_key.find_first_of("\r\n") != o.api_key.npos) {
    return invalid_argument("--api-key has a line break in it");
  }
  if (std::isnan(o.request_rate) || o.request_rate <= 0) {
    return invalid_argument("--request-rate {} is not above 0", o.request_rate);
  }
  TRY(read_goodput(o.goodput));
  return {};
}

Result<Json> extra_of(const BenchServingOptions& o) {
  if (o.extra_body.empty()) return Json::object();
  Json extra = TRY(parse_json(o.extra_body, "--extra-request-body"));
  if (!extra.is_object()) return invalid_argument("--extra-request-body is not a JSON object");
  return extra;
}

Result<RequestStyle> style_of(const BenchServingOptions& o, const ServerFacts& facts) {
  RequestStyle style{.api = api_of(o.backend),
                     .model = o.model.empty() ? facts.model : o.model,
                     .vocabulary = o.vocabulary > 0 ? o.vocabulary : facts.vocabulary,
                     .ignore_eos = !o.disable_ignore_eos,
                     .extra = TRY(extra_of(o))};
  bool sends_ids = style.api != ServingApi::kChat && o.dataset[0] != "mt-bench";
  if (sends_ids && style.vocabulary < 1) {
    return invalid_argument(
        "the server does not say how many tokens its vocabulary has; give --vocab-size");
  }
  return style;
}

// Sends a few requests before the measurement, which excludes connection set-up and the server's
// first steps. At least one must succeed.
Status warm_up(boost::asio::io_context& io, HttpClient& client, const BenchServingOptions& o,
               const Dataset& dataset, BenchOptions load) {
  if (o.warmup_requests == 0) return {};
  Dataset first{.seed = dataset.seed};
  first.prompts.assign(as_size(o.warmup_requests), dataset.prompts.front());
  load.requests_per_s = std::numeric_limits<double>::infinity();
  BenchResult result = run_bench(io, client, first, load, {}, InterruptScope::raised);
  for (const RequestRecord& record : result.records) {
    if (record.ok) return {};
  }
  if (result.interrupted) return make_error(ErrorCode::kCancelled, "interrupted");
  return io_error("the warm-up request failed: {}", result.records.front().error);
}

Status flush_cache(HttpClient& client) {
  HttpClient::Answer answer = TRY(client.fetch({.path = "/flush_cache"}));
  if (answer.status == 200) return {};
  return unsupported("--flush-cache: the server answers {} to /flush_cache: {}", answer.status,
                     error_message(answer.body));
}

void show_progress(ProgressLine& line, const BenchProgress& p) {
  std::string state = fmt::format("{} of {} requests", p.done, p.total);
  if (p.seconds > 0) {
    auto tokens_per_s = static_cast<double>(p.output_tokens) / p.seconds;
    state += fmt::format("  {} tokens/s", format_count(std::llround(tokens_per_s)));
  }
  if (p.done > 0) {
    double left_s = p.seconds * (p.total - p.done) / p.done;
    state += fmt::format("  {:.0f} s left", left_s);
  }
  line.show(state);
}

void warn_of_failures(const BenchResult& result) {
  if (result.failures.empty()) return;
  fmt::print(stderr, "banyan: requests failed:\n");
  for (const auto& [reason, count] : result.failures) {
    fmt::print(stderr, "  {} x {}\n", count, reason);
  }
  size_t shown = 0;
  fmt::print(stderr, "The first of them:\n");
  for (const RequestRecord& record : result.records) {
    if (record.ok) continue;
    fmt::print(stderr, "  {}\n", printable(record.error));
    if (++shown == kFailuresShown) break;
  }
}

Status append_line(const std::string& path, const std::string& line) {
  std::ofstream file(path, std::ios::app);
  file << line << "\n";
  file.flush();
  if (!file) return io_error("--output-file {} cannot be written", path);
  return {};
}

Result<int> report(const BenchServingOptions& o, const ServerFacts& facts, const BenchOptions& load,
                   const BenchResult& result) {
  BenchSetting setting{.backend = o.backend,
                       .dataset = o.dataset[0],
                       .base_url = o.base_url,
                       .model = load.style.model,
                       .requests_per_s = load.requests_per_s,
                       .concurrency_max = o.concurrency_max};
  BenchReport figures = report_of(result, TRY(read_goodput(o.goodput)));
  figures.accept_length = facts.accept_length;
  Json json = json_of(figures, setting, result);
  json["server_info"] = facts.server_info;
  warn_of_failures(result);
  write_stdout(o.json ? dump_json(json) + "\n" : table_of(figures, setting));
  if (!o.output_file.empty()) TRY(append_line(o.output_file, dump_json(json)));
  if (result.interrupted) return kExitInterrupt;
  return figures.completed > 0 ? kExitSuccess : kExitFailure;
}

Result<int> bench(const BenchServingOptions& o) {
  TRY(check(o));
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  Dataset dataset = TRY(make_dataset(o));
  boost::asio::io_context io(1);
  HttpClient client(io, TRY(parse_base_url(o.base_url)), headers_of(o));
  TRY(client.resolve());
  ServerFacts facts = TRY(ask_server(client, o.base_url));
  size_t all = dataset.prompts.size();
  size_t dropped = facts.context_tokens > 0 ? dataset.drop_longer_than(facts.context_tokens) : 0;
  if (dropped == all) {
    return invalid_argument("all {} prompts with their output exceed the server's context of {}",
                            all, facts.context_tokens);
  }
  if (dropped > 0) {
    fmt::print(stderr,
               "banyan: {} of {} prompts are left out: with their output they exceed the server's "
               "context of {}\n",
               dropped, all, facts.context_tokens);
  }
  bool by_trace = dataset.timed && !o.rate_given;
  BenchOptions load{.style = TRY(style_of(o, facts)),
                    .requests_per_s = by_trace ? 0 : o.request_rate,
                    .concurrency_max = o.concurrency_max,
                    .timeout_s = o.timeout_s,
                    .seed = o.seed};
  InterruptScope interrupt(InterruptScope::Second::kEndsProgram);
  TRY(warm_up(io, client, o, dataset, load));
  if (o.flush_cache) TRY(flush_cache(client));
  BenchResult result;
  {
    ProgressLine line("bench");
    result = run_bench(
        io, client, dataset, load, [&](const BenchProgress& p) { show_progress(line, p); },
        InterruptScope::raised);
  }
  return report(o, facts, load, result);
}

void add_server_options(CLI::App& app, BenchServingOptions& o) {
  std::vector<std::string> names;
  for (const Backend& backend : kBackends) names.push_back(backend.name);
  app.add_option("--base-url", o.base_url, "URL of the server")->type_name("URL");
  app.add_option("--backend", o.backend,
                 "Its API: sglang is /generate; openai-completions, openai-chat")
      ->transform(one_of(names))
      ->type_name("NAME");
  app.add_option("--model,--served-model-name", o.model,
                 "Name of the model in requests [the server's first]")
      ->default_str("")
      ->type_name("NAME");
  app.add_option("--api-key", o.api_key, "Key to send")
      ->envname("OPENAI_API_KEY")
      ->default_str("")
      ->type_name("KEY");
  app.add_option("--extra-request-body", o.extra_body, "JSON object merged into every request")
      ->default_str("")
      ->type_name("JSON");
  app.add_option("--vocab-size", o.vocabulary,
                 "Token ids to draw from; 0: the size that the server reports")
      ->check(between(int64_t{0}, int64_t{1} << 30))
      ->type_name("N");
  app.add_flag("--flush-cache", o.flush_cache, "Flush the server's prefix cache first");
  app.add_flag("--disable-ignore-eos", o.disable_ignore_eos,
               "Let the model end its answers (do not send ignore_eos)");
}

void add_dataset_options(CLI::App& app, BenchServingOptions& o) {
  auto length = [&](const char* name, int64_t& value, const char* what) {
    app.add_option(name, value, what)->check(between(int64_t{1}, kTokensMax))->type_name("N");
  };
  app.add_option("--dataset,--dataset-name", o.dataset,
                 "random, generated-shared-prefix, mooncake FILE, mt-bench FILE")
      ->expected(1, 2)
      ->default_str("random")
      ->type_name("NAME");
  app.add_option("--dataset-path", o.dataset_path,
                 "The dataset's file, if --dataset does not name it")
      ->default_str("")
      ->type_name("FILE");
  app.add_option("--num-prompts", o.prompts, "Requests; of mt-bench, conversations")
      ->check(between(int64_t{1}, kPromptsMax))
      ->type_name("N");
  length("--random-input-len,--random-input", o.random.input_len, "Tokens of each random prompt");
  length("--random-output-len,--random-output", o.random.output_len,
         "Tokens generated per random prompt, and per turn of mt-bench");
  app.add_option(
         "--random-range-ratio", o.random.range_ratio,
         "Lengths are uniform from this fraction of the length to the full length; 1: fixed")
      ->check(between(0.0, 1.0))
      ->type_name("F");
  length("--gsp-num-groups", o.grouped.groups, "generated-shared-prefix: groups");
  length("--gsp-prompts-per-group", o.grouped.prompts_per_group, "Prompts per shared prefix");
  length("--gsp-system-prompt-len", o.grouped.system_prompt_len, "Tokens of the shared prefix");
  length("--gsp-question-len", o.grouped.question_len, "Tokens after the prefix");
  length("--gsp-output-len", o.grouped.output_len, "Tokens generated per prompt");
  app.add_option("--seed", o.seed, "Random seed of the prompts and arrival times")
      ->check(check_seed)
      ->type_name("S");
}

void add_load_options(CLI::App& app, BenchServingOptions& o) {
  app.add_option_function<double>(
         "--request-rate",
         [&o](double rate) {
           o.request_rate = rate;
           o.rate_given = true;
         },
         "Requests per second, with random arrivals; inf: all at once [inf; mooncake: as recorded]")
      ->type_name("F");
  app.add_option("--max-concurrency", o.concurrency_max, "Maximum requests in flight; 0: no limit")
      ->check(between(int64_t{0}, kPromptsMax))
      ->type_name("N");
  app.add_option("--warmup-requests", o.warmup_requests, "Requests before the measurement")
      ->check(between(int64_t{0}, int64_t{10'000}))
      ->type_name("N");
  app.add_option("--timeout", o.timeout_s, "Seconds before a request fails")
      ->check(between(0.001, 1e9))
      ->type_name("S");
  app.add_option("--goodput", o.goodput,
                 "Also report the rate of requests within these limits in milliseconds: ttft "
                 "(first token), tpot (mean of further tokens), e2el (whole request)")
      ->expected(1, 3)
      ->default_str("")
      ->type_name("NAME:MS");
  app.add_option("--output-file", o.output_file, "Append the figures to it as a line of JSON")
      ->default_str("")
      ->type_name("FILE");
  app.add_flag("--json", o.json, "Print that line instead of the table");
}

VerbAction declare_bench_serving(CLI::App& app) {
  auto o = std::make_shared<BenchServingOptions>();
  add_server_options(app, *o);
  add_dataset_options(app, *o);
  add_load_options(app, *o);
  return [o] { return bench(*o); };
}

}  // namespace

const Verb kBenchServingVerb = {
    "bench serving", "Load on a server: throughput, latencies, cache hits",
    "  banyan bench serving --num-prompts 200 --random-input-len 256 --random-output-len 128\n"
    "  banyan bench serving --dataset generated-shared-prefix --max-concurrency 32 --flush-cache\n"
    "  banyan bench serving --dataset mooncake conversation_trace.jsonl --num-prompts 500\n"
    "  banyan bench serving --backend openai-chat --base-url http://127.0.0.1:8000 "
    "--request-rate 4\n"
    "  banyan bench serving --request-rate 8 --goodput ttft:500 tpot:50\n"
    "\n"
    "Prompts are random token ids below the server's vocabulary size, so no tokenizer is needed;\n"
    "openai-chat gets as many words instead. Options and figures have the names of SGLang's\n"
    "bench_serving. Ctrl-C ends the load and prints what there is.\n",
    declare_bench_serving};

}  // namespace banyan::cli
