// A router's view of trees equals the trees, whatever happens to events on their way.
#include "cache/kv_announcer.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>
#include <tuple>

#include "base/random.h"
#include "engine/schedule/scheduler.h"
#include "router/fleet_view.h"

namespace banyan::kv_announcer_test {
namespace {

constexpr int kPage = 4;
using UnitName = std::tuple<PageKey, int>;

std::set<UnitName> names(const std::vector<KvUnit>& units) {
  std::set<UnitName> set;
  for (const KvUnit& unit : units) set.insert({unit.page, unit.unit_class});
  return set;
}

// Pages, those of a window, and snapshots.
SchedulerConfig small_engine() {
  std::array specs = {StateSpec{.name = "keys"},
                      StateSpec{.name = "window", .reach = StateReach::kWindow, .window_tokens = 9},
                      StateSpec{.name = "state",
                                .unit = StateUnit::kSlot,
                                .reach = StateReach::kPoint,
                                .alignment_tokens = kPage}};
  SchedulerConfig config{.running_max = 3, .prefill_rows_max = 16, .snapshot_interval_tokens = 8};
  config.classes = *classify_states(specs, kPage);
  for (int c = 0; c < config.classes.count; ++c) {
    config.units[static_cast<size_t>(c)] = config.classes[c].paged() ? 40 : 12;
  }
  return config;
}

// A scheduler at work, without a model, whose tree is announced over a lossy line.
class Worker {
 public:
  Worker(uint64_t seed, uint64_t epoch)
      : seed_(seed),
        scheduler_(small_engine()),
        announcer_(scheduler_.tree(), StateDigest(Digest()), epoch, 64) {}

  void step() {
    if (below(3) == 0) submit();
    if (below(200) == 0) scheduler_.tree().flush();
    StepPlan plan;
    scheduler_.plan(plan);
    scheduler_.commit(plan);
    for (const PlannedSpan& span : plan.spans) {
      Sequence& s = *span.sequence;
      if (s.pending() > 0) continue;
      if (s.length() < s.tokens_max) s.tokens.push_back(below(3));
      if (s.length() == s.tokens_max) scheduler_.remove(&s);
    }
    scheduler_.check();
  }

  // What a reader at `position` is sent.
  std::vector<KvMessage> messages(const KvPosition& position) {
    std::vector<KvMessage> messages = {KvHello{.epoch = announcer_.log().epoch(),
                                               .next = position.next,
                                               .classes = scheduler_.tree().classes()}};
    std::vector<KvEvent> events;
    bool kept = position.epoch == announcer_.log().epoch() &&
                announcer_.log().read(position.next, 5, events);
    if (!kept) {
      std::vector<KvUnit> units = announcer_.snapshot();
      messages.push_back(KvSnapshotPart{
          .sequence = announcer_.log().next() - 1, .first = true, .last = true, .units = units});
    } else if (!events.empty()) {
      messages.push_back(KvEvents{events});
    }
    messages.push_back(LoadReport{.next_event = announcer_.log().next()});
    return messages;
  }

  int below(int end) { return static_cast<int>(uniform(seed_, draws_++, 0) * end); }
  KvAnnouncer& announcer() { return announcer_; }
  RadixTree& tree() { return scheduler_.tree(); }

 private:
  void submit() {
    auto s = std::make_unique<Sequence>();
    s->id = ++last_id_;
    int length = 1 + below(40);
    for (int i = 0, turn = below(3); i < length; ++i) {
      if (below(12) == 0) turn = below(3);
      s->tokens.push_back(turn);
    }
    s->prompt_tokens = length;
    s->tokens_max = length + below(6);
    scheduler_.enqueue(std::move(s));
  }

