// banyan eval nano: a table of a banyan-nano model's abilities, suite by suite.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "cli/eval/suite.h"
#include "cli/format.h"
#include "cli/options/checks.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"

namespace banyan::cli {
namespace {

struct EvalNanoOptions {
  EngineConfig config;
  std::string data;
  std::vector<std::string> suites;
  int64_t limit = 0;
  int64_t max_tokens = 256;
  bool json = false;
  bool answers = false;
};

using SuiteCases = std::vector<SuiteCase>;
using SuiteAnswers = std::vector<SuiteAnswer>;

double share(const SuiteAnswers& answers, bool SuiteAnswer::* what) {
  return static_cast<double>(std::ranges::count(answers, true, what)) / std::ssize(answers);
}

double bits_per_character(const SuiteCases& cases, const SuiteAnswers& answers) {
  double bits = 0;
  size_t characters = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    bits += answers[i].bits;
    for (char c : cases[i].answer.get<std::string>()) characters += (c & 0xC0) != 0x80;
  }
  return bits / std::max<size_t>(characters, 1);
}

// The share of correct answers for each value of a field of "about".
Json by_field(const SuiteCases& cases, const SuiteAnswers& answers, const char* field) {
  std::map<double, std::pair<int64_t, int64_t>> counts;
  for (size_t i = 0; i < answers.size(); ++i) {
    auto& [right, all] = counts[cases[i].about.value(field, 0.0)];
    right += answers[i].right;
    ++all;
  }
  Json table = Json::array();
  for (const auto& [value, count] : counts) {
    table.push_back({{field, value},
                     {"cases", count.second},
                     {"right", static_cast<double>(count.first) / count.second}});
  }
  return table;
}

Json answers_json(const SuiteAnswers& answers) {
  Json list = Json::array();
  for (const SuiteAnswer& answer : answers) {
    Json one = {{"right", answer.right}, {"tokens", answer.tokens}};
    one["content"] = answer.reply.content;
    if (!answer.reply.call.is_null()) one["call"] = answer.reply.call;
    list.push_back(std::move(one));
  }
  return list;
}

Result<Json> measure(Llm& llm, const EvalNanoOptions& o, const SuiteCases& cases,
                     ProgressLine& line) {
  const std::string& suite = cases[0].suite;
  auto show = [&](size_t done) {
    line.show(fmt::format("{}  {} of {}", suite, done, cases.size()));
  };
  Json row = {{"suite", suite}, {"cases", cases.size()}};
  if (is_scored(suite)) {
    SuiteAnswers answers = TRY(score_suite(llm, cases, show));
    row["bits_per_character"] = bits_per_character(cases, answers);
    return row;
  }
  SuiteAnswers answers = TRY(ask_suite(llm, cases, o.max_tokens, false, show));
  row["right"] = share(answers, &SuiteAnswer::right);
  bool has_schema = std::ranges::none_of(cases, &std::string::empty, &SuiteCase::schema);
  if (has_schema && !InterruptScope::raised()) {
    row["valid"] = share(answers, &SuiteAnswer::valid);
    SuiteAnswers forced = TRY(ask_suite(llm, cases, o.max_tokens, true, show));
    row["constrained_right"] = share(forced, &SuiteAnswer::right);
    row["constrained_valid"] = share(forced, &SuiteAnswer::valid);
  }
  for (const char* field : {"steps", "characters", "depth_tenth"}) {
    if (!cases[0].about.contains(field)) continue;
    row[fmt::format("by_{}", field)] = by_field(cases, answers, field);
  }
  if (o.answers) row["answers"] = answers_json(answers);
  return row;
}

std::string detail(const Json& row) {
  if (row.contains("bits_per_character")) return "bits per character";
  std::string text;
  if (row.contains("valid")) {
    text =
        fmt::format("valid {:.1f}%; under its schema right {:.1f}%, valid {:.1f}%",
                    100 * row["valid"].get<double>(), 100 * row["constrained_right"].get<double>(),
                    100 * row["constrained_valid"].get<double>());
  }
  for (const char* field : {"steps", "characters", "depth_tenth"}) {
    std::string key = fmt::format("by_{}", field);
    if (!row.contains(key)) continue;
    std::string parts;
    for (const Json& part : row[key]) {
      parts += fmt::format("{}{:g}: {:.0f}%", parts.empty() ? "" : ", ", part[field].get<double>(),
                           100 * part["right"].get<double>());
    }
    text += fmt::format("{}by {} {}", text.empty() ? "" : "; ",
                        std::string_view(field) == "depth_tenth" ? "depth/10" : field, parts);
  }
  return text;
}

void print_table(const Json& rows) {
  std::string text = fmt::format("{:<17}{:>6}{:>9}\n", "suite", "cases", "right");
  for (const Json& row : rows) {
    std::string figure = row.contains("right")
                             ? fmt::format("{:.1f}%", 100 * row["right"].get<double>())
                             : fmt::format("{:.3f}", row["bits_per_character"].get<double>());
    text += fmt::format("{:<17}{:>6}{:>9}  {}\n", row["suite"].get<std::string>(),
                        row["cases"].get<int64_t>(), figure, detail(row));
  }
  write_stdout(text);
}

// The files of the folder, sorted by name, or those of the requested suites.
Result<std::vector<std::string>> files_of(const EvalNanoOptions& o, const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string& suite : o.suites)
    files.push_back(fmt::format("{}/{}.jsonl", folder, suite));
  if (!files.empty()) return files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
  }
  if (error)
    return not_found("{}: {}; name the folder of the suites with --data", folder, error.message());
  if (files.empty())
    return not_found("{} contains no suite, that is, no file that ends in .jsonl", folder);
  std::ranges::sort(files);
  return files;
}

