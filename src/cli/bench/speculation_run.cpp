#include "cli/bench/speculation_run.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/signed.h"
#include "engine/assemble.h"
#include "engine/context_fill.h"

namespace banyan::cli {
namespace {

using Clock = std::chrono::steady_clock;

// What the engine has reported of one sequence.
struct Progress {
  std::vector<TokenId> output;
  int64_t draft_tokens = 0, seen_draft_tokens = 0;
  int64_t accepted = 0;  // since the last step
  bool ended = false;
};

class TextRunner {
 public:
  TextRunner(Llm& llm, bool drafts, const SpeculationSetting& setting)
      : llm_(llm), engine_(llm.engine()), drafts_(drafts), setting_(setting) {}

  Result<SpeculationRun> run(const std::vector<const RecordedText*>& texts) {
    engine_.flush_cache();
    all_.resize(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      auto end = texts.begin() + i;
      bool first = std::find(texts.begin(), end, texts[i]) == end;
      TRY(submit(*texts[i], all_[i], first));
    }
    auto waits = [](const Progress& one) { return one.output.empty() && !one.ended; };
    while (!error_ && std::ranges::any_of(all_, waits) && engine_.step()) continue;
    for (Progress& one : all_) settle(one, nullptr);
    SpeculationRun run;
    EngineStats before = engine_.stats();
    while (!error_ && step(run)) continue;
    if (error_) return std::unexpected(*error_);
    run.drafters = engine_.stats().drafters;
    for (size_t d = 0; d < run.drafters.size(); ++d) {
      subtract(before.drafters[d], run.drafters[d]);
    }
    for (Progress& one : all_) run.outputs.push_back(std::move(one.output));
    return run;
  }

 private:
  static void subtract(const DrafterStats& before, DrafterStats& stats) {
    stats.drafts -= before.drafts;
    stats.draft_tokens -= before.draft_tokens;
    stats.accepted_tokens -= before.accepted_tokens;
    stats.time_s -= before.time_s;
  }

  Status submit(const RecordedText& text, Progress& progress, bool first) {
    RecordedRequest made = TRY(to_request(llm_, text, setting_.new_tokens_max));
    if (!drafts_) made.request.options.draft_tokens_max = 0;
    if (setting_.fill_prompts && first) TRY(fill(made.request.prompt));
    auto sink = [this, &progress](const TokenEvent& event) {
      if (event.finish == FinishReason::kError) error_ = event.error;
      progress.ended = event.finish != FinishReason::kNone;
      progress.draft_tokens = event.draft_tokens;
      progress.accepted += event.drafted ? 1 : 0;
      if (event.has_token) progress.output.push_back(event.token);
    };
    TRY(EngineAssembly::submit_recorded(engine_, std::move(made.request), sink,
                                        std::move(made.recorded)));
    return {};
  }

  // Recurrent states have to be computed.
  Status fill(const std::vector<TokenId>& prompt) {
    Status filled = fill_context(engine_, prompt, 0);
    if (!filled && filled.error().code == ErrorCode::kUnsupported) return {};
    return filled;
  }

  // Counts what the last step did for a sequence.
  static void settle(Progress& one, SpeculationStep* step) {
    int64_t drafts = std::exchange(one.seen_draft_tokens, one.draft_tokens);
    drafts = one.draft_tokens - drafts;
    int64_t accepted = std::exchange(one.accepted, 0);
    if (step == nullptr) return;
    step->drafts += drafts;
    step->accepted += accepted;
    step->reached += accepted + (accepted < drafts ? 1 : 0);
  }

  double drafting_s() const {
    double time_s = 0;
    for (const DrafterStats& drafter : engine_.stats().drafters) time_s += drafter.time_s;
    return time_s;
  }

  bool step(SpeculationRun& run) {
    SpeculationStep step;
    step.sequences = std::ranges::count(all_, false, &Progress::ended);
    int64_t tokens = engine_.stats().generated_tokens;
    double drafting_before_s = drafting_s();
    auto began = Clock::now();
    if (!engine_.step()) return false;
    step.time_s = std::chrono::duration<double>(Clock::now() - began).count();
    step.drafting_s = drafting_s() - drafting_before_s;
    step.tokens = engine_.stats().generated_tokens - tokens;
    for (Progress& one : all_) settle(one, &step);
    run.steps.push_back(step);
    return true;
  }

  Llm& llm_;
  Engine& engine_;
  const bool drafts_;
  const SpeculationSetting& setting_;
  std::vector<Progress> all_;
  std::optional<Error> error_;
};

}  // namespace

SpeculationStep SpeculationRun::sum() const {
  SpeculationStep all;
  for (const SpeculationStep& step : steps) {
    all.sequences += step.sequences;
    all.drafts += step.drafts;
    all.accepted += step.accepted;
    all.reached += step.reached;
    all.tokens += step.tokens;
    all.time_s += step.time_s;
    all.drafting_s += step.drafting_s;
  }
  return all;
}

double SpeculationRun::tokens_per_s() const {
  SpeculationStep all = sum();
  return all.time_s > 0 ? all.tokens / all.time_s : 0;
}

Result<int64_t> tokens_of(const Llm& llm, const RecordedText& text, int64_t new_tokens_max) {
  RecordedRequest made = TRY(to_request(llm, text, new_tokens_max));
  return std::ssize(made.request.prompt) + made.request.options.max_new_tokens;
}

Result<SpeculationRun> run_texts(Llm& llm, const std::vector<const RecordedText*>& texts,
                                 bool drafts, const SpeculationSetting& setting) {
  return TextRunner(llm, drafts, setting).run(texts);
}

}  // namespace banyan::cli
