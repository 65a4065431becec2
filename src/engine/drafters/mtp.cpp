#include "engine/drafters/mtp.h"

#include <algorithm>
#include <vector>

#include "base/signed.h"
#include "engine/drafters/coupled_draws.h"
#include "engine/schedule/scheduler.h"
#include "engine/sequence.h"

namespace banyan {
namespace {

class MtpDrafter final : public Drafter {
 public:
  explicit MtpDrafter(Runner& runner)
      : runner_(runner), draws_(runner.predicted_vocabulary(), runner.info().vocabulary) {}

  bool reads_steps() const override { return true; }
  bool drafts_ahead() const override { return runner_.can_follow(); }
  bool computes() const override { return true; }

  void observe(const StepPlan& plan, bool paused) override {
    begin();
    int64_t row = 0;
    for (int64_t i = 0; i < std::ssize(plan.spans); ++i) {
      const PlannedSpan& span = at(plan.spans, i);
      if (span.sequence != nullptr) add_known(plan, i, row, paused);
      row += span.count;
    }
    if (batch_.rows() > 0) runner_.predict(batch_, hidden_rows_, false);
  }

  void propose(std::span<DraftTask* const> tasks) override {
    active_.clear();
    for (DraftTask* task : tasks) {
      // The hidden states after the forced tokens are not known yet.
      if (!task->forced.empty()) continue;
      auto found = std::ranges::find(seen_, task->sequence);
      if (found != seen_.end()) {
        active_.push_back({task, narrow<int32_t>(found - seen_.begin())});
      }
    }
    while (!active_.empty()) {
      draw();
      if (!active_.empty()) predict_next();
    }
  }

 private:
  // A draft being built, and the row of its last output in the runner's predictions.
  struct Active {
    DraftTask* task = nullptr;
    int32_t row = 0;
  };

  void begin() {
    batch_.clear();
    hidden_rows_.clear();
    seen_.clear();
  }

  void add_span(const Sequence& s, int64_t first, int64_t count) {
    batch_.spans.push_back({.row_begin = narrow<int32_t>(batch_.rows()),
                            .row_count = narrow<int32_t>(count),
                            .first_position = narrow<int32_t>(first),
                            .page_begin = narrow<int32_t>(batch_.tables[kPathClass].units.size())});
    batch_.adapters.push_back(-1);
    batch_.prompt_tokens.push_back(narrow<int32_t>(s.prompt_tokens));
    for (int c = 0; c < runner_.classes().count; ++c) {
      const std::vector<int32_t>& units = s.held(c).units;
      std::vector<int32_t>& table = at(batch_.tables, c).units;
      table.insert(table.end(), units.begin(), units.end());
    }
  }

  void add_row(TokenId token, int64_t position, int32_t hidden_row) {
    batch_.tokens.push_back(token);
    batch_.positions.push_back(narrow<int32_t>(position));
    hidden_rows_.push_back(hidden_row);
  }

  // Adds the span's rows whose next token is known. Prompt rows always run, even when paused or for
  // a sequence without drafts, since other sequences may share their pages.
  void add_known(const StepPlan& plan, int64_t index, int64_t row, bool paused) {
    const PlannedSpan& span = at(plan.spans, index);
    const Sequence& s = *span.sequence;
    paused = paused || s.request.options.draft_tokens_max == 0;
    int64_t end = std::min(span.end() - (span.drafts - span.kept), s.length() - 1);
    if (paused) end = std::min(end, s.prompt_tokens - 1);
    if (s.finish != FinishReason::kNone || end <= span.first) return;
    add_span(s, span.first, end - span.first);
    for (int64_t i = span.first; i < end; ++i) {
      add_row(at(s.tokens, i + 1), i, narrow<int32_t>(plan.row_of(index, row, i)));
    }
    batch_.logit_rows.push_back(narrow<int32_t>(batch_.rows() - 1));
    seen_.push_back(end == s.length() - 1 ? &s : nullptr);
  }

  // Draws the next token of each active draft from its last output; removes drafts that end.
  void draw() {
    draws_.clear();
    rows_.clear();
    for (const Active& a : active_) {
      draws_.add(*a.task);
      rows_.push_back(a.row);
    }
    const DrawResults& results = runner_.draw_predicted(rows_, draws_.draws());
    for (size_t i = 0; i < active_.size(); ++i) {
      Active& a = active_[i];
      if (!draws_.take(results, i, *a.task) || !has_page(*a.task)) a.task = nullptr;
    }
    std::erase_if(active_, [](const Active& a) { return a.task == nullptr; });
  }

  // Whether there is a page for the row of the draft's last token.
  bool has_page(const DraftTask& task) const {
    int64_t position = task.sequence->length() + std::ssize(task.tokens) - 2;
    return position < task.sequence->pages() * runner_.classes().page_size_tokens;
  }

  void predict_next() {
    begin();
    for (Active& a : active_) {
      const Sequence& s = *a.task->sequence;
      int64_t position = s.length() + std::ssize(a.task->tokens) - 2;
      add_span(s, position, 1);
      add_row(a.task->tokens.back(), position, a.row);
      a.row = narrow<int32_t>(batch_.logit_rows.size());
      batch_.logit_rows.push_back(narrow<int32_t>(batch_.rows() - 1));
    }
    runner_.predict(batch_, hidden_rows_, true);
  }

  Runner& runner_;
  Batch batch_;
  std::vector<int32_t> hidden_rows_;
  std::vector<const Sequence*> seen_;  // of the outputs; null: draft starts elsewhere
  std::vector<Active> active_;
  CoupledDraws draws_;
  std::vector<int32_t> rows_;
};

}  // namespace

std::unique_ptr<Drafter> make_mtp_drafter(Runner& runner) {
  return std::make_unique<MtpDrafter>(runner);
}

}  // namespace banyan
