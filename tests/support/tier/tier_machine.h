// A scheduler with a store in memory, for tests of what is loaded and written when.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "engine/schedule/scheduler.h"
#include "engine/tiers/tiers.h"
#include "support/states.h"
#include "support/tier/fake_store.h"
#include "tier/layered_store.h"

namespace banyan::test {

inline StateDigest tier_digest(std::string_view name) {
  return StateDigest(Hasher().text(name).finish());
}

struct TierShape {
  std::shared_ptr<FakeDisk> disk = std::make_shared<FakeDisk>();
  int64_t pages = 100, slots = 8;
  bool recurrent = false;
  int running_max = 4;
  int64_t rows = 64;
  std::string writes = "write_through", prefetch = "wait_complete", states = "a model";
  int64_t tokens_min = 4;
  int delay = 0;
  FakeFaults faults = {};
  int64_t step_s = 0;  // what a step that computes takes
  SchedulePolicy policy = SchedulePolicy::kFcfs;
  std::shared_ptr<FakeDisk> shared = nullptr;  // below the disk, where there is one
};

// A scheduler, pools of bytes and a step that writes into each page what its tokens are.
class TierMachine {
 public:
  static constexpr int64_t kPageTokens = 4;
  static constexpr size_t kUnitBytes = 32;

  explicit TierMachine(const TierShape& shape) : classes_(classes_of(shape)) {
    UnitCounts units = {shape.pages, shape.slots};
    scheduler_ = std::make_unique<Scheduler>(SchedulerConfig{.policy = shape.policy,
                                                             .running_max = shape.running_max,
                                                             .prefill_rows_max = shape.rows,
                                                             .classes = classes_,
                                                             .units = units});
    PerClass<std::vector<UnitPieces::Pool>> pools;
    for (int c = 0; c < classes_.count; ++c) {
      auto i = static_cast<size_t>(c);
      bytes_[i].resize(static_cast<size_t>(units[i]) * kUnitBytes);
      pools[i] = {{.data = bytes_[i].data(), .unit_bytes = kUnitBytes}};
    }
    step_s_ = shape.step_s;
    FakeFaults faults = shape.faults;
    faults.delay_max = shape.delay;
    auto store = std::make_unique<FakeStore>(shape.disk, faults, 1);
    store_ = store.get();
    std::unique_ptr<TierStore> stores = std::move(store);
    if (shape.shared != nullptr) {
      shape.shared->any_order = true;
      auto shared = std::make_unique<FakeStore>(shape.shared, faults, 2);
      shared_ = shared.get();
      stores = make_layered_store(std::move(stores), std::move(shared));
    }
    scheduler_->use(std::make_unique<Tiers>(
        scheduler_->tree(), TierSetup{.store = std::move(stores),
                                      .states = tier_digest(shape.states),
                                      .config = {.backend = "disk",
                                                 .write_policy = shape.writes,
                                                 .prefetch_policy = shape.prefetch,
                                                 .prefetch_tokens_min = shape.tokens_min},
                                      .pieces = UnitPieces(std::move(pools)),
                                      .prefill = PrefillCost(1, 0, 1),
                                      .load = LoadCost(0, 1e15),
                                      .now_ns = [this] { return store_->now_ns(); }}));
  }

  static StateClasses classes_of(const TierShape& shape) {
    std::vector<StateSpec> specs = {{.name = "keys", .width = 4}};
    if (shape.recurrent) specs.push_back(slot_state(8));
    return test::classes_of(specs, kPageTokens);
  }

  void enqueue(SequenceId id, std::vector<TokenId> prompt, int64_t new_tokens = 0,
               int priority = 0) {
    auto s = std::make_unique<Sequence>();
    s->request.options.priority = priority;
    s->id = id;
    s->prompt_tokens = std::ssize(prompt);
    s->tokens_max = s->prompt_tokens + new_tokens;
    s->tokens = std::move(prompt);
    scheduler_->enqueue(std::move(s));
  }

