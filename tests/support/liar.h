// A drafter for tests that proposes random numbers of random tokens, some outside the vocabulary.
// Often it proposes the right tokens, or their beginning, which the test supplies.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/random.h"
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
    for (int64_t j = 0; j < std::min<int64_t>(count, 40); ++j, ++next) {
      bool honest = next < output.size() && chance() < truth;
      auto lie = static_cast<TokenId>(chance() * (vocabulary_ + 6)) - 3;
      task.add(honest ? output[next] : lie, static_cast<float>(chance()));
    }
  }

  const uint64_t seed_;
  const int vocabulary_;
  const Oracle oracle_;
  uint64_t draws_ = 0;
};

}  // namespace banyan::test
