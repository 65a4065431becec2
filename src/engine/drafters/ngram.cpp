#include "engine/drafters/ngram.h"

#include <algorithm>

#include "engine/drafters/own_text.h"
#include "engine/sequence.h"

namespace banyan {
namespace {

class NgramDrafter final : public Drafter {
 public:
  explicit NgramDrafter(const EngineConfig& config)
      : least_(config.ngram_tokens_min), most_(config.ngram_tokens_max) {}

  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks) propose(*task);
  }

 private:
  void propose(DraftTask& task) const {
    const TextIndex& text = own_text(*task.sequence);
    DraftContext context(task);
    std::array<TextIndex::Match, TextIndex::kMatchesMax> found;
    int64_t self = task.forced.empty() ? text.size() : -1;
    const TextIndex::Match* best = nullptr;
    for (const TextIndex::Match& match : text.find(context.tokens(), self, found)) {
      if (match.length < least_) continue;
      if (best == nullptr || std::min(match.length, most_) > std::min(best->length, most_)) {
        best = &match;
      }
    }
    if (best == nullptr) return;
    // Short matches justify only short drafts.
    int64_t count = best->length < TextIndex::kContextMax
                        ? std::min(task.tokens_max, best->length + 1)
                        : task.tokens_max;
    for (int64_t j = 0; j < count; ++j) {
      TokenId token = own_token(text, task.forced, task.tokens, best->end, j);
      if (token == TextIndex::kSeparator) return;
      if (!task.add(token, match_confidence(best->length))) return;
    }
  }

  const int64_t least_, most_;
};

}  // namespace

std::unique_ptr<Drafter> make_ngram_drafter(const EngineConfig& config) {
  return std::make_unique<NgramDrafter>(config);
}

}  // namespace banyan