Result<int> eval_nano(const EvalNanoOptions& o) {
  std::string folder = o.data.empty() ? o.config.model_path + "/eval" : o.data;
  std::vector<SuiteCases> suites;
  for (const std::string& file : TRY(files_of(o, folder))) {
    suites.push_back(TRY(read_suite(TRY(read_file(file)), file)));
    if (o.limit > 0 && std::ssize(suites.back()) > o.limit) {
      suites.back().erase(suites.back().begin() + o.limit, suites.back().end());
    }
  }
  std::unique_ptr<Llm> llm = TRY(load_llm(o.config));
  if (!llm->has_tokenizer()) {
    return invalid_argument("{} has no tokenizer files", o.config.model_path);
  }
  InterruptScope interrupt(InterruptScope::Second::kEndsProgram);
  Json rows = Json::array();
  {
    ProgressLine line("eval");
    for (const SuiteCases& cases : suites) {
      Json row = TRY(measure(*llm, o, cases, line));
      if (InterruptScope::raised()) break;
      rows.push_back(std::move(row));
    }
  }
  if (o.json) {
    write_stdout(dump_json(rows) + "\n");
  } else {
    print_table(rows);
  }
  return InterruptScope::raised() ? kExitInterrupt : kExitSuccess;
}

VerbAction declare_eval_nano(CLI::App& app) {
  auto o = std::make_shared<EvalNanoOptions>();
  app.add_option("--data", o->data, "Folder of the suites [eval in the model's folder]")
      ->default_str("")
      ->type_name("DIR");
  app.add_option("--suite", o->suites, "Only these, by name")
      ->delimiter(',')
      ->type_name("NAME,...");
  app.add_option("--limit", o->limit, "The first N cases of each suite; 0: all")
      ->check(between(int64_t{0}, int64_t{1} << 30))
      ->type_name("N");
  app.add_option("--max-tokens,-n,--max-new-tokens", o->max_tokens, "Maximum tokens per answer")
      ->check(between(int64_t{1}, int64_t{1} << 20))
      ->type_name("N");
  app.add_flag("--json", o->json, "Print one JSON list, an object for each suite");
  app.add_flag("--answers", o->answers, "With --json: the model's answer to each case");
  add_model_options(app, o->config);
  o->config.running_max = 32;
  return [o]() -> Result<int> {
    if (o->answers && !o->json) {
      return invalid_argument("--answers are shown by --json only; add it");
    }
    return eval_nano(*o);
  };
}

}  // namespace

const Verb kEvalNanoVerb = {
    "eval nano", "Grade banyan-nano, suite by suite",
    "  banyan eval nano models/banyan-nano\n"
    "  banyan eval nano models/banyan-nano --quantization int4 --json\n"
    "  banyan eval nano models/banyan-nano --suite needle,tools --limit 20\n"
    "\n"
    "A suite is a file of JSON lines: {suite, messages, tools, think, answer, schema, about}.\n"
    "Answers are greedy. They are right if the text is the expected one; for arithmetic if the\n"
    "last number is; for extraction and tools if the JSON is. Stories are scored: bits that the "
    "model\n"
    "takes for a character of them. Suites with a schema are asked without it and under it.\n",
    declare_eval_nano};

}  // namespace banyan::cli