  uint64_t seed_, draws_ = 0;
  SequenceId last_id_ = 0;
  Scheduler scheduler_;
  KvAnnouncer announcer_;  // uses the tree, so it is destroyed first
};

std::set<UnitName> resident(Worker& worker) {
  std::set<UnitName> set;
  NodeKeys keys{StateDigest(Digest())};
  auto visit = [&](auto& self, RadixNode& node) -> void {
    for (int c = 0; node.parent != nullptr && c < worker.tree().classes().count; ++c) {
      bool full = std::ssize(node.tokens) == kPage && worker.tree().classes()[c].decides();
      if (full && node.units[c].unit >= 0) set.insert({keys.of(node), c});
    }
    for (RadixNode& child : node.children) self(self, child);
  };
  worker.tree().for_each_root(
      [&](const RadixNode& root) { visit(visit, const_cast<RadixNode&>(root)); });
  return set;
}

TEST(KvAnnouncer, AViewEqualsTheTreesAfterQuiet) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    uint64_t epochs = 0;
    FleetConfig config{.classes = small_engine().classes, .workers_max = 3};
    auto view = std::make_unique<FleetView>(config);
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::deque<KvMessage>> lines(3);
    for (int w = 0; w < 3; ++w) {
      workers.push_back(std::make_unique<Worker>(seed * 10 + static_cast<uint64_t>(w), ++epochs));
      view->add(w);
    }
    Worker& dice = *workers[0];
    int64_t now_ns = 0;
    auto deliver = [&](int w, bool lossy) {
      std::deque<KvMessage>& line = lines[static_cast<size_t>(w)];
      while (!line.empty()) {
        bool late = lossy && dice.below(8) == 0 && line.size() > 1;
        KvMessage message = late ? line.back() : line.front();
        late ? line.pop_back() : line.pop_front();
        if (lossy && dice.below(8) == 0) continue;
        if (lossy && dice.below(8) == 0) line.push_back(message);
        view->apply(w, message, now_ns);
      }
    };
    auto send = [&](int w) {
      auto& line = lines[static_cast<size_t>(w)];
      for (KvMessage& message : workers[static_cast<size_t>(w)]->messages(view->position(w))) {
        line.push_back(std::move(message));
      }
    };
    for (int step = 0; step < 400; ++step) {
      now_ns += 10'000'000;
      for (int w = 0; w < 3; ++w) {
        workers[static_cast<size_t>(w)]->step();
        if (dice.below(3) == 0) send(w);
        if (dice.below(2) == 0) deliver(w, true);
      }
      view->tick(now_ns);
      if (dice.below(150) == 0) {  // the router restarts
        view = std::make_unique<FleetView>(config);
        for (int w = 0; w < 3; ++w) view->add(w);
      }
      if (dice.below(150) == 0) workers[2] = std::make_unique<Worker>(seed, ++epochs);
    }
    for (int w = 0; w < 3; ++w) {
      // A quiet line: at most 64 events are left, five at a time.
      for (int i = 0; i < 20; ++i) {
        send(w);
        deliver(w, false);
      }
      Worker& worker = *workers[static_cast<size_t>(w)];
      std::set<UnitName> announced = names(worker.announcer().snapshot());
      EXPECT_TRUE(announced == resident(worker));
      EXPECT_GT(announced.size(), 10U);
      int64_t path = 0;
      for (const auto& [page, unit_class] : announced) {
        KvUnit unit{.page = page, .unit_class = static_cast<uint8_t>(unit_class)};
        EXPECT_TRUE(view->tree().holds(view->slot(w), unit));
        path += unit_class == kPathClass ? 1 : 0;
      }
      EXPECT_EQ(view->tree().held(view->slot(w)), path);
    }
    EXPECT_GT(view->gaps(), 0);
  }
}

TEST(KvAnnouncer, SaysAtOnceThatAllIsGone) {
  SchedulerConfig config = small_engine();
  RadixTree tree(config.classes, config.units);
  RadixNode* root = tree.open({});
  {
    KvAnnouncer announcer(tree, std::nullopt, 9);
    Lease lease = tree.lease(root);
    for (int i = 0; i < 3; ++i) {
      UnitSet units;
      units[kPathClass] = tree.take(kPathClass);
      tree.publish(lease, std::vector<PrefixToken>(kPage, i), units);
    }
    lease.release();
    tree.flush();
    std::vector<KvEvent> events;
    ASSERT_TRUE(announcer.log().read(1, 100, events));
    ASSERT_EQ(events.size(), 4U);
    EXPECT_EQ(events[2].operation, KvOperation::kStored);
    EXPECT_EQ(events[2].parent, events[1].unit.page);
    EXPECT_EQ(events[3].operation, KvOperation::kCleared);
    EXPECT_TRUE(announcer.snapshot().empty());
  }
  tree.close(root);
}

}  // namespace
}  // namespace banyan::kv_announcer_test
