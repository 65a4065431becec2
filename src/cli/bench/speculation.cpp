// banyan bench speculation: the speedup by drafts on recorded texts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>

#include "base/divide.h"
#include "base/error.h"
#include "base/file.h"
#include "base/signed.h"
#include "cli/bench/recorded_text.h"
#include "cli/bench/speculation_report.h"
#include "cli/bench/speculation_run.h"
#include "cli/format.h"
#include "cli/machine.h"
#include "cli/model_source.h"
#include "cli/options/checks.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "engine/assemble.h"

namespace banyan::cli {
namespace {

constexpr int kSequencesMax = 1024;

struct BenchSpeculationOptions {
  EngineConfig config;
  std::vector<std::string> texts;
  int sequences = 1;
  int pairs = 1;
  int64_t new_tokens_max = 256;
  int limit = 0;
  std::optional<double> acceptance;
  std::string log_path;  // of draft tokens; empty: none
  bool explain = false;
  bool json = false;
};

Result<std::vector<RecordedText>> read_texts(const BenchSpeculationOptions& o) {
  std::vector<RecordedText> all;
  auto add = [&](std::string_view text, const std::string& source) -> Status {
    std::vector<RecordedText> some = TRY(parse_recorded_texts(text, source));
    if (o.limit > 0 && std::ssize(some) > o.limit) some.resize(as_size(o.limit));
    std::ranges::move(some, std::back_inserter(all));
    return {};
  };
  for (const std::string& file : o.texts) TRY(add(TRY(read_file(file)), file));
  if (!o.texts.empty()) return all;
  for (std::string_view text : embedded_texts()) TRY(add(text, "bench/texts"));
  return all;
}

// The texts of each run: one alone, or those of all sequences, which take the texts in turn.
std::vector<std::vector<const RecordedText*>> batches(const std::vector<RecordedText>& texts,
                                                      int sequences) {
  std::vector<std::vector<const RecordedText*>> all;
  if (sequences == 1) {
    for (const RecordedText& text : texts) all.push_back({&text});
    return all;
  }
  all.resize(1);
  for (int i = 0; i < sequences; ++i) {
    all[0].push_back(&texts[i % texts.size()]);
  }
  return all;
}

// Chooses sizes that fit the texts.
Status choose_sizes(const BenchSpeculationOptions& o, const std::vector<RecordedText>& texts,
                    EngineConfig& config) {
  auto llm = TRY(Llm::load_without_engine(config));
  int64_t page = config.page_size_tokens, longest = 0;
  for (const RecordedText& text : texts) {
    longest = std::max(longest, TRY(tokens_of(*llm, text, o.new_tokens_max)));
  }
  // One page for what is drafted, and one for what is cached.
  int64_t tokens = (divide_up(longest, page) + 2) * page;
  config.running_max = std::max(config.running_max, o.sequences);
  config.queued_max = std::max(config.queued_max, o.sequences);
  config.total_tokens_max = std::max(config.total_tokens_max, tokens * o.sequences);
  return {};
}

Result<std::unique_ptr<Llm>> load(const BenchSpeculationOptions& o, const EngineConfig& config) {
  if (config.drafters.empty() && config.draft_model_path.empty()) {
    return invalid_argument(
        "nothing drafts: give --speculative-algorithm NGRAM, SUFFIX or others; `banyan bench "
        "speculation --help` has examples");
  }
  bool texts_alone = std::ranges::all_of(
      config.drafters, [](const std::string& name) { return name == "ngram" || name == "suffix"; });
  if (o.acceptance && texts_alone && config.draft_model_path.empty()) {
    return invalid_argument(
        "--emulate-acceptance replaces what a model drafts, and none does: add NEXTN, or give "
        "--speculative-draft-model-path");
  }
  std::unique_ptr<Llm> llm = TRY(load_llm(config));
  if (!llm->has_tokenizer()) {
    return invalid_argument("{} has no tokenizer files to encode the texts with",
                            config.model_path);
  }
  if (o.acceptance) EngineAssembly::emulate_acceptance(llm->engine(), *o.acceptance);
  return llm;
}

// Writes a line of JSON for each token of a drafter that is verified.
Status log_drafts(const std::string& path, Engine& engine, std::ofstream& log) {
  if (path.empty()) return {};
  log.open(path);
  if (!log) return io_error("--draft-log {} cannot be written", path);
  EngineAssembly::observe_drafts(
      engine, [&log](std::string_view drafter, const DraftToken& token, bool accepted) {
        log << dump_json({{"drafter", drafter},
                          {"position", token.position},
                          {"confidence", token.confidence},
                          {"joint", token.joint},
                          {"accepted", accepted}})
            << "\n";
      });
  return {};
}

Result<std::vector<SpeculationResult>> measure(const BenchSpeculationOptions& o, Llm& llm,
                                               const std::vector<RecordedText>& texts) {
  ProgressLine progress("bench");
  SpeculationSetting setting{.new_tokens_max = o.new_tokens_max,
                             .fill_prompts = llm.config().load_format == "dummy"};
  auto runs = batches(texts, o.sequences);
  std::vector<SpeculationResult> results(runs.size());
  progress.show("warming up");
  TRY(run_texts(llm, runs[0], true, setting));
  for (int pair = 0; pair < o.pairs; ++pair) {
    for (size_t i = 0; i < runs.size(); ++i) {
      SpeculationResult& result = results[i];
      result.name = o.sequences == 1 ? runs[i][0]->name : fmt::format("{} texts", o.sequences);
      progress.show(fmt::format("{}, pair {} of {}", result.name, pair + 1, o.pairs));
      for (bool drafts : {pair % 2 != 0, pair % 2 == 0}) {
        SpeculationRun run = TRY(run_texts(llm, runs[i], drafts, setting));
        (drafts ? result.drafted : result.plain).push_back(std::move(run));
      }
      if (result.plain.back().outputs != result.drafted.back().outputs) {
        return corrupt("{}: drafts changed the output; this is a bug", result.name);
      }
    }
  }
  return results;
}

Result<int> bench(const BenchSpeculationOptions& o) {
  std::vector<RecordedText> texts = TRY(read_texts(o));
  bool recorded =
      std::ranges::all_of(texts, [](const RecordedText& text) { return text.answer.has_value(); });
  if (o.acceptance && !recorded) {
    return invalid_argument(
        "--emulate-acceptance needs the answers of all texts: each must end with a message of the "
        "assistant");
  }
  EngineConfig config = o.config;
  config.model_path = TRY(locate_model(o.config.model_path));
  if (!o.log_path.empty()) config.measure_drafts = false;  // else there would be few to log
  TRY(choose_sizes(o, texts, config));
  std::ofstream log;
  std::unique_ptr<Llm> llm = TRY(load(o, config));
  TRY(log_drafts(o.log_path, llm->engine(), log));
  std::vector<SpeculationResult> results = TRY(measure(o, *llm, texts));
  if (!o.log_path.empty() && !log.flush()) {
    return io_error("--draft-log {} could not be written to its end", o.log_path);
  }
  if (o.json) {
    Json json = speculation_json(results);
    json["machine"] = describe_machine(llm->info());
    json["pairs"] = o.pairs;
    fmt::print("{}\n", dump_json(json));
    return kExitSuccess;
  }
  write_stdout(speculation_table(results));
  if (o.explain) write_stdout(explanation_table(results));
  return kExitSuccess;
}

VerbAction declare_bench_speculation(CLI::App& app) {
  auto o = std::make_shared<BenchSpeculationOptions>();
  app.add_option("--text", o->texts,
                 "File of conversations, one JSON object or one a line; may be repeated. Without "
                 "it, the six in bench/texts")
      ->default_str("")
      ->type_name("FILE");
  app.add_option("--limit", o->limit, "Only so many conversations of each file; 0: all")
      ->check(between(0, 1 << 20))
      ->type_name("N");
  app.add_option("--batch-size", o->sequences,
                 "Sequences at once; with more than one, each takes the next text")
      ->check(between(1, kSequencesMax))
      ->type_name("N");
  app.add_option("--pairs", o->pairs, "Pairs of runs, with and without drafts in turn")
      ->check(between(1, 1000))
      ->type_name("N");
  app.add_option("--max-tokens", o->new_tokens_max, "Of answers that the model writes itself")
      ->check(between(int64_t{1}, int64_t{1} << 20))
      ->type_name("N");
  app.add_option("--emulate-acceptance", o->acceptance,
                 "Replace what a drafter with a model proposes: this share of its tokens is right")
      ->check(between(0.0, 1.0))
      ->type_name("F");
  app.add_option("--draft-log", o->log_path,
                 "Write each verified draft token and the inputs of a filter as JSON lines, for "
                 "tools/train_draft_filter.py; tokens are verified whether that pays or not")
      ->default_str("")
      ->type_name("FILE");
  app.add_flag("--explain", o->explain,
               "Also print the speed-up that step times and acceptance predict");
  app.add_flag("--json", o->json, "Print one JSON object");
  add_model_options(app, o->config);
  o->config.running_max = 1;
  return [o] { return bench(*o); };
}

}  // namespace

const Verb kBenchSpeculationVerb = {
    "bench speculation", "What drafts gain, on conversations whose answers are known",
    "  banyan bench speculation MODEL --speculative-algorithm SUFFIX --pairs 3\n"
    "  banyan bench speculation MODEL --speculative-algorithm NEXTN --emulate-acceptance 0.8\n"
    "  banyan bench speculation MODEL --speculative-algorithm SUFFIX,NEXTN --explain\n"
    "  banyan bench speculation MODEL --speculative-algorithm NEXTN --draft-log drafts.jsonl\n"
    "\n"
    "Answers each conversation with and without drafts in turn. If its last message is the\n"
    "assistant's, the model computes as ever, but these tokens are drawn in place of its own,\n"
    "which drafters do not see: so models with random weights (--load-format dummy) can be\n"
    "measured. Their prompts are not computed where states can be made up. Only steps after the\n"
    "first token count. \"kept\" is the share of verified draft tokens that were accepted.\n"
    "--emulate-acceptance lets a head with random weights run in full, and then makes each token\n"
    "that it proposes the right one with this probability.\n"
    "--explain shows step times by draft tokens, and the speed-up by the cost model of the\n"
    "LongCat-Flash report: E(k) / (k draft + verify(k)), in steps without drafts, where\n"
    "E(k) = 1 + a + ... + a^k for an acceptance of a.\n",
    declare_bench_speculation};

}  // namespace banyan::cli
