// banyan eval: the accuracy of a model on the questions of a data set.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/signed.h"
#include "cli/eval/run.h"
#include "cli/format.h"
#include "cli/machine.h"
#include "cli/options/checks.h"
#include "cli/options/engine_options.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/options/peer_options.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"

namespace banyan::cli {
namespace {

struct EvalOptions {
  std::string task, data, shots_file, out;
  EngineOptions engine;
  SamplingOptions sampling;
  int64_t shots = 4;
  int64_t max_tokens = 2000;
  int64_t limit = 0;
  bool chat = false;
  std::string base_url, api_key;
  double timeout_s = 3600;
  std::vector<CLI::Option*> engine_only;  // without meaning for a server
  CLI::Option* timeout = nullptr;         // without meaning for an engine

  const EngineConfig& config() const { return engine.config; }
};

Result<EvalSource> read_source(const EvalTask& task, const EvalOptions& o) {
  EvalSource source{.data = TRY(read_file(o.data)), .data_name = o.data};
  if (o.shots == 0) return source;
  source.shots_name = o.shots_file;
  if (source.shots_name.empty()) {
    source.shots_name = (std::filesystem::path(o.data).parent_path() / task.shots_file).string();
    if (!file_exists(source.shots_name)) return source;
  }
  source.shots = TRY(read_file(source.shots_name));
  return source;
}

void say_shots(const EvalOptions& o, const EvalSource& source, const EvalSet& set) {
  std::string about;
  if (set.shots > 0 && set.shots_own) {
    about = fmt::format("examples: the first {} of each group of {}, which are not asked",
                        set.shots, o.data);
  } else if (set.shots > 0) {
    about = fmt::format("examples: the first {} of {}", set.shots, source.shots_name);
  } else if (o.shots > 0) {
    about = "the data's prompts are complete; no examples are added";
  }
  if (!about.empty()) fmt::print(stderr, "{}{}{}\n", dim(), about, undim());
}

Json sampling_json(const TextRequest& request) {
  const SamplingParams& p = request.sampling;
  Json json = {{"temperature", p.temperature}};
  if (p.temperature > 0) {
    json["seed"] = p.seed;
    json["top_p"] = p.top_p;
    json["top_k"] = p.top_k;
    json["min_p"] = p.min_p;
    if (p.typical_p != 1) json["typical_p"] = p.typical_p;
    if (p.xtc_probability > 0) json["xtc"] = {p.xtc_probability, p.xtc_threshold};
  }
  if (p.has_penalties()) {
    json["penalties"] = {p.frequency_penalty, p.presence_penalty, p.repetition_penalty};
    if (p.repeat_last_n != -1) json["repeat_last_n"] = p.repeat_last_n;
  }
  if (p.has_dry()) {
    json["dry"] = {p.dry_multiplier, p.dry_base, p.dry_allowed_length, p.dry_penalty_last_n};
    if (p.dry_sequence_breakers) json["dry_sequence_breakers"] = *p.dry_sequence_breakers;
  }
  const GenerationOptions& options = request.options;
  json["stop"] = options.stop;
  if (!options.stop_regex.empty()) json["stop_regex"] = options.stop_regex;
  if (!options.stop_token_ids.empty()) json["stop_token_ids"] = options.stop_token_ids;
  if (options.ignore_eos) json["ignore_eos"] = true;
  return json;
}

// The settings that two runs must share to be the same; stored in the predictions.
Json describe_run(const EvalOptions& o, const EvalSet& set, const EvalStyle& style,
                  const std::string& model) {
  Json run = {{"task", o.task},
              {"num_shots", set.shots},
              {"data", fmt::format("{:016x}", set.fingerprint)},
              {"max_tokens", o.max_tokens},
              {"chat", o.chat},
              {"model", model}};
  if (o.base_url.empty()) {
    run["gguf"] = o.config().gguf_path;
    run["dtype"] = o.config().dtype;
    run["quantization"] = o.config().quantization;
    run["quantization_overrides"] = o.config().quantization_overrides;
  } else {
    run["base_url"] = o.base_url;
  }
  run["sampling"] = sampling_json(style.request);
  return run;
}

Result<EvalStyle> make_style(const EvalTask& task, const EvalOptions& o) {
  EvalStyle style{.request = {}, .chat = o.chat, .parallel = o.config().running_max};
  style.request.sampling = TRY(sampling_params(o.sampling, {.temperature = 0}));
  style.request.options = TRY(generation_options(o.sampling));
  if (!o.chat) style.request.options.stop.push_back(task.stop);
  style.request.options.max_new_tokens = o.max_tokens;
  return style;
}

Status check(const EvalOptions& o) {
  if (o.base_url.empty()) {
    if (o.config().model_path.empty()) {
      return invalid_argument("give --model DIR, or --base-url URL of a server");
    }
    if (o.timeout->count() > 0) return invalid_argument("--timeout needs --base-url");
    return {};
  }
  for (CLI::Option* option : o.engine_only) {
    if (option->count() == 0) continue;
    return invalid_argument("{} is for a model that is run here; leave it out with --base-url",
                            option->get_name());
  }
  if (o.config().running_max < 1) {
    return invalid_argument("--parallel {} is less than 1", o.config().running_max);
  }
  if (o.api_key.find_first_of("\r\n") != o.api_key.npos) {
    return invalid_argument("--api-key has a line break in it");
  }
  return {};
}

Result<EvalServer> server_of(const EvalOptions& o) {
  Result<ServerUrl> url = parse_server_url(o.base_url);
  if (!url) return invalid_argument("--base-url {}", url.error().message);
  // Clients of OpenAI's API include the version in the base URL; our paths include it too.
  if (url->prefix.ends_with("/v1")) url->prefix.resize(url->prefix.size() - 3);
  EvalServer server{.url = *std::move(url),
                    .model = o.config().model_path,
                    .api_key = o.api_key,
                    .timeout_s = o.timeout_s};
  if (server.model.empty()) server.model = TRY(served_model(server, o.base_url));
  return server;
}

void warn_of_gaps(const EvalRun& run) {
  if (run.unanswerable() > 0) {
    fmt::print(stderr,
               "banyan: {} questions could not be asked and count as wrong; see \"error\" in "
               "--out\n",
               run.unanswerable());
  }
  for (const auto& [reason, count] : run.failures()) {
    fmt::print(stderr, "banyan: {} questions have no answer: {}\n", count, printable(reason));
  }
}

int report(const EvalRun& run, const std::string& out) {
  warn_of_gaps(run);
  if (run.done() < run.questions()) {
    fmt::print(stderr, "banyan: {} of {} questions are done; the same command goes on from {}\n",
               run.done(), run.questions(), out);
    return InterruptScope::raised() ? kExitInterrupt : kExitFailure;
  }
  double accuracy = static_cast<double>(run.correct()) / run.questions();
  std::string share = fmt::format("{}/{} = {:.4f}", run.correct(), run.questions(), accuracy);
  fmt::print(stderr, "banyan: accuracy: {}\n", share);
  write_stdout(fmt::format("正确率: {}\n", share));
  return kExitSuccess;
}

Result<int> eval(EvalOptions o) {
  TRY(check(o));
  if (o.base_url.empty()) TRY(o.engine.settle());
  const EvalTask& task = *eval_task_named(o.task);  // the option accepts no other names
  EvalStyle style = TRY(make_style(task, o));
  EvalSource source = TRY(read_source(task, o));
  EvalSet set = TRY(make_eval_set(task, source, o.shots));
  auto questions = set.items.size();
  if (o.limit > 0) questions = std::min(questions, as_size(o.limit));
  say_shots(o, source, set);

  bool remote = !o.base_url.empty();
  std::optional<EvalServer> server;
  if (remote) {
    std::signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    server = TRY(server_of(o));
  }
  Json identity = describe_run(o, set, style, remote ? server->model : o.config().model_path);
  PredictionFile file = TRY(PredictionFile::open(o.out, identity, set.items.size()));
  std::unique_ptr<Llm> llm;
  if (!remote) llm = TRY(load_llm(o.config()));
  if (llm && !llm->has_tokenizer()) {
    return invalid_argument("{} has no tokenizer files", o.config().model_path);
  }
  InterruptScope interrupt(InterruptScope::Second::kEndsProgram);
  EvalRun run(task, set, questions, file);
  Status ended = remote ? run_on_server(*server, style, run) : run_in_engine(*llm, style, run);
  run.end();
  TRY(std::move(ended));
  return report(run, o.out);
}

void add_task_options(CLI::App& app, EvalOptions& o) {
  std::vector<std::string> names;
  std::string about = "What is asked:";
  for (const EvalTask& task : eval_tasks()) {
    names.push_back(task.name);
    about += fmt::format("{} {}, {}", names.size() > 1 ? ";" : "", task.name, task.summary);
  }
  app.add_option("TASK", o.task, about)
      ->required()
      ->default_str("")
      ->transform(one_of(names))
      ->type_name("NAME");
  app.add_option("--data", o.data, "The questions, as their authors publish them")
      ->required()
      ->default_str("")
      ->type_name("FILE");
  app.add_option("--out", o.out, "File of predictions as JSON lines; an existing file is resumed")
      ->required()
      ->default_str("")
      ->type_name("FILE");
  app.add_option("--num-shots", o.shots, "Worked examples in front of each question")
      ->check(between(int64_t{0}, int64_t{1000}))
      ->type_name("N");
  app.add_option("--shots", o.shots_file,
                 "File of these examples [the published file next to the data, else the data's "
                 "first questions, which are then not asked]")
      ->default_str("")
      ->type_name("FILE");
  app.add_option("--max-tokens,-n,--max-new-tokens", o.max_tokens, "Maximum tokens per answer")
      ->check(between(int64_t{1}, int64_t{1} << 20))
      ->type_name("N");
  app.add_option("--limit", o.limit, "Ask the first N questions only; 0: all")
      ->check(between(int64_t{0}, int64_t{1} << 30))
      ->type_name("N");
  app.add_flag("--chat", o.chat, "Ask as a user's message, through the model's chat template");
}

void add_server_options(CLI::App& app, EvalOptions& o) {
  app.add_option(
         "--base-url", o.base_url,
         "Ask an OpenAI-compatible server instead; --model is then a name there [its first model]")
      ->default_str("")
      ->type_name("URL");
  app.add_option("--api-key", o.api_key, "Key to send to it")
      ->envname("OPENAI_API_KEY")
      ->default_str("")
      ->type_name("KEY");
  o.timeout = app.add_option("--timeout", o.timeout_s, "Seconds before a request fails")
                  ->check(between(0.001, 1e9))
                  ->type_name("S");
}

VerbAction declare_eval(CLI::App& app) {
  auto o = std::make_shared<EvalOptions>();
  o->engine.config.running_max = 64;
  add_task_options(app, *o);
  add_sampling_options(app, o->sampling, "0: the likeliest token");
  auto before = std::ssize(app.get_options());
  add_model_options(app, o->engine.config, {.word = false});
  add_engine_options(app, o->engine);
  std::vector<CLI::Option*> options = app.get_options();
  for (CLI::Option* option : std::span(options).subspan(as_size(before))) {
    std::string name = option->get_name();
    if (name == "--model" || name == "--log-level" || name == "--max-running-requests") continue;
    o->engine_only.push_back(option);
  }
  add_server_options(app, *o);
  add_peer_options(app);
  return [o] { return eval(*o); };
}

// Converts Python spellings of engine options, "--page_size", to ours.
std::string respell(const std::string& word) {
  std::string spelled = respell_peer_option(word);
  if (!spelled.starts_with("--")) return spelled;
  auto end = spelled.begin() + std::min(spelled.find('='), spelled.size());
  std::replace(spelled.begin(), end, '_', '-');
  return spelled;
}

}  // namespace

const Verb kEvalVerb = {
    "eval", "Accuracy on GSM8K or MMLU-Pro",
    "  banyan eval gsm8k --model models/Ling-3.0-tiny --data gsm8k/test.jsonl --out gsm8k.jsonl\n"
    "  banyan eval mmlu-pro --model models/Qwen3-0.6B --data mmlu_pro_test.jsonl --limit 200 \\\n"
    "      --num-shots 0 --chat --out mmlu.jsonl\n"
    "  banyan eval gsm8k --base-url http://127.0.0.1:30000 --data gsm8k/test.jsonl \\\n"
    "      --parallel 16 --out served.jsonl\n"
    "\n"
    "Answers are greedy unless --temperature says otherwise. GSM8K takes the last number of an\n"
    "answer; MMLU-Pro the letter in \"the answer is (X)\", else after \"answer:\", else the last\n"
    "that stands alone. The same command continues an --out that was cut off; one of another run\n"
    "is refused. A question that cannot be asked, such as one longer than the context, is wrong.\n"
    "The last line is the accuracy, once every question has a prediction; stderr has it in\n"
    "English.\n",
    declare_eval, respell};

}  // namespace banyan::cli
