#include "engine/drafters/draft_model.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"
#include "base/threads/thread_pool.h"
#include "engine/batch_builder.h"
#include "engine/drafters/coupled_draws.h"
#include "engine/schedule/holdings.h"
#include "engine/schedule/scheduler.h"
#include "engine/sequence.h"
#include "engine/startup/memory_plan.h"
#include "kernels/select.h"
#include "models/load.h"

namespace banyan {
namespace {

// Models with the same tokenizer may pad their embeddings to different multiples, by up to this
// many rows.
constexpr int64_t kPaddingMax = 1024;

// The draft model's state for one of the engine's sequences.
struct Copy {
  // The tokens and the units that hold their states. `computed` counts known tokens only, ...
  Sequence s;
  int64_t ahead = 0;  // ... this one also the draft rows after them, whose updates are in the log
  int64_t used = 0;   // number of the last call that used it
  bool fresh = true;  // the copies that initialise its units are still pending
};

// All copies, by sequence id. Owns their units in the draft model's pools.
class Copies {
 public:
  Copies(const StateClasses& classes, const UnitCounts& units)
      : classes_(classes),
        tree_(classes, units),
        // Recurrent state is not shared: the draft model takes no snapshots for the tree.
        holdings_(classes, tree_, !classes.needs_snapshots()) {}
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  ~Copies() {
    while (!all_.empty()) drop(*all_.back());
  }

  const StateClasses& classes() const { return classes_; }
  void begin_call() { ++call_; }
  Copy* find(const Sequence& s);
  // Returns the sequence's copy, rolled back to where both agree; null if there is no room.
  Copy* get(const Sequence& s, std::vector<UnitCopy>& copies);
  // Allocates pages up to position `end`, evicting copies that this call has not used if necessary.
  bool reserve(Copy& copy, int64_t end);
  void publish(Copy& copy) { holdings_.publish(copy.s, false); }
  void end(const Sequence& s);
  void drop(Copy& copy);
  void forget() { tree_.flush(); }

 private:
  void sync(Copy& copy, const Sequence& s);
  bool start(Copy& copy, std::vector<UnitCopy>& copies);
  bool make_room();

