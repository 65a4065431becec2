// banyan score: the log-probability of every token of a text, given the previous ones.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "base/quote.h"
#include "cli/format.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"
#include "llm/llm_parts.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::cli {
namespace {

struct ScoreOptions {
  EngineConfig config;
  TextSource source;
  std::string adapter;
  AdapterOptions adapters;
  bool no_special_tokens = false;
  bool json = false;
};

using Logprobs = std::vector<std::optional<float>>;

Result<std::vector<TokenId>> token_ids(const ScoreOptions& o, const Llm& llm, TextOrIds source) {
  if (!source.ids.empty()) return std::move(source.ids);
  if (!llm.has_tokenizer()) {
    return invalid_argument("{} has no tokenizer files; give token ids with --ids",
                            o.config.model_path);
  }
  return tokenizer_of(llm)->encode(source.text, {.add_special_tokens = !o.no_special_tokens});
}

void print_table(const Llm& llm, const std::vector<TokenId>& ids, const Logprobs& logprobs) {
  double total = 0;
  std::string lines;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string token = !llm.has_tokenizer() ? "-" : quote(tokenizer_of(llm)->token_bytes(ids[i]));
    std::string logprob = logprobs[i] ? fmt::format("{:.6f}", *logprobs[i]) : "-";
    lines += fmt::format("{}\t{}\t{}\t{}\n", i, ids[i], token, logprob);
    total += logprobs[i].value_or(0);
  }
  write_stdout(lines);
  if (ids.size() < 2) return;
  fmt::print(stderr, "{}total {:.4f}, perplexity {:.4f} over {} tokens{}\n", dim(), total,
             std::exp(-total / (ids.size() - 1)), ids.size() - 1, undim());
}

Result<int> score(const ScoreOptions& o) {
  TextOrIds source =
      TRY(read_source(o.source, o.config.model_path, "--ids 1,2,3, --text TEXT, --file FILE, -"));
  std::unique_ptr<Llm> llm = TRY(load_llm(o.config));
  std::vector<TokenId> ids = TRY(token_ids(o, *llm, std::move(source)));
  if (ids.empty()) return invalid_argument("the text has no tokens; there is nothing to score");
  Logprobs logprobs = TRY(llm->score(ids, o.adapter.empty() ? o.adapters.of_all : o.adapter));
  if (!o.json) {
    print_table(*llm, ids, logprobs);
    return kExitSuccess;
  }
  Json list = Json::array();
  for (std::optional<float> logprob : logprobs) list.push_back(logprob ? Json(*logprob) : Json());
  fmt::print("{}\n", dump_json({{"ids", ids}, {"logprobs", std::move(list)}}));
  return kExitSuccess;
}

VerbAction declare_score(CLI::App& app) {
  auto o = std::make_shared<ScoreOptions>();
  NextWord text{"TEXT", "A text; - reads stdin", &o->source.positional};
  app.add_option("--ids", o->source.ids, "Token ids, scored as they are; - reads stdin")
      ->type_name("1,2,3");
  app.add_option("--text,-p,--prompt", o->source.text, "The same as TEXT")->type_name("TEXT");
  app.add_option("--file,-f", o->source.file, "The text in a file; - reads stdin")
      ->type_name("FILE");
  app.add_flag("--no-special-tokens", o->no_special_tokens,
               "Do not prepend the beginning-of-text token");
  app.add_flag("--json", o->json, "Print one JSON object: ids, logprobs (the first is null)");
  app.add_option("--adapter", o->adapter, "LoRA adapter, one of those of --lora-paths")
      ->default_str("")
      ->type_name("NAME");
  add_model_options(app, o->config, {.next = text, .generates = false});
  add_adapter_options(app, o->config, o->adapters);
  o->config.running_max = 1;
  return [o] { return score(*o); };
}

}  // namespace

const Verb kScoreVerb = {
    "score", "Log-probability of every token of a text",
    "  banyan score models/banyan-nano \"Once upon a time\"\n"
    "  banyan score models/banyan-nano --ids 1,403,407 --json\n"
    "\n"
    "Prints position, id, token and natural log-probability given the tokens before, separated by\n"
    "tabs; total and perplexity go to stderr.\n",
    declare_score};

}  // namespace banyan::cli
