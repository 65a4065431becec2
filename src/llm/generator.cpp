#include "llm/generator.h"

#include <algorithm>
#include <utility>

namespace banyan {

void Submission::deliver(size_t index, const TokenEvent& event) {
  if (unfinished_ == 0) return;
  bool over = event.finish != FinishReason::kNone && --unfinished_ == 0;
  // Moved out first: the callback may drop the last reference to whatever the sinks hold.
  SubmissionSinks ended = over ? std::exchange(sinks_, {}) : SubmissionSinks{};
  if (abandoned_[index]) return;
  (over ? ended : sinks_).event(index, event);
}

void Submission::reject(const Error& error) {
  if (std::exchange(unfinished_, 0) == 0) return;
  SubmissionSinks ended = std::exchange(sinks_, {});
  bool heard = !std::ranges::all_of(abandoned_, [](const auto& a) { return a.load(); });
  if (heard) ended.rejected(error);
}

void Submission::abandon(std::optional<size_t> index) {
  for (size_t i = 0; i < size(); ++i) {
    if (index.value_or(i) == i) abandoned_[i] = true;
  }
}

}  // namespace banyan