  const StateClasses classes_;
  RadixTree tree_;
  Holdings holdings_;
  std::vector<std::unique_ptr<Copy>> all_;
  int64_t call_ = 0;
};

Copy* Copies::find(const Sequence& s) {
  auto found = std::ranges::find_if(all_, [&](const auto& copy) { return copy->s.id == s.id; });
  return found == all_.end() ? nullptr : found->get();
}

// Keeps the draft rows that were accepted and rolls back the rest. Recomputes the last token at
// least, since its logits are needed; recurrent states can go back to the beginning of the log.
void Copies::sync(Copy& copy, const Sequence& s) {
  int64_t kept = copy.s.computed, stored = kept - copy.s.logged;
  while (kept < std::min(copy.ahead, s.length()) && at(copy.s.tokens, kept) == at(s.tokens, kept)) {
    ++kept;
  }
  kept = std::min(kept, s.length() - 1);
  if (classes_.logs_drafts()) {
    kept = std::max(kept, stored);
    copy.s.logged = kept - stored;
  }
  copy.s.computed = copy.ahead = kept;
  copy.s.tokens.resize(as_size(kept));
  auto rest = std::span(s.tokens).subspan(as_size(kept));
  copy.s.tokens.insert(copy.s.tokens.end(), rest.begin(), rest.end());
}

Copy* Copies::get(const Sequence& s, std::vector<UnitCopy>& copies) {
  Copy* copy = find(s);
  if (copy == nullptr) {
    all_.push_back(std::make_unique<Copy>());
    copy = all_.back().get();
    copy->s.id = s.id;
    copy->s.name_space = s.name_space;
    copy->s.prompt_tokens = s.prompt_tokens;
    copy->s.request.options.max_new_tokens = 1;  // requests logits
    copy->s.tokens.reserve(as_size(s.tokens_max) + 1);
    copy->s.tokens = s.tokens;
    for (int c = 0; c < classes_.count; ++c) {
      auto pages = as_size(holdings_.pages_for(s.tokens_max));
      if (classes_[c].paged()) copy->s.held(c).units.reserve(pages);
    }
    copy->s.root = tree_.open(copy->s.name_space);
    copy->used = call_;
    if (!start(*copy, copies)) return nullptr;
  }
  copy->used = call_;
  sync(*copy, s);
  return copy;
}

// Drops the copy if there is no room for it.
bool Copies::start(Copy& copy, std::vector<UnitCopy>& copies) {
  size_t before = copies.size();
  while (true) {
    PrefixMatch match = holdings_.match(copy.s);
    int64_t missing = holdings_.pages_for(copy.s.length() + 1 - match.node->end);
    int64_t available = tree_.use(kPathClass).available() - tree_.unpinned_pages(match.node);
    if (missing <= available && holdings_.start(copy.s, match, copies)) {
      copy.ahead = copy.s.computed;
      return true;
    }
    copies.resize(before);
    if (make_room()) continue;
    drop(copy);
    return false;
  }
}

bool Copies::reserve(Copy& copy, int64_t end) {
  while (!holdings_.reserve(copy.s, end)) {
    if (!make_room()) return false;
  }
  return true;
}

// Evicts the least recently used copy.
bool Copies::make_room() {
  auto oldest = std::ranges::min_element(all_, {}, &Copy::used);
  if (oldest == all_.end() || (*oldest)->used == call_) return false;
  drop(**oldest);
  return true;
}

void Copies::drop(Copy& copy) {
  if (copy.s.pages() > 0) holdings_.publish(copy.s, true);
  holdings_.drop(copy.s);
  tree_.close(copy.s.root);
  std::erase_if(all_, [&](const auto& one) { return one.get() == &copy; });
}

void Copies::end(const Sequence& s) {
  Copy* copy = find(s);
  if (copy == nullptr) return;
  sync(*copy, s);
  drop(*copy);
}

class DraftModelDrafter final : public Drafter {
 public:
  DraftModelDrafter(const EngineConfig& config, std::unique_ptr<Runner> runner, int64_t vocabulary)
      : runner_(std::move(runner)),
        rows_max_(step_rows_max(config, runner_->info())),
        copies_(runner_->classes(), unit_counts(runner_->info())),
        draws_(runner_->info().vocabulary, vocabulary) {}

  bool computes() const override { return true; }

  // Prefills prompts along with the model, chunk by chunk.
  void observe(const StepPlan& plan, bool paused) override {
    copies_.begin_call();
    if (paused) return;
    begin_pass();
    int64_t rows = rows_max_;
    for (const PlannedSpan& span : plan.spans) {
      if (span.sequence == nullptr || span.end() >= span.sequence->prompt_tokens) continue;
      const Sequence& s = *span.sequence;
      if (s.request.options.draft_tokens_max.value_or(1) == 0) continue;
      Copy* copy = wanted(s, rows, 0);
      if (copy != nullptr) read(*copy, std::min(span.end(), s.length() - 1), rows);
    }
    if (!plan_.spans.empty()) run_pass();
    settle_pass();
  }

  void propose(std::span<DraftTask* const> tasks) override {
    begin_pass();
    int64_t rows = rows_max_;
    for (DraftTask* task : tasks) start(*task, rows);
    if (plan_.spans.empty()) return;
    const DrawResults* results = &run_pass();
    settle_pass();
    while (!active_.empty()) {
      take(*results);
      if (active_.empty()) return;
      begin_pass();
      for (Active& a : active_) {
        plan_.spans.push_back({.sequence = &a.copy->s,
                               .first = a.copy->ahead,
                               .count = 1,
                               .drafts = 1,
                               .held = a.copy->ahead - a.copy->s.computed});
        ++a.copy->ahead;
        draws_.add(*a.task);
      }
      results = &run_pass();
    }
  }

