// A router's view of its workers and its choices, from made-up events and reports.
#include "router/fleet_view.h"

#include <gtest/gtest.h>

namespace banyan::fleet_view_test {
namespace {

constexpr int kPage = 64;
constexpr int64_t kSecond = 1'000'000'000;

PageKey key_of(int chain, int page) {
  PageKeys keys;
  std::array<PrefixToken, 2> tokens = {chain, page};
  return keys.page({}, tokens);
}

// Workers of which each says that it has so many pages of prompt 0.
class Fleet {
 public:
  explicit Fleet(const std::vector<int>& pages, std::string_view policy = "cost")
      : view_({.classes = {.page_size_tokens = kPage}, .policy = find_routing_policy(policy)}) {
    for (int page = 0; page < 100; ++page) prompt_.push_back(key_of(0, page));
    for (size_t w = 0; w < pages.size(); ++w) {
      auto worker = static_cast<int>(w);
      view_.add(worker);
      EXPECT_TRUE(view_.apply(worker, KvHello{.epoch = 1 + w}, 0));
      KvSnapshotPart part{.sequence = 9, .first = true, .last = true};
      for (int i = 0; i < pages[w]; ++i) part.units.push_back({.page = key_of(0, i)});
      EXPECT_TRUE(view_.apply(worker, part, 0));
      report(worker, 0);
    }
  }

  void report(int worker, int64_t waiting_tokens, int64_t pages_free = 1000) {
    LoadReport load{.waiting_tokens = waiting_tokens,
                    .pages_free = pages_free,
                    .pages_total = 1000,
                    .prefill_tokens_s = 1000};
    EXPECT_TRUE(view_.apply(worker, load, 0));
  }

  RouteRequest request(int pages, uint64_t id = 0) const {
    return {.pages = std::span(prompt_).first(static_cast<size_t>(pages)),
            .prompt_tokens = pages * kPage + 1,
            .id = id};
  }
  int choose(int pages, uint64_t id = 0) { return view_.choose(request(pages, id), 0).worker; }
  FleetView& view() { return view_; }

