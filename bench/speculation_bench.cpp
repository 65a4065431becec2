// How many steps drafts save, by drafter.
//
//   cmake --preset release -DBANYAN_BENCH=ON
//   cmake --build --preset release --target speculation_bench
//
//   build/release/bench/speculation_bench follow TOKENIZER_DIR PROMPT_FILE ANSWER_FILE DRAFTER...
//
// Counts the steps of a sequence whose model writes the answer's text after the prompt, spelled as
// the tokenizer does, with the engine's own drafters and pauses, and measures what proposing costs.
// No model runs; `banyan bench speculation` runs one. A drafter is a name in
// EngineConfig::drafters, or several separated by commas.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "engine/drafters/ngram.h"
#include "engine/drafters/speculate.h"
#include "engine/drafters/suffix.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {
namespace {

template <class T>
T value_or_exit(Result<T> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

std::vector<std::string> split(std::string_view names) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < names.size();) {
    size_t end = std::min(names.find(',', begin), names.size());
    parts.emplace_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Of the names, those that need no model.
std::vector<NamedDrafter> lookups(const std::string& names) {
  std::vector<NamedDrafter> drafters;
  for (const std::string& name : split(names)) {
    if (name == "ngram") drafters.push_back({"ngram", make_ngram_drafter({})});
    if (name == "suffix") drafters.push_back({"suffix", make_suffix_drafter()});
  }
  return drafters;
}

void follow(const std::vector<TokenId>& prompt, const std::vector<TokenId>& answer,
            int64_t vocabulary, const std::string& drafters) {
  Speculator speculator({}, vocabulary, lookups(drafters));
  Sequence s;
  s.tokens = prompt;
  s.prompt_tokens = s.length();
  s.tokens_max = s.length() + std::ssize(answer) + 1;
  int64_t steps = 0;
  StepPlan plan;
  for (size_t written = 0; written < answer.size(); ++steps) {
    plan.spans = {{.sequence = &s,
                   .first = s.length() - 1,
                   .count = 1 + std::ssize(s.draft.tokens),
                   .drafts = std::ssize(s.draft.tokens)}};
    std::vector<TokenId> drafts = s.draft.tokens;
    bool stands = true;
    for (size_t i = 0; i <= drafts.size() && stands && written < answer.size(); ++i) {
      TokenId drawn = answer[written++];
      stands = i < drafts.size() && drawn == drafts[i];
      s.tokens.push_back(drawn);
      ++s.drawn;
    }
    speculator.settle(plan, 1);
  }
  EngineStats stats;
  speculator.report(stats);
  double proposing_s = 0;
  for (const DrafterStats& drafter : stats.drafters) proposing_s += drafter.time_s;
  auto tokens = static_cast<double>(answer.size());
  fmt::print(
      "{:<13} {} tokens, {} steps: {:.1f}% saved, {:.2f} tokens a step; {:.1f}% of {} drafted "
      "tokens kept; {:.1f} us a step to propose\n",
      drafters, answer.size(), steps, 100 - 100 * static_cast<double>(steps) / tokens,
      tokens / static_cast<double>(steps),
      100 * static_cast<double>(stats.accepted_draft_tokens) /
          static_cast<double>(std::max<int64_t>(stats.draft_tokens, 1)),
      stats.draft_tokens, 1e6 * proposing_s / static_cast<double>(steps));
}

int follow_files(int count, char** arguments) {
  auto tokenizer = value_or_exit(Tokenizer::load(arguments[0]));
  auto encode = [&](const char* path) {
    std::string text = value_or_exit(read_file(path));
    return value_or_exit(
        tokenizer->encode(text, {.add_special_tokens = false, .parse_special = false}));
  };
  std::vector<TokenId> prompt = encode(arguments[1]), answer = encode(arguments[2]);
  for (int i = 3; i < count; ++i) follow(prompt, answer, INT32_MAX / 64, arguments[i]);
  return 0;
}

int run(int count, char** arguments) {
  std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "follow" && count > 5) return follow_files(count - 2, arguments + 2);
  fmt::print(stderr, "see the first lines of bench/speculation_bench.cpp\n");
  return 2;
}

}  // namespace
}  // namespace banyan

int main(int count, char** arguments) {
  return banyan::run(count, arguments);
}
