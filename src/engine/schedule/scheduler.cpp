#include "engine/schedule/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/signed.h"
#include "engine/tiers/tiers.h"

namespace banyan {
namespace {

// Pages are reserved for at most this much future output of a running sequence, so that a request
// without a limit does not keep others out.
constexpr int64_t kExpectedTokensMax = 4096;
// The share of that output which is expected. It falls slowly while no sequence is retracted, and
// rises when one is.
constexpr double kShareMin = 0.1, kShareFall = 0.001, kShareRise = 0.2;

// How often a step waits for reads of a transfer to end, a millisecond each time, before a sequence
// is retracted instead.
constexpr int kWaitsMax = 10;

// How many of the rows for prompts and drafts a span of `rows` takes: every decoding sequence has
// one row of its own.
int64_t budget_rows(const Sequence& s, int64_t rows) {
  return s.decodes() ? rows - 1 : rows;
}

}  // namespace

void StepPlan::clear() {
  spans.clear();
  branches.clear();
  captures.clear();
  copies.clear();
}

int64_t StepPlan::row_of(int64_t span, int64_t span_row, int64_t position) const {
  const PlannedSpan& trunk = at(spans, span);
  int path = trunk.sequence->draft.path;
  if (path == 0) return span_row + position - trunk.first;
  int64_t row = 0;
  for (const PlannedSpan& s : spans) row += s.count;
  for (const PlannedBranch& branch : branches) {
    bool followed = branch.span == span && branch.path == path;
    if (followed && position >= branch.first) return row + position - branch.first;
    row += branch.count;
  }
  return span_row + position - trunk.first;
}

Scheduler::Scheduler(const SchedulerConfig& config)
    : config_(config),
      tree_(config.classes, config.units),
      holdings_(config.classes, tree_, config.radix_cache),
      queue_(config.radix_cache ? config.policy : without_tree(config.policy), config.aging_period,
             tree_, config.classes.prompt_only),
      followers_(config_.classes, queue_) {
  limit_prefill(config.prefill_rows_max);
  running_.reserve(as_size(config.running_max));
}

Scheduler::~Scheduler() {
  while (Sequence* s = any()) remove(s);
  while (!holds_.empty()) release(holds_.begin()->first);
}

void Scheduler::limit_prefill(int64_t rows) {
  CHECK(rows > 0 && rows <= config_.prefill_rows_max, "{} rows", rows);
  CHECK(rows % config_.classes.resume_alignment_tokens == 0, "{} rows", rows);
  prefill_rows_decoding_ = rows;
}

void Scheduler::use(std::unique_ptr<Tiers> tiers) {
  CHECK(config_.radix_cache && sequences_.empty());
  tiers_ = std::move(tiers);
}

// ---- Coming and going --------------------------------------------------------------------------

bool Scheduler::fits_alone(int64_t tokens) const {
  return holdings_.pages_for(tokens) <= config_.units[kPathClass];
}

void Scheduler::enqueue(std::unique_ptr<Sequence> sequence) {
  CHECK(fits_alone(sequence->tokens_max));
  Sequence& s = *sequence;
  s.arrival = ++arrivals_;
  s.root = tree_.open(s.name_space);
  if (s.deadline_ns > 0) deadlines_.insert({s.deadline_ns, &s});
  sequences_.emplace(s.id, std::move(sequence));
  waiting_clients_.enter(s.request.options.client);
  queue_.push(s);
}

int64_t Scheduler::waiting_tokens() const {
  int64_t tokens = 0;
  for (const auto& [id, s] : sequences_) {
    if (s->place == Sequence::Place::kRunning) {
      tokens += std::max<int64_t>(0, s->prompt_tokens - s->computed);
      continue;
    }
    auto reusable = s->reusable(config_.classes.prompt_only);
    bool attached = s->waiter.node != nullptr;  // under lpm
    int64_t cached = attached ? s->waiter.resumable : tree_.match(s->root, reusable).position();
    tokens += s->length() - cached;
  }
  return tokens;
}

void Scheduler::cancel(SequenceId id) {
  if (sequences_.contains(id)) cancelled_.push_back(id);
}

void Scheduler::hold(uint64_t key, const PrefixNamespace& name_space,
                     std::vector<PrefixToken> tokens) {
  release(key);
  if (!config_.radix_cache) return;
  Hold& hold = holds_[key];
  hold.tokens = std::move(tokens);
  hold.root = tree_.open(name_space);
  hold.waiter.tells = false;
  hold.waiter.tokens = hold.tokens;
  tree_.attach(hold.root, hold.waiter);
}

void Scheduler::release(uint64_t key) {
  auto found = holds_.find(key);
  if (found == holds_.end()) return;
  tree_.detach(found->second.waiter);
  tree_.close(found->second.root);
  holds_.erase(found);
}

std::unique_ptr<Sequence> Scheduler::remove(Sequence* sequence) {
  Sequence& s = *sequence;
  if (s.place != Sequence::Place::kRunning) waiting_clients_.leave(s.request.options.client);
  if (s.place == Sequence::Place::kRunning) {
    holdings_.publish(s, true);
    leave_running(s);
    holdings_.drop(s);
  } else if (s.place == Sequence::Place::kWaiting) {
    queue_.remove(s);
  } else if (s.place == Sequence::Place::kFollowing) {
    followers_.remove(s);
  }
  if (tiers_ != nullptr) tiers_->forget(s);
  tree_.close(s.root);
  deadlines_.erase({s.deadline_ns, &s});
  auto node = sequences_.extract(s.id);
  CHECK(!node.empty());
  return std::move(node.mapped());
}

std::unique_ptr<Sequence> Scheduler::remove_cancelled() {
  while (!cancelled_.empty()) {
    auto found = sequences_.find(cancelled_.back());
    cancelled_.pop_back();
    if (found != sequences_.end()) return remove(found->second.get());
  }
  return nullptr;
}

std::unique_ptr<Sequence> Scheduler::remove_expired(int64_t now_ns) {
  if (deadlines_.empty() || deadlines_.begin()->first > now_ns) return nullptr;
  return remove(deadlines_.begin()->second);
}

// ---- Planning a step ---------------------------------------------------------------------------

void Scheduler::plan(StepPlan& plan, bool in_flight) {
  plan.clear();
  if (tiers_ != nullptr) advance_tiers(in_flight && copied_);
  waits_left_ = kWaitsMax;
  rows_max_ = rows_left_ = config_.prefill_rows_max;
  expected_share_ = std::max(kShareMin, expected_share_ - kShareFall);
  run_on(plan, true);
  if (!plan.spans.empty()) {
    rows_left_ = std::max<int64_t>(0, rows_left_ - (rows_max_ - prefill_rows_decoding_));
    rows_max_ = prefill_rows_decoding_;
  }
  int64_t for_drafts = draft_rows(plan);
  rows_left_ -= for_drafts;
  run_on(plan, false);
  admit(plan);
  if (tiers_ != nullptr) look_ahead();
  // The rest is too small for a waiting prompt, or no prompt waits.
  if (rows_left_ >= config_.classes.resume_alignment_tokens) for_drafts += rows_left_;
  add_branches(plan, add_drafts(plan, for_drafts));
  plan_captures(plan);
  copied_ = !plan.copies.empty();
}

// Adds spans of the running sequences that decode, or of those that do not. Retraction shortens the
// list from its end.
void Scheduler::run_on(StepPlan& plan, bool decode) {
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& s = *running_[i];
    if (s.decodes() == decode && s.finish == FinishReason::kNone) add_span(s, plan);
  }
}

