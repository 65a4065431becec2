#include "engine/drafters/emulated.h"

#include <utility>

#include "base/random.h"
#include "base/signed.h"
#include "engine/sequence.h"

namespace banyan {
namespace {

class EmulatedAcceptance final : public Drafter {
 public:
  EmulatedAcceptance(std::unique_ptr<Drafter> drafter, double rate, int64_t vocabulary)
      : drafter_(std::move(drafter)), rate_(rate), vocabulary_(vocabulary) {}

  bool reads_steps() const override { return drafter_->reads_steps(); }
  bool computes() const override { return drafter_->computes(); }
  void observe(const StepPlan& plan, bool paused) override { drafter_->observe(plan, paused); }
  void end(const Sequence& s) override { drafter_->end(s); }
  void forget() override { drafter_->forget(); }

  void propose(std::span<DraftTask* const> tasks) override {
    drafter_->propose(tasks);
    for (DraftTask* task : tasks) replace(*task);
  }

 private:
  void replace(DraftTask& task) {
    const Sequence& s = *task.sequence;
    int64_t position = s.length() + std::ssize(task.forced);
    for (TokenId& token : task.tokens) {
      TokenId next = s.recorded_at(position++);
      if (next < 0) return;
      bool right = uniform(0, draws_++, 0) < rate_;
      token = right ? next : static_cast<TokenId>((next + 1) % vocabulary_);
    }
  }

  const std::unique_ptr<Drafter> drafter_;
  const double rate_;
  const int64_t vocabulary_;
  uint64_t draws_ = 0;
};

}  // namespace

std::unique_ptr<Drafter> emulate_acceptance_of(std::unique_ptr<Drafter> drafter, double rate,
                                               int64_t vocabulary) {
  return std::make_unique<EmulatedAcceptance>(std::move(drafter), rate, vocabulary);
}

}  // namespace banyan