 private:
  FleetView view_;
  std::vector<PageKey> prompt_;
};

TEST(FleetView, CostWeighsQueuesAgainstPrefixes) {
  Fleet fleet({10, 50, 0});
  EXPECT_EQ(fleet.choose(60), 1);
  fleet.report(1, 2000);
  EXPECT_EQ(fleet.choose(60), 1) << "40 pages less to compute are worth two seconds of waiting";
  fleet.report(1, 6000);
  EXPECT_EQ(fleet.choose(60), 0);
  fleet.report(0, 6000);
  EXPECT_EQ(fleet.choose(60), 2);
  fleet.view().set_accepting(2, false);
  EXPECT_EQ(fleet.choose(60), 1);
  fleet.report(1, 6000, 5);
  EXPECT_EQ(fleet.choose(60), 0) << "no room for ten pages";
  fleet.report(0, 0, 5);
  EXPECT_EQ(fleet.choose(60), -1);
}

// A worker that always has prompts to compute never measures a step without them.
TEST(FleetView, AWorkerThatHasNotMeasuredItsStepsIsNoFasterThanOthers) {
  Fleet fleet({0, 0});
  LoadReport idle{.pages_free = 1000, .pages_total = 1000, .prefill_tokens_s = 1000, .step_ms = 10};
  EXPECT_TRUE(fleet.view().apply(0, idle, 0));
  LoadReport busy{.waiting_tokens = 2000, .pages_free = 1000, .pages_total = 1000};
  EXPECT_TRUE(fleet.view().apply(1, busy, 0));
  RouteRequest request = fleet.request(5);
  request.output_tokens = 500;
  RouteChoice choice = fleet.view().choose(request, 0);
  EXPECT_EQ(choice.worker, 0);
  fleet.view().set_accepting(0, false);
  EXPECT_DOUBLE_EQ(fleet.view().choose(request, 0).wait_s, 2) << "at the other's speed";
}

TEST(FleetView, WhatWasSentCountsBeforeAnybodyReports) {
  Fleet fleet({0, 0});
  RouteChoice first = fleet.view().choose(fleet.request(60), 0);
  fleet.view().sent(first, fleet.request(60), 0);
  EXPECT_EQ(fleet.view().worker(first.worker).sent_tokens, 60 * kPage + 1);
  RouteChoice again = fleet.view().choose(fleet.request(60), kSecond);
  EXPECT_EQ(again.worker, first.worker) << "its prefix will be there";
  EXPECT_EQ(again.cached_tokens, 60 * kPage);
  fleet.report(first.worker, 0);
  again = fleet.view().choose(fleet.request(60), 100 * kSecond);
  EXPECT_EQ(again.cached_tokens, 0) << "it was not announced in time";
}

TEST(FleetView, NoticesWhatIsMissing) {
  Fleet fleet({3});
  FleetView& view = fleet.view();
  auto stored = [](uint64_t sequence, int page) {
    return KvEvents{{{.sequence = sequence, .unit = {.page = key_of(0, page)}}}};
  };
  EXPECT_EQ(view.position(0), (KvPosition{1, 10}));
  EXPECT_TRUE(view.apply(0, stored(10, 3), 0));
  EXPECT_TRUE(view.apply(0, stored(9, 50), 0)) << "known already";
  EXPECT_FALSE(view.apply(0, stored(12, 5), 0));
  EXPECT_FALSE(view.apply(0, LoadReport{.next_event = 12}, 0));
  EXPECT_EQ(view.gaps(), 2);
  EXPECT_EQ(view.position(0), (KvPosition{1, 11}));
  EXPECT_EQ(view.choose(fleet.request(60), 0).cached_tokens, 4 * kPage);
  EXPECT_TRUE(view.apply(0, stored(11, 4), 0));
  EXPECT_EQ(view.choose(fleet.request(60), 0).cached_tokens, 5 * kPage);
  EXPECT_TRUE(view.apply(0, KvHello{.epoch = 1}, 0)) << "the same life goes on";
  EXPECT_EQ(view.choose(fleet.request(60), 0).cached_tokens, 5 * kPage);
  EXPECT_TRUE(view.apply(0, KvHello{.epoch = 2}, 0));
  EXPECT_EQ(view.choose(fleet.request(60), 0).cached_tokens, 0);
  EXPECT_FALSE(view.apply(0, stored(12, 5), 0));
}

TEST(FleetView, WorkersComeAndGo) {
  Fleet fleet({5, 40});
  for (int i = 0; i < 1000; ++i) {
    fleet.view().remove(1);
    EXPECT_EQ(fleet.choose(60), 0);
    fleet.view().add(1);
    fleet.view().tick(i);
  }
  fleet.view().set_accepting(1, false);
  EXPECT_EQ(fleet.view().choose(fleet.request(60), 0).cached_tokens, 5 * kPage);
}

TEST(FleetView, TheOtherPolicies) {
  Fleet turns({0, 0, 0}, "round_robin");
  for (int i = 0; i < 9; ++i) EXPECT_EQ(turns.choose(10), i % 3);
  Fleet any({0, 0, 0}, "random");
  std::array<int, 3> counts = {};
  for (uint64_t i = 0; i < 300; ++i) ++counts[static_cast<size_t>(any.choose(10, i))];
  for (int count : counts) EXPECT_GT(count, 60);

  Fleet aware({20, 10, 5}, "cache_aware");
  EXPECT_EQ(aware.choose(60), 0);
  aware.view().sent({.worker = 0}, aware.request(0), 0);
  aware.view().sent({.worker = 1}, aware.request(0), 0);
  EXPECT_EQ(aware.choose(100), 2) << "less than 0.3 of it is held: the fewest requests";
  for (int i = 0; i < 70; ++i) aware.view().sent({.worker = 0}, aware.request(0), 0);
  EXPECT_EQ(aware.choose(60), 2) << "uneven load: the fewest requests";
  for (int i = 0; i < 70; ++i) aware.view().ended(0);
  EXPECT_EQ(aware.choose(60), 0);

  Fleet two({0, 0}, "power_of_two");
  two.report(0, 5000);
  for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(two.choose(10, i), 1);
}

TEST(FleetView, WhatFitsNowhereGoesToAnEmptyWorker) {
  Fleet fleet({0, 0});
  RouteRequest huge = fleet.request(60);
  huge.output_tokens = int64_t{1} << 30;
  fleet.report(0, 0, 999);
  EXPECT_EQ(fleet.view().choose(huge, 0).worker, 1);
  fleet.report(1, 0, 999);
  EXPECT_EQ(fleet.view().choose(huge, 0).worker, -1);
}

}  // namespace
}  // namespace banyan::fleet_view_test
