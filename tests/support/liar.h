// A drafter for tests that proposes random numbers of random tokens, some outside the vocabulary.
// Often it proposes the right tokens, or their beginning, which the test supplies. Branches leave
// its drafts anywhere, but often with the right tokens before the first wrong one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/signed.h"
#include "engine/drafters/drafter.h"
#include "engine/sequence.h"

namespace banyan::test {

class Liar final : public Drafter {
 public:
  // The output that the sequence will have in the end.
  using Oracle = std::function<std::vector<TokenId>(const Sequence&)>;

  Liar(uint64_t seed, int vocabulary, Oracle oracle)
      : seed_(seed), vocabulary_(vocabulary), oracle_(std::move(oracle)) {}

  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks) propose(*task);
  }

 private:
  double chance() { return uniform(seed_, draws_++, 7); }

  void propose(DraftTask& task) {
    const Sequence& s = *task.sequence;
    if (chance() < 0.1) return;
    double truth = chance() < 0.6 ? 0.97 : 0.3;
    std::vector<TokenId> output = oracle_(s);
    auto next = static_cast<size_t>(s.length() - s.prompt_tokens) + task.forced.size();
    // Sometimes more than was asked for.
    auto count = static_cast<int64_t>(chance() * 1.2 * static_cast<double>(task.tokens_max)) + 1;
    for (int64_t j = 0; j < std::min<int64_t>(count, 40); ++j) {
      task.add(token(output, next + as_size(j), truth), static_cast<float>(chance()));
    }
    branch(task, output, next);
  }

  // The token that the output will have there, or a lie.
  TokenId token(const std::vector<TokenId>& output, size_t i, double truth) {
    bool honest = i < output.size() && chance() < truth;
    auto lie = static_cast<TokenId>(chance() * (vocabulary_ + 6)) - 3;
    return honest ? output[i] : lie;
  }

  void branch(DraftTask& task, const std::vector<TokenId>& output, size_t next) {
    while (task.branch_count < task.branches_max) {
      auto rest = std::span(output).subspan(std::min(next, output.size()));
      int64_t right = std::ranges::mismatch(task.tokens, rest).in1 - task.tokens.begin();
      auto any = static_cast<int64_t>(chance() * static_cast<double>(task.tokens.size() + 1));
      int64_t after = chance() < 0.7 ? right : any;
      DraftTask::Branch& branch = *task.add_branch(after);
      auto count = static_cast<int64_t>(chance() * 6);
      for (int64_t j = 0; j < count; ++j) {
        branch.tokens.push_back(token(output, next + as_size(after + j), 0.8));
        branch.confidences.push_back(static_cast<float>(0.5 + 0.5 * chance()));
      }
    }
  }

  const uint64_t seed_;
  const int vocabulary_;
  const Oracle oracle_;
  uint64_t draws_ = 0;
};

}  // namespace banyan::test