  void end(const Sequence& s) override { copies_.end(s); }
  void forget() override { copies_.forget(); }

 private:
  // A draft being built.
  struct Active {
    DraftTask* task = nullptr;
    Copy* copy = nullptr;
  };
  // What a pass computes of a sequence's known tokens.
  struct Reading {
    Copy* copy = nullptr;
    int64_t known = 0;  // number of positions with known tokens
  };

  void begin_pass() {
    plan_.clear();
    draws_.clear();
    readings_.clear();
  }

  // Returns the sequence's copy; null if it gets no drafts now.
  Copy* wanted(const Sequence& s, int64_t rows, int64_t forced) {
    const StateClasses& classes = runner_->classes();
    bool fits = s.length() + forced < runner_->info().context_length_tokens;
    if (!fits || rows < classes.resume_alignment_tokens) return nullptr;
    return copies_.get(s, plan_.copies);
  }

  // Adds a span of the copy's tokens up to `end`, limited by rows and pages. False if it falls
  // short of `end` or is empty. Its states take in what the log has of accepted drafts.
  bool read(Copy& copy, int64_t end, int64_t& rows) {
    Sequence& s = copy.s;
    int64_t first = copy.ahead, last = std::min(end, first + rows);
    int64_t alignment = runner_->classes().resume_alignment_tokens;
    if (last < s.prompt_tokens) last = last / alignment * alignment;
    if (last <= first) {
      if (copy.fresh) copies_.drop(copy);
      return false;
    }
    auto tokens = std::span(s.tokens).subspan(as_size(first));
    auto foreign = [&](TokenId token) { return token >= runner_->info().vocabulary; };
    if (std::ranges::any_of(tokens, foreign) || !copies_.reserve(copy, last)) {
      copies_.drop(copy);
      return false;
    }
    rows -= last - first;
    plan_.spans.push_back({.sequence = &s,
                           .first = first,
                           .count = last - first,
                           .replayed = std::exchange(s.logged, 0)});
    readings_.push_back({&copy, last});
    copy.ahead = last;
    copy.fresh = false;
    return last == end;
  }

  void start(DraftTask& task, int64_t& rows) {
    const Sequence& s = *task.sequence;
    Copy* copy = wanted(s, rows, std::ssize(task.forced));
    if (copy == nullptr || copy->s.computed >= s.length()) return;
    bool whole = s.length() - copy->ahead + std::ssize(task.forced) <= rows &&
                 std::ssize(task.forced) <= runner_->classes().draft_rows_max;
    if (whole) {
      copy->s.tokens.insert(copy->s.tokens.end(), task.forced.begin(), task.forced.end());
    }
    // The last row has logits, from which the first draft token is drawn.
    if (!read(*copy, copy->s.length() - (whole ? 0 : 1), rows) || !whole) return;
    readings_.back().known = s.length();
    plan_.spans.back().drafts = std::ssize(task.forced);
    active_.push_back({&task, copy});
    draws_.add(task);
  }

  const DrawResults& run_pass() {
    build_batch(plan_, runner_->classes(), batch_, uses_);
    Status valid = batch_.validate(runner_->info().vocabulary, runner_->classes());
    CHECK(valid.has_value(), "{}", valid.error().message);
    runner_->launch(batch_, draws_.draws());
    return runner_->collect();
  }

  // Publishes the pages of known tokens for sharing.
  void settle_pass() {
    for (const Reading& reading : readings_) {
      reading.copy->s.computed = reading.known;
      copies_.publish(*reading.copy);
    }
  }

  // Appends the drawn tokens to the drafts, and removes drafts that end.
  void take(const DrawResults& results) {
    size_t row = 0;
    for (Active& a : active_) {
      bool follows = draws_.take(results, row++, *a.task) &&
                     a.copy->ahead - a.copy->s.computed < runner_->classes().draft_rows_max;
      if (follows) a.copy->s.tokens.push_back(a.task->tokens.back());
      int64_t length = a.copy->s.length();
      if (!follows || length >= runner_->info().context_length_tokens ||
          !copies_.reserve(*a.copy, length)) {
        a.copy = nullptr;
      }
    }
    std::erase_if(active_, [](const Active& a) { return a.copy == nullptr; });
  }

