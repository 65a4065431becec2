#include "engine/tiers/transfer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

CacheStorageStats::Miss miss_of(TierOutcome outcome) {
  switch (outcome) {
    case TierOutcome::kAbsent:
      return CacheStorageStats::kAbsent;
    case TierOutcome::kChecksum:
      return CacheStorageStats::kChecksum;
    case TierOutcome::kIdentity:
      return CacheStorageStats::kIdentity;
    case TierOutcome::kTimeout:
      return CacheStorageStats::kTimeout;
    default:
      return CacheStorageStats::kFailed;
  }
}

}  // namespace

Transfer::Transfer(TierContext& context, uint64_t number, const PrefixNamespace& name_space,
                   std::span<const PrefixToken> tokens, const PrefixMatch& match, int priority)
    : context_(context),
      number_(number),
      clears_(context.clears),
      root_(context.tree.open(name_space)) {
  tokens_.assign(tokens.begin(), tokens.end() - 1);
  make_keys(match);
  note_resident(match);
  ask(match);
  context.store.begin_transfer({.transfer = number,
                                .name_space = name_space,
                                .tokens = tokens,
                                .pages = page_keys_,
                                .base = match.node->end,
                                .priority = priority});
}

Transfer::~Transfer() {
  CHECK(reading_ == 0);
  context_.store.end_transfer(number_);
  finish();
  lease_.release();
  context_.tree.close(root_);
}

std::span<const PrefixToken> Transfer::page_tokens(int64_t page) const {
  auto size = as_size(context_.classes().page_size_tokens);
  return std::span(tokens_).subspan(as_size(page) * size, size);
}

int64_t Transfer::in_common(const Transfer& other) const {
  if (root_key_ != other.root_key_) return 0;
  auto differ = std::ranges::mismatch(page_keys_, other.page_keys_);
  return (differ.in1 - page_keys_.begin()) * context_.classes().page_size_tokens;
}

// Keys of pages in the tree are mostly known.
void Transfer::make_keys(const PrefixMatch& match) {
  int64_t size = context_.classes().page_size_tokens;
  root_key_ = context_.keys.of(*root_);
  page_keys_.resize(tokens_.size() / as_size(size));
  for (RadixNode* n = match.deepest; n->parent != nullptr; n = n->parent) {
    at(page_keys_, n->begin() / size) = context_.keys.of(*n);
  }
  for (int64_t page = match.deepest->end / size; page < std::ssize(page_keys_); ++page) {
    at(page_keys_, page) = context_.keys.next(parent_key(page), page_tokens(page));
  }
}

void Transfer::note_resident(const PrefixMatch& match) {
  int64_t size = context_.classes().page_size_tokens;
  units_of_.resident.assign(page_keys_.size(), 0);
  for (RadixNode* n = match.deepest; n->parent != nullptr; n = n->parent) {
    uint8_t& bits = at(units_of_.resident, n->begin() / size);
    for (int c = 0; c < context_.classes().count; ++c) {
      if (n->units[c].unit >= 0) bits |= class_bit(c);
    }
  }
}

// Everything missing that could help beyond what memory can resume.
void Transfer::ask(const PrefixMatch& match) {
  const StateClasses& classes = context_.classes();
  int64_t size = classes.page_size_tokens, base = match.node->end;
  resident_pages_ = match.deepest->end / size;
  for (int64_t page = 0; page < std::ssize(page_keys_); ++page) {
    int64_t end = (page + 1) * size;
    for (int c = 0; c < classes.count; ++c) {
      if (!context_.keeps(c) || !units_of_.missing(page, c)) continue;
      bool of_use = classes[c].paged() ? end > classes[c].reach_begin(base + 1)
                                       : end > base && end % classes.resume_alignment_tokens == 0;
      if (!of_use) continue;
      asked_.push_back({narrow<int32_t>(page), c});
      wanted_.push_back({.page = at(page_keys_, page), .unit_class = c});
    }
  }
}

void Transfer::find() {
  context_.store.find(
      {.id = number_ << kTransferShift | kFindId, .transfer = number_, .keys = wanted_});
}

