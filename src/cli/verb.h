// A verb of the program; main.cpp has the table. The verb in score.cpp keeps its options in
// ScoreOptions and declares them in declare_score. Names differ because several verbs are compiled
// as one unit.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "banyan/status.h"

namespace CLI {
class App;
}

namespace banyan::cli {

// Runs the verb and returns the program's exit code. main prints an error and exits with
// exit_code_of(error).
using VerbAction = std::function<Result<int>()>;

struct Verb {
  const char* name;  // as typed; may be two words, "bench one-batch"
  const char* summary;
  const char* examples;  // command lines, one per line
  // Adds the verb's options to `app`; the action may be run once they are parsed.
  VerbAction (*declare)(CLI::App& app);
  // Converts a word of the command line to the options' spelling; null: unchanged.
  std::string (*respell)(const std::string& word) = nullptr;
};

extern const Verb kRunVerb, kServeVerb, kRouteVerb, kGenerateVerb, kScoreVerb, kEmbedVerb,
    kTokenizeVerb, kDetokenizeVerb, kInspectVerb, kModelsVerb, kQuantizeVerb, kBenchDecodeCostVerb,
    kBenchFleetVerb, kBenchMachineVerb, kBenchOneBatchVerb, kBenchPrefixCacheVerb,
    kBenchProgramsVerb, kBenchServingVerb, kBenchSpeculationVerb, kEvalNanoVerb, kEvalVerb,
    kCacheLsVerb, kCacheVerifyVerb, kCacheGcVerb, kCompletionVerb, kManualVerb;

// All verbs, in the order of `banyan --help`.
std::span<const Verb* const> verbs();

constexpr int kExitSuccess = 0;
constexpr int kExitFailure = 1;      // an error of the model, the machine or the system
constexpr int kExitUsage = 2;        // an invalid value on the command line
constexpr int kExitInterrupt = 130;  // Ctrl-C, as shells report it

}  // namespace banyan::cli
