// What a verb of the program is. The table of them is in main.cpp. The verb in score.cpp keeps its
// options in ScoreOptions and declares them in declare_score: several verbs are compiled at once.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "banyan/status.h"

namespace CLI {
class App;
}

namespace banyan::cli {

// Does the verb's work and gives the program's exit code. An error is printed by main and ends the
// program with exit_code_of(error).
using VerbAction = std::function<Result<int>()>;

struct Verb {
  const char* name;  // as typed; may be two words, "bench one-batch"
  const char* summary;
  const char* examples;  // command lines, one a line
  // Adds the verb's options to `app`; the action may run once they are parsed.
  VerbAction (*declare)(CLI::App& app);
  // A word of the command line as the options spell it; null: as it is.
  std::string (*respell)(const std::string& word) = nullptr;
};

extern const Verb kRunVerb, kServeVerb, kGenerateVerb, kScoreVerb, kTokenizeVerb, kDetokenizeVerb,
    kInspectVerb, kModelsVerb, kQuantizeVerb, kBenchMachineVerb, kBenchOneBatchVerb,
    kBenchPrefixCacheVerb, kBenchProgramsVerb, kBenchServingVerb, kEvalNanoVerb, kEvalVerb,
    kCacheLsVerb, kCacheVerifyVerb, kCacheGcVerb, kCompletionVerb, kManualVerb;

// All of them, in the order of `banyan --help`.
std::span<const Verb* const> verbs();

constexpr int kExitSuccess = 0;
constexpr int kExitFailure = 1;      // the model, the machine or the system refused
constexpr int kExitUsage = 2;        // a value on the command line is wrong
constexpr int kExitInterrupt = 130;  // Ctrl-C, as shells count it

}  // namespace banyan::cli