void Transfer::take_found(const TierDone& done) {
  CHECK(stage_ == Stage::kFinding);
  stage_ = Stage::kFound;
  units_of_.stored.assign(page_keys_.size(), 0);
  units_of_.layers.assign(page_keys_.size(), {});
  if (done.outcome != TierOutcome::kDone || done.found.size() != asked_.size()) {
    ++context_.stats.misses[miss_of(done.outcome)];
    return;
  }
  if (!context_.keeps(kPathClass)) {  // empty pages need no store
    units_of_.stored.assign(page_keys_.size(), class_bit(kPathClass));
  }
  for (size_t i = 0; i < asked_.size(); ++i) {
    if (!done.found[i]) continue;
    auto page = as_size(asked_[i].page);
    units_of_.stored[page] |= class_bit(asked_[i].unit_class);
    auto layer = narrow<uint8_t>(done.found[i] - 1);
    at(units_of_.layers[page], asked_[i].unit_class) = layer;
  }
}

RestorePlan Transfer::plan(int64_t length, int64_t tokens_min, const LayerBytes& bytes_ahead,
                           const UnitCounts& room, const LayerCosts& load,
                           const PrefillCost& prefill) {
  CHECK(stage_ == Stage::kFound);
  PrefixMatch match = context_.tree.match(root_, tokens_);
  note_resident(match);
  UnitCounts left = room;  // once begin() has leased the prefix
  int64_t& pages = at(left, kPathClass);
  pages = std::max<int64_t>(0, pages - context_.tree.unpinned_pages(match.deepest));
  return plan_restore({.classes = context_.classes(),
                       .unit_bytes = context_.unit_bytes,
                       .units = units_of_,
                       .base = match.position(),
                       .length = length,
                       .tokens_min = tokens_min,
                       .room = left,
                       .bytes_ahead = bytes_ahead},
                      load, prefill);
}

int64_t Transfer::missing_pages(int64_t end) const {
  int64_t pages = 0;
  for (int64_t page = 0; page < end / context_.classes().page_size_tokens; ++page) {
    pages += units_of_.missing(page, kPathClass) ? 1 : 0;
  }
  return pages;
}

bool Transfer::outdated() const {
  return missing_pages(resident_pages_ * context_.classes().page_size_tokens) > 0;
}

Lease Transfer::lease(int64_t end) const {
  int64_t position = std::min(end, published_);
  if (position == 0) return {};
  return context_.tree.lease(RadixTree::node_ending_at(lease_, position));
}

bool Transfer::begin(int64_t end) {
  stage_ = Stage::kLoading;
  PrefixMatch match = context_.tree.match(root_, tokens_);
  RadixNode* node = match.deepest;
  while (node->end > end) node = node->parent;
  lease_ = context_.tree.lease(node);
  wanted_.clear();
  std::vector<RestoreUnit> needed = units_to_load(context_.classes(), units_of_, end);
  size_t pieces = 0;
  for (const RestoreUnit& u : needed) pieces += context_.pieces.count(u.unit_class);
  pieces_.reserve(pieces);
  for (const RestoreUnit& u : needed) {
    int32_t unit = context_.tree.take(u.unit_class);
    if (unit < 0) break;
    units_.push_back(
        {.page = u.page,
         .unit_class = u.unit_class,
         .unit = unit,
         .state = context_.keeps(u.unit_class) ? UnitState::kWaiting : UnitState::kRead,
         .expected = units_of_.layer(u.page, u.unit_class),
         .first_piece = pieces_.size()});
    ++at(held_, u.unit_class);
    context_.pieces.add(u.unit_class, unit, pieces_);
    wanted_.push_back({.page = at(page_keys_, u.page), .unit_class = u.unit_class});
    at(bytes_to_come_, units_.back().expected) += at(context_.unit_bytes, u.unit_class);
    computes_ |= context_.store.layer(units_.back().expected).computes();
  }
  if (units_.size() == needed.size()) return true;
  stop();
  publish();
  return false;
}

void Transfer::submit(int64_t bytes_max) {
  for (; next_ < units_.size(); ++next_) {
    Unit& u = units_[next_];
    if (u.state != UnitState::kWaiting) continue;
    int64_t bytes = at(context_.unit_bytes, u.unit_class);
    if (reading_ > 0 && reading_bytes_ + bytes > bytes_max) return;
    u.state = UnitState::kReading;
    ++reading_;
    reading_bytes_ += bytes;
    int64_t size = context_.classes().page_size_tokens;
    context_.store.read(
        {.id = number_ << kTransferShift | next_,
         .transfer = number_,
         .record = {.key = wanted_[next_],
                    .parent = parent_key(u.page),
                    .end = (u.page + 1) * size,
                    .tokens = page_tokens(u.page)},
         .pieces = std::span(pieces_).subspan(u.first_piece, context_.pieces.count(u.unit_class)),
         .layer = u.expected});
  }
}