int64_t Scheduler::span_end(const Sequence& s) const {
  if (s.decodes()) return s.length();
  int64_t end = std::min(s.computed + rows_left_, s.length());
  int64_t alignment = config_.classes.resume_alignment_tokens;
  return end < s.prompt_tokens ? end / alignment * alignment : end;
}

// False if there was nothing to add, or if `s` itself had to be retracted.
bool Scheduler::add_span(Sequence& s, StepPlan& plan) {
  int64_t end = span_end(s);
  if (end <= s.computed) return false;
  while (!holdings_.reserve(s, end)) {
    bool alone = running_.size() == 1, may_wait = alone || --waits_left_ >= 0;
    if (tiers_ != nullptr && tiers_->give_way(alone, may_wait)) continue;
    CHECK(running_.size() > 1, "sequence {} does not fit alone", s.id);
    Sequence& last = last_admitted();
    take_span(last, plan);
    retract(last);
    if (&last == &s) return false;
  }
  rows_left_ -= budget_rows(s, end - s.computed);
  plan.spans.push_back(
      {.sequence = &s, .first = s.computed, .count = end - s.computed, .replayed = s.logged});
  return true;
}

// Ignores sequences that have finished.
Sequence& Scheduler::last_admitted() const {
  size_t i = running_.size();
  while (i > 0 && running_[i - 1]->finish != FinishReason::kNone) --i;
  CHECK(i > 0);
  return *running_[i - 1];
}