  const std::unique_ptr<Runner> runner_;
  const int64_t rows_max_;
  Copies copies_;
  CoupledDraws draws_;

  // Reused by every pass.
  StepPlan plan_;
  Batch batch_;
  std::vector<LogitRowUse> uses_;
  std::vector<Reading> readings_;
  std::vector<Active> active_;
};

// Bytes of state per token.
int64_t token_bytes(const LoadedModel& model, const StateClasses& classes) {
  UnitCounts bytes = unit_bytes(model.states, classes);
  int64_t paged = 0;
  for (int c = 0; c < classes.count; ++c) {
    if (classes[c].paged()) paged += at(bytes, c);
  }
  return paged;
}

// The draft model's config: the engine's, with the draft model's own settings.
EngineConfig draft_config(const EngineConfig& config) {
  EngineConfig draft = config;
  draft.model_path = config.draft_model_path;
  draft.gguf_path.clear();
  draft.quantization = config.draft_quantization;
  draft.quantization_overrides.clear();
  draft.adapters.clear();
  draft.adapters_max = 0;
  draft.mla_prefill = "absorbed";
  draft.moba_block_tokens = draft.moba_top_k = 0;  // those of the other model
  draft.moba_decode.reset();
  draft.expert_counts = draft.state_digest = false;
  draft.drafters.clear();
  draft.draft_model_path.clear();
  return draft;
}

Status check_vocabularies(const EngineConfig& config, const ModelInfo& model,
                          const ModelInfo& draft) {
  if (std::abs(model.vocabulary - draft.vocabulary) <= kPaddingMax) return {};
  return invalid_argument(
      "the draft model {} has {} tokens in its vocabulary, but {} has {}: they must be the same; "
      "take a smaller model of the same family",
      config.draft_model_path, draft.vocabulary, config.model_path, model.vocabulary);
}

}  // namespace

bool loads_draft_model(const EngineConfig& config) {
  return std::ranges::find(config.drafters, "draft") != config.drafters.end();
}

Result<std::unique_ptr<Runner>> load_draft_model(const EngineConfig& config,
                                                 std::span<const Family> families) {
  EngineConfig model_config = config, draft = draft_config(config);
  model_config.state_digest = false;
  ThreadPool threads(1);
  const KernelTable* kernels = TRY(select_kernels(config.kernels));
  LoadContext dry{.kernels = kernels, .threads = &threads, .dry = true, .families = families};
  LoadedModel model = TRY(load_model(model_config, dry)), own = TRY(load_model(draft, dry));
  TRY(check_vocabularies(config, model.model->info(), own.model->info()));
  if (draft.context_length_tokens > 0) {
    draft.context_length_tokens =
        std::min(draft.context_length_tokens, own.model->info().context_length_tokens);
  }
  double model_bytes =
      token_bytes(model, TRY(classify_states(model.states, config.page_size_tokens)));
  double own_bytes = token_bytes(own, TRY(classify_states(own.states, config.page_size_tokens)));
  // Of the memory left after both models' weights, the draft model gets its share by bytes per
  // token.
  double available = DeviceQueue(*kernels->device).available_bytes();
  double after_own = available - own.counts.weight_bytes;
  double after_both = after_own - model.counts.weight_bytes;
  double share = own_bytes / std::max(model_bytes + own_bytes, 1.0) * after_both / after_own;
  draft.memory_fraction = std::max(0.01, config.memory_fraction * share);
  return Runner::load(draft, {}, families);
}

std::unique_ptr<Drafter> make_draft_model_drafter(const EngineConfig& config,
                                                  std::unique_ptr<Runner> draft,
                                                  int64_t vocabulary) {
  return std::make_unique<DraftModelDrafter>(config, std::move(draft), vocabulary);
}

}  // namespace banyan
