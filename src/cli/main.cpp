// The program: finds the verb, parses its options, runs it, reports its error.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "base/os/standard_error.h"
#include "base/quote.h"
#include "cli/verb.h"

namespace banyan::cli {
namespace {

constexpr std::array kVerbs = {
    &kRunVerb,            //
    &kServeVerb,          //
    &kGenerateVerb,       //
    &kScoreVerb,          //
    &kTokenizeVerb,       //
    &kDetokenizeVerb,     //
    &kInspectVerb,        //
    &kModelsVerb,         //
    &kQuantizeVerb,       //
    &kBenchMachineVerb,   //
    &kBenchOneBatchVerb,  //
    &kBenchPrefixCacheVerb,
    &kBenchProgramsVerb,
    &kBenchServingVerb,
    &kEvalNanoVerb,  // before the one that is its first word
    &kEvalVerb,
    &kCompletionVerb,
    &kManualVerb,
};

std::string overview() {
  std::string text =
      "Banyan runs language models from their Hugging Face folders.\n\n"
      "Usage: banyan VERB --model DIR [OPTIONS]\n\nVerbs:\n";
  for (const Verb* verb : kVerbs) {
    text += fmt::format("  {:<20}{}\n", verb->name, verb->summary);
  }
  text +=
      "\n`banyan VERB --help` lists a verb's options with examples; `banyan --version` the version."
      "\n\nExamples:\n"
      "  banyan run --model models/Qwen3-0.6B\n"
      "  banyan generate --model models/stories260K --prompt \"Once upon a time\"\n"
      "\nResults go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 a wrong\n"
      "value on the command line, 130 interrupted.\n";
  return text;
}

// How many of the words `name` consists of begin `words`; 0 unless all of them do.
size_t words_matched(std::string_view name, std::span<const std::string> words) {
  size_t count = 0;
  for (size_t begin = 0; begin <= name.size(); ++count) {
    size_t end = std::min(name.find(' ', begin), name.size());
    if (count >= words.size() || words[count] != name.substr(begin, end - begin)) return 0;
    begin = end + 1;
  }
  return count;
}

int usage_error(std::string_view message, std::string_view help) {
  write_stderr(fmt::format("banyan: {}\nSee `{} --help`.\n", message, help));
  return kExitUsage;
}

int unknown_verb(std::span<const std::string> words) {
  std::string prefix = words[0] + " ";
  std::string found;
  for (const Verb* verb : kVerbs) {
    if (std::string_view(verb->name).starts_with(prefix)) {
      found += fmt::format("{}{}", found.empty() ? "" : ", ", verb->name + prefix.size());
    }
  }
  if (found.empty()) return usage_error(quote(words[0]) + " is not a verb", "banyan");
  if (words.size() == 1) return usage_error(words[0] + " needs one of: " + found, "banyan");
  return usage_error(fmt::format("{} is not one of {}'s: {}", quote(words[1]), words[0], found),
                     "banyan");
}

int report(const Error& error) {
  write_stderr(fmt::format("banyan: {}\n", error.message));
  return error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

// CLI11 takes the words from last to first.
int parse_and_run(const Verb& verb, std::span<const std::string> words) {
  std::string command = fmt::format("banyan {}", verb.name);
  CLI::App app{std::string(verb.summary), command};
  app.option_defaults()->always_capture_default();
  app.get_formatter()->column_width(32);
  app.footer(fmt::format("Examples:\n{}", verb.examples));
  VerbAction action = verb.declare(app);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  if (verb.respell != nullptr) std::ranges::transform(reversed, reversed.begin(), verb.respell);
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kExitSuccess;
  } catch (const CLI::ParseError& e) {
    return usage_error(e.what(), command);
  }
  Result<int> code = action();
  return code ? *code : report(code.error());
}

int run(std::span<const std::string> words) {
  if (words.empty()) {
    write_stderr(overview());
    return kExitUsage;
  }
  if (words[0] == "help" && words.size() > 1) {
    std::vector<std::string> verb_help(words.begin() + 1, words.end());
    verb_help.push_back("--help");
    return run(verb_help);
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    fmt::print("{}", overview());
    return kExitSuccess;
  }
  if (words[0] == "--version") {
    fmt::print("banyan {}\n", BANYAN_VERSION);
    return kExitSuccess;
  }
  for (const Verb* verb : kVerbs) {
    if (size_t count = words_matched(verb->name, words)) {
      return parse_and_run(*verb, words.subspan(count));
    }
  }
  return unknown_verb(words);
}

// A full disk must not pass for success.
int flush_results(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  write_stderr(fmt::format("banyan: cannot write the results: {}\n", std::strerror(errno)));
  return code == kExitSuccess ? kExitFailure : code;
}

}  // namespace

std::span<const Verb* const> verbs() {
  return kVerbs;
}

}  // namespace banyan::cli

int main(int argc, char** argv) {
  banyan::occupy_standard_streams();
  banyan::log_to_stderr();
  spdlog::set_level(spdlog::level::warn);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  int code = banyan::cli::kExitFailure;
  // What the standard library throws when memory runs out or an output is closed.
  try {
    code = banyan::cli::flush_results(banyan::cli::run(words));
  } catch (const std::exception& e) {
    banyan::write_stderr(fmt::format("banyan: {}\n", e.what()));
  }
  banyan::flush_stderr();
  return code;
}