void Transfer::take_read(const TierDone& done) {
  size_t index = done.id & kFindId;
  CHECK(index < units_.size() && units_[index].state == UnitState::kReading);
  Unit& u = units_[index];
  --reading_;
  reading_bytes_ -= at(context_.unit_bytes, u.unit_class);
  if (done.outcome == TierOutcome::kDone) {
    ends_coming(u);
    u.state = UnitState::kRead;
    u.layer = done.layer;
    u.unwritten = done.unwritten;
    CacheLayerStats& layer = context_.layer(done.layer);
    const TierWork& work = at(done.work, done.layer);
    ++layer.read_units;
    layer.read_bytes += work.bytes;
    layer.read_s += work.seconds;
    return;
  }
  if (!stopped_) ++context_.stats.misses[miss_of(done.outcome)];
  drop(u);
}

bool Transfer::only_computes() const {
  bool computes = false;
  for (int i = 0; i < context_.store.layers(); ++i) {
    if (at(bytes_to_come_, i) == 0) continue;
    if (!context_.store.layer(i).computes()) return false;
    computes = true;
  }
  return computes;
}

void Transfer::ends_coming(const Unit& u) {
  at(bytes_to_come_, u.expected) -= at(context_.unit_bytes, u.unit_class);
}

int32_t Transfer::take_out(Unit& u) {
  --at(held_, u.unit_class);
  return std::exchange(u.unit, -1);
}

void Transfer::drop(Unit& u) {
  ends_coming(u);
  context_.tree.give_back(u.unit_class, take_out(u));
  u.state = UnitState::kGone;
}

// One that has not begun may still do so.
bool Transfer::stop() {
  if (stage_ != Stage::kLoading) return false;
  stopped_ = true;
  context_.store.end_transfer(number_);
  bool dropped = false;
  for (; next_ < units_.size(); ++next_) {
    if (units_[next_].state != UnitState::kWaiting) continue;
    drop(units_[next_]);
    dropped = true;
  }
  return dropped;
}

void Transfer::publish() {
  if (stage_ != Stage::kLoading) return;
  while (next_published_ < units_.size()) {
    size_t end = next_published_;
    bool ended = true;
    for (; end < units_.size() && units_[end].page == units_[next_published_].page; ++end) {
      ended &= units_[end].state == UnitState::kRead || units_[end].state == UnitState::kGone;
    }
    if (!ended) break;
    if (!publish_page(next_published_, end)) {
      stop();
      break;
    }
    next_published_ = end;
  }
  if (reading_ == 0 && next_ == units_.size()) finish();
}

// Handles the outcome of one page. False if the path breaks off.
bool Transfer::publish_page(size_t first, size_t end) {
  UnitSet pages, slots;
  uint8_t read = 0;
  int layer = 0;
  const StateClasses& classes = context_.classes();
  int64_t page = units_[first].page, position = (page + 1) * classes.page_size_tokens;
  for (size_t i = first; i < end; ++i) {
    Unit& u = units_[i];
    if (u.state != UnitState::kRead) {
      if (u.unit_class == kPathClass) return false;
      continue;
    }
    // Writes what upper layers lack to them, if the policy says so.
    if (context_.keeps(u.unit_class) && !u.unwritten) read |= class_bit(u.unit_class);
    layer = std::max(layer, u.layer);
    (classes[u.unit_class].paged() ? pages : slots)[u.unit_class] = take_out(u);
    u.state = UnitState::kPublished;
  }
  RadixNode* node = nullptr;
  if (pages[kPathClass] >= 0) {
    CHECK(lease_.end() == page * classes.page_size_tokens);
    context_.tree.publish(lease_, page_tokens(page), pages);
    node = lease_.node();
    published_ = position;
  } else {
    node = RadixTree::node_ending_at(lease_, position);
    context_.tree.fill(node, pages);
  }
  if (clears_ == context_.clears) node->stored |= read;
  if (slots != UnitSet()) {
    context_.tree.add_snapshots(node, slots);
    published_ = std::max(published_, position);
  }
  at(layer_tokens_, layer) += classes.page_size_tokens;
  return true;
}

void Transfer::finish() {
  stage_ = Stage::kOver;
  for (Unit& u : units_) {
    if (u.unit >= 0) drop(u);
  }
}

void Transfer::add_held(UnitCounts& held) const {
  for (int c = 0; c < context_.classes().count; ++c) at(held, c) += at(held_, c);
}

}  // namespace banyan
