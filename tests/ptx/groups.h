// Copies of the lanes of a warp that take effect by groups (cp.async.commit_group).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ptx/chance.h"
#include "ptx/instruction.h"

namespace banyan::ptx {

class SmallCopies {
 public:
  void add(int lane, std::function<void()> act) {
    items_.push_back({lane, committed_[lane], std::move(act)});
  }
  void commit(int lane) { ++committed_[lane]; }
  // All groups of the lane but its last `left` take effect.
  void wait(int lane, uint64_t left) {
    act_if([&](const Item& item) {
      return item.lane == lane && item.group + left < committed_[lane];
    });
  }
  // Some take effect early.
  void pass(Chance& chance) {
    if (items_.empty() || !chance.one_in(4)) return;
    act_if([&](const Item&) { return chance.one_in(8); });
  }
  bool empty() const { return items_.empty(); }

 private:
  struct Item {
    int lane;
    uint64_t group;
    std::function<void()> act;
  };

  template <class Predicate>
  void act_if(const Predicate& is_due) {
    std::erase_if(items_, [&](const Item& item) {
      bool due = is_due(item);
      if (due) item.act();
      return due;
    });
  }

  std::vector<Item> items_;
  uint64_t committed_[kLanes] = {};
};

}  // namespace banyan::ptx
