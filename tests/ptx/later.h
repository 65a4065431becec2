// Work that instructions begin and that takes effect at some later time, as late as what waits for
// it allows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ptx/chance.h"

namespace banyan::ptx {

class Later {
 public:
  explicit Later(Chance& chance) : chance_(chance) {}

  // `where` says who began it, for errors.
  void add(std::string where, std::function<void()> act);
  // Some time passes: does what is due.
  void pass();
  // Nothing else can happen. Whether there was something to do.
  bool do_one();

 private:
  struct Item {
    uint64_t due;
    std::string where;
    std::function<void()> act;
  };
  void act(size_t i);

  Chance& chance_;
  uint64_t time_ = 0;
  std::vector<Item> items_;
};

}  // namespace banyan::ptx
