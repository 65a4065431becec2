#include "ptx/later.h"

#include <limits>

#include "ptx/text.h"

namespace banyan::ptx {

void Later::add(std::string where, std::function<void()> act) {
  // A quarter at once, a quarter only when everybody waits.
  constexpr uint64_t kSoon = 200;
  uint64_t due = time_ + chance_.below(kSoon);
  if (chance_.one_in(4)) due = time_;
  if (chance_.one_in(4)) due = std::numeric_limits<uint64_t>::max();
  items_.push_back({due, std::move(where), std::move(act)});
}

void Later::act(size_t i) {
  Item item = std::move(items_[i]);
  items_[i] = std::move(items_.back());
  items_.pop_back();
  try {
    item.act();
  } catch (const Error& error) {
    fail("{}: later: {}", item.where, error.what());
  }
}

void Later::pass() {
  ++time_;
  for (size_t i = items_.size(); i-- > 0;) {
    if (i < items_.size() && items_[i].due <= time_) act(i);
  }
}

bool Later::do_one() {
  if (items_.empty()) return false;
  act(chance_.below(items_.size()));
  return true;
}

}  // namespace banyan::ptx
