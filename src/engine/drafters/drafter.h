// The interface of drafters, which propose tokens before the model has computed them. Every
// proposal is verified (engine/drafters/speculate.h), so any token is safe, even one outside the
// vocabulary; a good guess saves a step.
//
// It covers text lookup, MTP layers and separate draft models. A drafter is called for the whole
// batch, so that one pass can serve all sequences, and may propose any number of tokens. The list
// is in drafters/registry.cpp. Engine's thread only.
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

// A request for drafts of one sequence, and the drafter's answer.
struct DraftTask {
  Sequence* sequence = nullptr;
  std::span<const TokenId> forced;  // forced by a constraint right after the sequence's tokens
  int64_t tokens_max = 0;           // at most this many after the forced ones; at least 1
  // The answer. `odds[j]` is the estimated probability that tokens[0..j] are all accepted, or 1 if
  // the drafter has no estimate. It only serves to choose between drafters.
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

  // Whether observe() reads the step's hidden states; then no other step may be in flight.
  virtual bool reads_steps() const { return false; }
  // Called after each step, when its tokens are known and before propose(). Each span's `kept` says
  // how many draft rows were accepted; ended sequences are null. `paused`: propose() is not called,
  // since drafting does not pay at present.
  virtual void observe(const StepPlan& /*plan*/, bool /*paused*/) {}
  // Fills in the answers of the tasks, which are empty on entry.
  virtual void propose(std::span<DraftTask* const> tasks) = 0;
  // The sequence has ended; its tokens are final.
  virtual void end(const Sequence& /*sequence*/) {}
  // Drops everything kept from ended sequences.
  virtual void forget() {}
};

// The drafter for requests with a predicted output. Always loaded, even if not selected.
inline constexpr std::string_view kPredictionDrafter = "ngram";

struct NamedDrafter {
  std::string_view name;  // static string
  std::unique_ptr<Drafter> drafter;
  bool for_all = true;  // false: only for requests with a predicted output
};

}  // namespace banyan