void Scheduler::take_span(Sequence& s, StepPlan& plan) {
  auto found = std::ranges::find(plan.spans, &s, &PlannedSpan::sequence);
  if (found == plan.spans.end()) return;
  rows_left_ += budget_rows(s, found->count);
  plan.spans.erase(found);
}

// Rows to keep from prompts for the drafts of decoding sequences: at most half, and a prompt can
// always continue.
int64_t Scheduler::draft_rows(const StepPlan& plan) const {
  int64_t wanted = 0;
  for (const PlannedSpan& span : plan.spans) wanted += std::ssize(span.sequence->draft.tokens);
  int64_t alignment = config_.classes.resume_alignment_tokens;
  int64_t share = std::min(rows_max_ / 2, rows_max_ - alignment) - (rows_max_ - rows_left_);
  return std::clamp<int64_t>(share, 0, wanted);
}

// Appends draft rows to spans that end at the last known token, as far as there are rows and pages.
// Returns how many rows are left.
int64_t Scheduler::add_drafts(StepPlan& plan, int64_t rows) {
  for (PlannedSpan& span : plan.spans) {
    Sequence& s = *span.sequence;
    if (rows == 0) return 0;
    if (s.draft.tokens.empty() || span.end() != s.length()) continue;
    int64_t drafts = std::min(rows, std::ssize(s.draft.tokens));
    if (!holdings_.reserve(s, span.end() + drafts)) {
      int64_t room = s.pages() * config_.classes.page_size_tokens - span.end();
      drafts = std::min(drafts, room);
    }
    span.drafts = drafts;
    span.count += drafts;
    rows -= drafts;
  }
  return rows;
}

bool Scheduler::follow(const StepPlan& before, std::span<const int64_t> drafts, StepPlan& plan) {
  plan.clear();
  bool joined = waiting() > 0 && std::ssize(running_) < config_.running_max;
  bool alone = before.branches.empty() && before.captures.empty() && before.copies.empty();
  if (joined || !alone || before.spans.size() != running_.size()) return false;
  int64_t drafts_max = std::ranges::max(drafts);
  if (drafts_max * std::ssize(drafts) > config_.prefill_rows_max) return false;
  for (size_t i = 0; i < drafts.size(); ++i) {
    const PlannedSpan& span = before.spans[i];
    Sequence& s = *span.sequence;
    int64_t end = span.end() + drafts_max + 1;
    bool decodes = span.count == span.drafts + 1 && s.decodes();
    if (!decodes || end > s.tokens_max || passes_snapshot(s, end)) return false;
    if (!holdings_.reserve(s, end)) return false;
    plan.spans.push_back({.sequence = &s,
                          .first = span.end(),
                          .count = drafts[i] + 1,
                          .drafts = drafts[i],
                          .replayed = span.drafts});
  }
  return true;
}

// Whether a snapshot may be due before `end`. Those of the prompt are taken already.
bool Scheduler::passes_snapshot(const Sequence& s, int64_t end) const {
  const StateClasses& classes = config_.classes;
  if (!classes.keeps_snapshots() || !config_.radix_cache || classes.prompt_only) return false;
  int64_t alignment = classes.snapshot_alignment_tokens;
  return (s.computed - s.logged) / alignment != end / alignment;
}

void Scheduler::locate(const StepPlan* before, StepPlan& plan) {
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    PlannedSpan& span = plan.spans[i];
    if (span.sequence == nullptr) continue;
    span.first = before != nullptr ? before->spans[i].end() : span.sequence->computed;
    span.replayed = before != nullptr ? before->spans[i].drafts : span.sequence->logged;
  }
}

