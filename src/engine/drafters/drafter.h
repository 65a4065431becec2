// Who proposes tokens that the model has not drawn yet. What is proposed never decides anything
// (engine/drafters/speculate.h), so any tokens will do, those of other vocabularies included; a
// good guess saves a step.
//
// One interface for text lookups, layers that predict further tokens and whatever runs a model of
// its own: a drafter is asked for the whole batch at once, so that one pass can serve all
// sequences, and may answer with as many tokens as it likes at once. drafters/registry.cpp has the
// list. One thread, the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "banyan/token.h"

namespace banyan {

struct Sequence;
struct StepPlan;

// What is asked of a drafter for one sequence, and its answer.
struct DraftTask {
  Sequence* sequence = nullptr;
  std::span<const TokenId> forced;  // what a constraint makes follow the sequence's tokens first
  int64_t tokens_max = 0;           // to propose after these; at least 1
  // The answer. `odds[j]` is the estimated probability that tokens[0..j] are all kept, where the
  // drafter has one, else 1; it only serves to choose between drafters.
  std::vector<TokenId> tokens;
  std::vector<float> odds;

  void add(TokenId token, float chance) {
    tokens.push_back(token);
    odds.push_back(chance);
  }
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  // observe() reads the hidden states of the step, so that no other may be in flight.
  virtual bool reads_steps() const { return false; }
  // A step was carried out and its tokens are known: `kept` of each span says which rows count.
  // Spans without a sequence have ended. Before propose(), which does not come while drafts are
  // `paused`, since they gain no time.
  virtual void observe(const StepPlan& /*plan*/, bool /*paused*/) {}
  // Fills the tasks' answers, which come empty.
  virtual void propose(std::span<DraftTask* const> tasks) = 0;
  // The sequence ends with the tokens that it has.
  virtual void end(const Sequence& /*sequence*/) {}
  // Whatever was kept of sequences that have ended is to be forgotten.
  virtual void forget() {}
};

// The one that serves requests which predict their output, even where no drafter was asked for.
inline constexpr std::string_view kPredictionDrafter = "ngram";

struct NamedDrafter {
  std::string_view name;  // of static storage
  std::unique_ptr<Drafter> drafter;
  bool for_all = true;  // false: only for sequences whose request predicts their output
};

}  // namespace banyan