  // False where nothing was computed.
  bool step(bool in_flight = false) {
    scheduler_->plan(plan_, in_flight);
    scheduler_->check();
    if (plan_.spans.empty()) {
      scheduler_->tiers()->idle();
      return false;
    }
    for (const PlannedSpan& span : plan_.spans) {
      computed += span.count;
      write_pages(*span.sequence, span.end());
    }
    for (const PlannedCapture& c : plan_.captures) {
      const Sequence& s = *plan_.spans[static_cast<size_t>(c.span)].sequence;
      fill(1, c.slots[1], s, c.position + 1);
    }
    pass_seconds(step_s_);
    scheduler_->commit(plan_);
    scheduler_->check();
    for (const PlannedSpan& span : plan_.spans) {
      Sequence& s = *span.sequence;
      if (s.pending() > 0) continue;
      if (s.length() == s.tokens_max) {
        ended.insert(s.id);
        scheduler_->remove(&s);
      } else {
        s.tokens.push_back(7);
      }
    }
    return true;
  }

  // Until all have ended.
  void run(int steps_max = 1000) {
    for (int i = 0; i < steps_max && scheduler_->any() != nullptr; ++i) step();
    EXPECT_EQ(scheduler_->any(), nullptr);
  }
  // Lets the store finish jobs in progress.
  void settle() {
    for (int i = 0; i < 50; ++i) step();
  }
  void pass_seconds(int64_t s) { store_->pass_ns(s * kNsPerS); }

  // The part of a prompt's pages that is in memory; aborts if a page has another's bytes.
  int64_t check_prefix(const std::vector<TokenId>& prompt) {
    Sequence s;
    s.tokens = prompt;
    RadixTree& tree = scheduler_->tree();
    RadixNode* root = tree.open({});
    PrefixMatch match = tree.match(root, s.tokens);
    for (RadixNode* n = match.node; n->parent != nullptr; n = n->parent) {
      EXPECT_EQ(content(0, n->path().unit), of(s, n->end)) << "page at " << n->end;
    }
    bool has_slot = classes_.count > 1 && match.node->parent != nullptr;
    if (has_slot) {
      EXPECT_EQ(content(1, match.node->units[1].unit), of(s, match.node->end));
    }
    int64_t end = match.node->end;
    tree.close(root);
    return end;
  }

  Scheduler& scheduler() { return *scheduler_; }
  const StepPlan& plan() const { return plan_; }
  const CacheStorageStats& stats() { return scheduler_->tiers()->stats(); }
  FakeStore& store() { return *store_; }
  FakeStore& shared() { return *shared_; }

  int64_t computed = 0;
  std::set<SequenceId> ended;

 private:
  // The state after `end` tokens: a function of all of them.
  static std::array<std::byte, kUnitBytes> of(const Sequence& s, int64_t end) {
    Hasher hasher;
    hasher.bytes(std::as_bytes(std::span(s.tokens).first(static_cast<size_t>(end))));
    Digest digest = hasher.finish();
    std::array<std::byte, kUnitBytes> bytes;
    std::ranges::copy(std::as_bytes(std::span(digest.bytes)), bytes.begin());
    return bytes;
  }
  std::array<std::byte, kUnitBytes> content(size_t c, int32_t unit) {
    std::array<std::byte, kUnitBytes> bytes;
    std::copy_n(bytes_[c].begin() + unit * static_cast<int64_t>(kUnitBytes), kUnitBytes,
                bytes.begin());
    return bytes;
  }
  void fill(size_t c, int32_t unit, const Sequence& s, int64_t end) {
    std::ranges::copy(of(s, end), bytes_[c].begin() + unit * static_cast<int64_t>(kUnitBytes));
  }
  void write_pages(const Sequence& s, int64_t end) {
    for (int64_t p = s.lease.end() / kPageTokens; (p + 1) * kPageTokens <= end; ++p) {
      fill(0, s.held(0).units[static_cast<size_t>(p)], s, (p + 1) * kPageTokens);
    }
  }

  StateClasses classes_;
  PerClass<std::vector<std::byte>> bytes_;
  std::unique_ptr<Scheduler> scheduler_;  // its tiers look at the bytes until they are gone
  FakeStore *store_ = nullptr, *shared_ = nullptr;
  int64_t step_s_ = 0;
  StepPlan plan_;
};

inline std::vector<TokenId> tokens_from(int first, int64_t count) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(first + i);
  return tokens;
}

// One life of a machine that computes these prompts and ends.
inline void live_once(const TierShape& shape, std::initializer_list<std::vector<TokenId>> prompts) {
  TierMachine machine(shape);
  SequenceId id = 0;
  for (const std::vector<TokenId>& prompt : prompts) {
    machine.enqueue(++id, prompt);
    machine.run();
  }
}

}  // namespace banyan::test