void Scheduler::add_branches(StepPlan& plan, int64_t rows) {
  if (!config_.classes.draft_trees) return;
  for (int64_t i = 0; i < std::ssize(plan.spans); ++i) {
    const PlannedSpan& span = at(plan.spans, i);
    Sequence& s = *span.sequence;
    if (span.end() - span.drafts != s.length()) continue;
    for (int path = 1; path <= s.draft.branch_count; ++path) {
      Sequence::Branch& branch = at(s.draft.branches, path - 1);
      int64_t count = std::min(rows, std::ssize(branch.tokens) - branch.shared);
      if (count == 0) return;
      int64_t first = s.length() + branch.shared;
      bool grows = branch.shared < span.drafts &&
                   holdings_.start_branch(s, branch, first, first + count, plan.copies);
      if (!grows) continue;
      branch.tokens.resize(as_size(branch.shared + count));
      plan.branches.push_back(
          {.sequence = &s, .path = path, .span = i, .first = first, .count = count});
      rows -= count;
    }
  }
}

void Scheduler::settle_branches(const StepPlan& plan) {
  for (const PlannedBranch& planned : plan.branches) {
    if (planned.sequence == nullptr) continue;
    Sequence& s = *planned.sequence;
    Sequence::Branch& branch = at(s.draft.branches, planned.path - 1);
    if (s.draft.path == planned.path) holdings_.follow_branch(s, branch);
    holdings_.end_branch(branch);
  }
}

void Scheduler::count_in_flight(const UnitSet& units, int64_t change) {
  for (int c = 0; c < config_.classes.count; ++c) {
    if (units[c] >= 0) at(in_flight_, c) += change;
  }
}

void Scheduler::plan_captures(StepPlan& plan) {
  if (!config_.classes.keeps_snapshots() || !config_.radix_cache) return;
  int64_t alignment = config_.classes.snapshot_alignment_tokens;
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const PlannedSpan& span = plan.spans[i];
    const Sequence& s = *span.sequence;
    int64_t end = span.end() - span.drafts;
    if (config_.classes.prompt_only) end = std::min(end, s.prompt_tokens);
    int64_t first = span.first - span.replayed;
    for (int64_t p = first / alignment * alignment + alignment; p <= end; p += alignment) {
      if (!wants_snapshot(s, p)) continue;
      UnitSet slots = holdings_.take_snapshots();
      if (slots == UnitSet()) return;
      plan.captures.push_back({static_cast<int64_t>(i), p - 1, slots});
      count_in_flight(slots, 1);
    }
  }
}

// In the prompt: before its end, where a request missed a snapshot, and at intervals. In the
// output: wherever it can be resumed from, but only the last one is kept.
bool Scheduler::wants_snapshot(const Sequence& s, int64_t position) const {
  int64_t alignment = config_.classes.snapshot_alignment_tokens;
  int64_t interval = std::max<int64_t>(1, config_.snapshot_interval_tokens / alignment) * alignment;
  if (position > s.prompt_tokens) return true;
  return position == (s.prompt_tokens - 1) / alignment * alignment || position % interval == 0 ||
         std::ranges::find(s.wanted, position) != s.wanted.end();
}

void Scheduler::commit(const StepPlan& plan) {
  int64_t page = config_.classes.page_size_tokens;
  for (const PlannedCapture& capture : plan.captures) count_in_flight(capture.slots, -1);
  for (const PlannedSpan& span : plan.spans) {
    if (span.sequence == nullptr) continue;
    Sequence& s = *span.sequence;
    s.computed = span.end() - (span.drafts - span.kept);
    s.logged = span.kept;
    bool prompt_read = span.first < s.prompt_tokens && s.computed >= s.prompt_tokens;
    holdings_.publish(s, prompt_read);
    followers_.withdraw(s, s.lease.end() / page);
  }
  for (const PlannedCapture& capture : plan.captures) {
    if (at(plan.spans, capture.span).sequence == nullptr) {
      tree_.give_back(capture.slots);
      continue;
    }
    Sequence& s = *at(plan.spans, capture.span).sequence;
    int64_t end = capture.position + 1;
    RadixNode* node = RadixTree::node_ending_at(s.lease, end);
    if (tiers_ != nullptr) tiers_->passes(*node, end > s.prompt_tokens);
    tree_.add_snapshots(node, capture.slots);
    if (end <= s.prompt_tokens) continue;
    if (s.last_snapshot > 0) {
      tree_.drop_snapshots(RadixTree::node_ending_at(s.lease, s.last_snapshot));
    }
    s.last_snapshot = end;
  }
  for (const PlannedSpan& span : plan.spans) {
    if (span.sequence != nullptr) followers_.release_reached(*span.sequence);
  }
}

