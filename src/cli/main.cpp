// The program's entry point: finds the verb, parses its options, runs it, and reports errors.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/log.h"
#include "base/os/standard_error.h"
#include "base/quote.h"
#include "cli/hub.h"
#include "cli/options/checks.h"
#include "cli/options/config_names.h"
#include "cli/options/help.h"
#include "cli/options/option_table.h"
#include "cli/options/parse_errors.h"
#include "cli/verb.h"
#include "dist/comm_mpi.h"
#include "engine/ranks/group.h"

namespace banyan::cli {
namespace {

constexpr std::array kVerbs = {
    &kRunVerb,         //
    &kServeVerb,       //
    &kRouteVerb,       //
    &kGenerateVerb,    //
    &kScoreVerb,       //
    &kEmbedVerb,       //
    &kTokenizeVerb,    //
    &kDetokenizeVerb,  //
    &kInspectVerb,     //
    &kModelsVerb,      //
    &kQuantizeVerb,    //
    &kBenchDecodeCostVerb,
    &kBenchFleetVerb,
    &kBenchMachineVerb,   //
    &kBenchOneBatchVerb,  //
    &kBenchPrefixCacheVerb,
    &kBenchProgramsVerb,
    &kBenchServingVerb,
    &kBenchSpeculationVerb,
    &kEvalNanoVerb,  // before "eval", its first word
    &kEvalVerb,
    &kPullVerb,
    &kListVerb,
    &kRemoveVerb,
    &kCacheLsVerb,
    &kCacheVerifyVerb,
    &kCacheGcVerb,
    &kCompletionVerb,
    &kManualVerb,
};

std::string overview() {
  std::string text =
      "Banyan runs language models from their Hugging Face folders, and from GGUF files.\n\n"
      "Usage: banyan VERB [MODEL] [OPTIONS]\n\nVerbs:\n";
  for (const Verb* verb : kVerbs) {
    text += fmt::format("  {:<20}{}\n", verb->name, verb->summary);
  }
  text +=
      "\n`banyan VERB --help` shows a verb's options and examples, `banyan --version` the version."
      "\n\nExamples:\n"
      "  banyan run models/Qwen3-0.6B\n"
      "  banyan run models/Qwen3-0.6B \"Why is the sky blue?\"\n"
      "  banyan serve models/Qwen3-0.6B --port 8000\n"
      "\nResults go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 a wrong\n"
      "value on the command line, 130 interrupted.\n";
  return text;
}

// The number of words in `name` if `words` starts with them, otherwise 0.
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

// The verbs whose first word is `first`, one per line; empty if there is no such group.
std::string group_overview(std::string_view first) {
  std::string text;
  for (const Verb* verb : kVerbs) {
    std::string_view name = verb->name;
    if (!name.starts_with(first) || name.size() <= first.size() || name[first.size()] != ' ') {
      continue;
    }
    text += fmt::format("  {:<28}{}\n", fmt::format("banyan {}", name), verb->summary);
  }
  return text;
}

// Verbs that users of other programs type.
constexpr std::array kForeignVerbs = std::to_array<std::pair<const char*, const char*>>({
    {"chat", "run"},
    {"ask", "run"},
    {"complete", "generate"},
    {"start", "serve"},
    {"launch", "serve"},
    {"launch-server", "serve"},
    {"launch_server", "serve"},
    {"show", "inspect"},
    {"info", "inspect"},
    {"convert", "quantize"},
    {"quantise", "quantize"},
    {"completions", "completion"},
    {"encode", "tokenize"},
    {"decode", "detokenize"},
    {"ls", "list"},
    {"download", "pull"},
    {"delete", "rm"},
    {"remove", "rm"},
});

// The verb that `word` is probably a typo of, or nothing.
std::string near_verb(const std::string& word) {
  std::vector<std::string> firsts;
  for (const Verb* verb : kVerbs) {
    std::string_view name = verb->name;
    firsts.emplace_back(name.substr(0, name.find(' ')));
  }
  for (auto [foreign, ours] : kForeignVerbs) {
    if (word == foreign && std::ranges::find(firsts, ours) != firsts.end()) return ours;
  }
  return nearest(word, firsts);
}

int unknown_verb(std::span<const std::string> words) {
  std::string found = group_overview(words[0]);
  if (!found.empty() && words.size() == 1) {
    write_stderr(fmt::format("banyan: {} needs a second word:\n\n{}", words[0], found));
    return kExitUsage;
  }
  if (!found.empty()) {
    write_stderr(
        fmt::format("banyan: there is no `{} {}`:\n\n{}", words[0], quote(words[1]), found));
    return kExitUsage;
  }
  if (words[0].starts_with('-')) {
    return usage_error(quote(words[0]) + " comes before the verb, as `run` in `banyan run MODEL`",
                       "banyan");
  }
  std::string near = near_verb(words[0]);
  std::string message = quote(words[0]) + " is not a verb";
  if (!near.empty()) message += fmt::format("; did you mean `banyan {}`?", near);
  if (near.empty() && std::filesystem::is_directory(words[0])) {
    message += fmt::format(", but a folder; `banyan run {}` chats with it", words[0]);
  }
  return usage_error(message, "banyan");
}

int report(const Error& error, const CLI::App& app, std::span<const std::string> words) {
  write_stderr(fmt::format("banyan: {}\n", with_option_names(error.message, app, words)));
  return error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

// CLI11 expects the words in reverse order.
int parse_and_run(const Verb& verb, std::span<const std::string> words) {
  std::string command = fmt::format("banyan {}", verb.name);
  CLI::App app{std::string(verb.summary), command};
  prepare(app);
  VerbAction action = verb.declare(app);
  std::vector<std::string> spelled(words.begin(), words.end());
  if (verb.respell != nullptr) std::ranges::transform(spelled, spelled.begin(), verb.respell);
  auto owners_of = [](const std::string& option) { return verbs_with(kVerbs, option); };
  if (std::optional<size_t> i = find_unknown_short_name(spelled, app)) {
    return usage_error(unknown_option(words[*i], app, owners_of), command);
  }
  std::vector<std::string> reversed(spelled.rbegin(), spelled.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", help_of(verb, false));
    return kExitSuccess;
  } catch (const CLI::CallForAllHelp&) {
    fmt::print("{}", help_of(verb, true));
    return kExitSuccess;
  } catch (const CLI::ParseError& e) {
    return usage_error(explain(e, app, owners_of), command);
  }
  Result<int> code = action();
  return code ? *code : report(code.error(), app, spelled);
}

bool asks_for_help(const std::string& word) {
  return word == "--help" || word == "-h" || word == "--help-all" || word == "help";
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
  if (asks_for_help(words[0])) {
    fmt::print("{}", overview());
    return kExitSuccess;
  }
  if (words[0] == "--version" || words[0] == "version") {
    fmt::print("banyan {}\n", BANYAN_VERSION);
    return kExitSuccess;
  }
  for (const Verb* verb : kVerbs) {
    if (size_t count = words_matched(verb->name, words)) {
      return parse_and_run(*verb, words.subspan(count));
    }
  }
  std::string group = group_overview(words[0]);
  if (!group.empty() && words.size() == 2 && asks_for_help(words[1])) {
    fmt::print("{}\n`banyan {} WORD --help` shows the options of each.\n", group, words[0]);
    return kExitSuccess;
  }
  return unknown_verb(words);
}

// Reports a failed flush, such as on a full disk, as an error.
int flush_results(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  write_stderr(fmt::format("banyan: cannot write the results: {}\n", std::strerror(errno)));
  return code == kExitSuccess ? kExitFailure : code;
}

// The first of the processes that mpirun has started does what the command line says; the others
// compute with it.
int run_as_rank(const std::vector<std::string>& words) {
  if (Status joined = join_mpi(); !joined) {
    write_stderr(fmt::format("banyan: {}\n", joined.error().message));
    return kExitFailure;
  }
  Comm* world = mpi_world();
  int code = kExitSuccess;
  if (world != nullptr && world->rank().index > 0) {
    follow_engines(*world, registered_families());
  } else {
    code = flush_results(run(words));
    if (world != nullptr) dismiss_followers(*world);
  }
  leave_mpi();
  return code;
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
  // The standard library throws when memory runs out or an output is closed.
  try {
    code = banyan::cli::run_as_rank(words);
  } catch (const std::system_error& e) {
    bool again = e.code() == std::errc::resource_unavailable_try_again;  // std::thread's
    banyan::write_stderr(
        fmt::format("banyan: {}{}\n", e.what(),
                    again ? ": probably no more threads can be started; raise `ulimit -u`, or the "
                            "container's limit of processes"
                          : ""));
  } catch (const std::exception& e) {
    banyan::write_stderr(fmt::format("banyan: {}\n", e.what()));
  }
  banyan::flush_stderr();
  return code;
}
