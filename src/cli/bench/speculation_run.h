// Runs conversations with or without drafts, and notes what each decode step did.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "banyan/engine.h"
#include "banyan/llm.h"
#include "banyan/status.h"
#include "cli/bench/recorded_text.h"

namespace banyan::cli {

// Over all sequences of the step.
struct SpeculationStep {
  int64_t sequences = 0;
  int64_t drafts = 0;     // draft tokens verified
  int64_t accepted = 0;   // of them
  int64_t reached = 0;    // of them: the accepted ones, and the first rejected one of each sequence
  int64_t tokens = 0;     // drawn
  double time_s = 0;      // all of it, ...
  double drafting_s = 0;  // ... of which proposing
};

struct SpeculationRun {
  std::vector<SpeculationStep> steps;  // from the first token of the last sequence on
  std::vector<std::vector<TokenId>> outputs;
  std::array<DrafterStats, EngineStats::kDraftersMax> drafters;

  SpeculationStep sum() const;  // `sequences`: of all steps together
  double tokens_per_s() const;
};

// What one sequence of the text needs: prompt and answer.
Result<int64_t> tokens_of(const Llm& llm, const RecordedText& text, int64_t new_tokens_max);

struct SpeculationSetting {
  int64_t new_tokens_max = 0;  // of answers that the model writes itself
  bool fill_prompts = false;   // prompts get random states where that is possible
};

// Runs the texts together, one sequence each, from an empty cache.
Result<SpeculationRun> run_texts(Llm& llm, const std::vector<const RecordedText*>& texts,
                                 bool drafts, const SpeculationSetting& setting);

}  // namespace banyan::cli