// ---- Admission ---------------------------------------------------------------------------------

void Scheduler::admit(StepPlan& plan) {
  while (running() < config_.running_max) {
    Sequence* s = queue_.next();
    bool rows = rows_left_ >= config_.classes.resume_alignment_tokens;
    if (s == nullptr || (!rows && !may_step_aside(*s))) return;
    PrefixMatch match = holdings_.match(*s);
    if (queue_.correct(*s, match.node->end) || followers_.follow(*s, match)) continue;
    bool alone = running_.empty() && (tiers_ == nullptr || !tiers_->others_load(*s));
    if (!alone && !has_room(*s, match)) return;
    if (!rows) looked_at_ = s->id;
    if (tiers_ != nullptr && step_aside(*s, match)) continue;
    if (!rows || !start(*s, match, plan)) return;
  }
}

int64_t Scheduler::pages_expected(const Sequence& s) const {
  double output = std::min(s.tokens_max - s.length(), kExpectedTokensMax);
  return holdings_.pages_for(s.length() + static_cast<int64_t>(expected_share_ * output));
}

// The most units it may hold at once. For a class with a window: those within reach while a chunk
// of the prompt is read.
int64_t Scheduler::units_expected(const Sequence& s, int unit_class) const {
  const UnitClass& c = config_.classes[unit_class];
  int64_t pages = pages_expected(s);
  if (!c.windowed()) return pages;
  int64_t in_reach = c.window_tokens + std::min(s.length(), config_.prefill_rows_max);
  return std::min(pages, holdings_.pages_for(in_reach) + 1);
}

// Those of them that it does not hold yet.
int64_t Scheduler::units_missing(const Sequence& s, int unit_class) const {
  int64_t held = std::ssize(s.held(unit_class).units) - s.held(unit_class).first;
  return std::max<int64_t>(0, units_expected(s, unit_class) - held);
}

bool Scheduler::has_room(const Sequence& s, const PrefixMatch& match) const {
  UnitCounts coming = {};
  if (tiers_ != nullptr) tiers_->add_coming(s, coming);
  for (int c = 0; c < config_.classes.count; ++c) {
    if (!config_.classes[c].paged()) continue;  // every running sequence has a slot
    int64_t units = tree_.use(c).available();
    int64_t wanted = units_expected(s, c) - at(coming, c);
    if (c == kPathClass) {
      units -= tree_.unpinned_pages(match.node);
      if (tiers_ != nullptr) units -= tiers_->promised_pages(s);
      wanted -= match.node->end / config_.classes.page_size_tokens;
    }
    for (const Sequence* r : running_) units -= units_missing(*r, c);
    if (wanted > units) return false;
  }
  return true;
}

bool Scheduler::start(Sequence& s, const PrefixMatch& match, StepPlan& plan) {
  queue_.admit(s);
  if (!holdings_.start(s, match, plan.copies)) {
    queue_.push(s);
    bool lone = running_.empty();
    // It will be admitted later.
    if (lone && tiers_ != nullptr && tiers_->give_way(true, true)) return true;
    CHECK(!lone, "sequence {} does not fit alone", s.id);
    return false;
  }
  s.place = Sequence::Place::kRunning;
  waiting_clients_.leave(s.request.options.client);
  auto pages = as_size(holdings_.pages_for(s.tokens_max));
  for (int c = 0; c < config_.classes.count; ++c) {
    if (config_.classes[c].paged()) s.held(c).units.reserve(pages);
  }
  running_.push_back(&s);
  ++admitted_;
  if (tiers_ != nullptr) tiers_->admitted(s);
  if (s.cached_tokens < 0) {
    s.admission = admitted_;
    s.cached_tokens =
        std::max<int64_t>(0, std::min(s.computed, s.prompt_tokens) - s.prefilled_tokens);
    cached_tokens_ += s.cached_tokens;
  }
  // The match has pages beyond a missing snapshot: take that snapshot this time.
  int64_t alignment = config_.classes.resume_alignment_tokens;
  int64_t missed = match.deepest->end / alignment * alignment;
  if (config_.classes.needs_snapshots() && missed > s.computed) s.wanted.push_back(missed);
  if (config_.radix_cache) followers_.announce(s);
  return add_span(s, plan);
}

