// The interface of drafters, which propose tokens before the model has computed them. Every
// proposal is verified (engine/drafters/speculate.h), so any token is safe, even one outside the
// vocabulary; a good guess saves a step.
//
// It covers text lookup, MTP layers, EAGLE-3 heads and separate draft models. A drafter is called
// for the whole batch, so that one pass can serve all sequences, and may propose any number of
// tokens. The list is in drafters/registry.cpp. Engine's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "banyan/token.h"
#include "engine/drafters/acceptance.h"

namespace banyan {

struct Sequence;
struct StepPlan;

// A request for drafts of one sequence, and the drafter's answer.
struct DraftTask {
  Sequence* sequence = nullptr;
  std::span<const TokenId> forced;  // forced by a constraint right after the sequence's tokens
  int64_t tokens_max = 0;           // at most this many after the forced ones; at least 1
  // How often the drafter's tokens were accepted; null: never measured.
  const Acceptance* acceptance = nullptr;
  int source = 0;
  double chance_min = 0;  // a token less likely to be reached and accepted is not worth its cost
  // The answer. `confidences[j]` is the drafter's own estimate that a token is accepted if all
  // before it are, or 1 if it has none; `chances[j]`, what the engine makes of it for all tokens up
  // to j.
  std::vector<TokenId> tokens;
  std::vector<float> confidences;
  std::vector<double> chances;
  double joint = 1;  // product of the confidences

  // Other continuations after the first `after` of these tokens: the first `branch_count`.
  struct Branch {
    int64_t after = 0;
    std::vector<TokenId> tokens;
    std::vector<float> confidences;
  };
  int branches_max = 0;
  std::vector<Branch> branches;
  int branch_count = 0;

  void clear();
  // A branch to fill in; null if there are enough.
  Branch* add_branch(int64_t after);
  double chance() const { return chances.empty() ? 1 : chances.back(); }
  // Appends a token. False if another one is not wanted: the draft is as long as it may be, or its
  // next token is unlikely to pay.
  bool add(TokenId token, float confidence);
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  // Whether observe() reads the step's hidden states; then no other step may be in flight.
  virtual bool reads_steps() const { return false; }
  // Whether the runner can make its drafts while the step before is in flight: it is not called for
  // them (Runner::launch_following).
  virtual bool drafts_ahead() const { return false; }
  // Whether it runs a model: then it is asked only while what that takes is likely to pay.
  virtual bool computes() const { return false; }
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