void Scheduler::retract(Sequence& s) {
  ++retracted_;
  expected_share_ = std::min(1.0, expected_share_ + kShareRise);
  holdings_.publish(s, true);
  leave_running(s);
  holdings_.drop(s);
  s.restore = {};
  waiting_clients_.enter(s.request.options.client);
  queue_.push(s);
}

void Scheduler::leave_running(Sequence& s) {
  if (tiers_ != nullptr && s.last_snapshot > 0) {
    tiers_->stays(*RadixTree::node_ending_at(s.lease, s.last_snapshot));
  }
  s.wanted.clear();
  s.last_snapshot = 0;
  s.logged = 0;
  followers_.release_all(s);
  std::erase(running_, &s);
}

// ---- Tiers -------------------------------------------------------------------------------------

void Scheduler::advance_tiers(bool copies_in_flight) {
  tiers_->advance([&] {
    TierRoom room = tier_room();
    room.read_later = copies_in_flight;
    return room;
  });
  while (Sequence* s = tiers_->take_ready()) queue_.push(*s);
}

// Units that the running sequences are not expected to need.
TierRoom Scheduler::tier_room() const {
  TierRoom room{.grows = !running_.empty()};
  for (int c = 0; c < config_.classes.count; ++c) {
    int64_t units = tree_.use(c).available();
    if (!config_.classes[c].paged()) units -= config_.running_max - running();
    for (const Sequence* r : running_) {
      if (config_.classes[c].paged()) units -= units_missing(*r, c);
    }
    at(room.units, c) = std::max<int64_t>(0, units);
  }
  return room;
}

// Whether its prefix may be loaded though there are no rows for it in this step.
bool Scheduler::may_step_aside(const Sequence& s) const {
  return tiers_ != nullptr && !s.restore.settled && s.id != looked_at_ &&
         tiers_->may_step_aside(config_.running_max - running());
}

bool Scheduler::step_aside(Sequence& s, const PrefixMatch& match) {
  if (!tiers_->offer(s, match, true)) return false;
  queue_.remove(s);
  s.place = Sequence::Place::kRestoring;
  return true;
}

// The prefix of the next sequence in the queue may be loaded while it waits.
void Scheduler::look_ahead() {
  Sequence* s = queue_.next();
  if (s == nullptr || s->id == looked_at_ || s->restore.settled || s->restore.transfer != 0) return;
  PrefixMatch match = holdings_.match(*s);
  if (!has_room(*s, match)) return;
  looked_at_ = s->id;
  tiers_->offer(*s, match, false);
}

// ---- Invariants --------------------------------------------------------------------------------

void Scheduler::check() const {
  UnitCounts held = tree_.check();
  for (const Sequence* s : running_) holdings_.check(*s, held);
  if (tiers_ != nullptr) tiers_->add_held(held);
  for (int c = 0; c < config_.classes.count; ++c) {
    auto i = as_size(c);
    int64_t all = held[i] + in_flight_[i];
    RadixTree::Use use = tree_.use(c);
    CHECK(all + use.free == use.total, "{}: {} held, {} free of {}", describe(config_.classes[c]),
          all, use.free, use.total);
  }
  check_clients();
}

void Scheduler::check_clients() const {
  CHECK(waiting_clients_.total() == waiting(), "{} of {}", waiting_clients_.total(), waiting());
  FairShares counted;
  for (const auto& [id, s] : sequences_) {
    if (s->place != Sequence::Place::kRunning) counted.enter(s->request.options.client);
  }
  for (const auto& [id, s] : sequences_) {
    const std::string& client = s->request.options.client;
    // The name may be a key, which no log should have.
    CHECK(waiting_clients_.held_by(client) == counted.held_by(client), "{} of {}",
          waiting_clients_.held_by(client), counted.held_by(client));
  }
}

}  // namespace banyan
