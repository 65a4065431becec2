// Who may have another place in a queue that is full: clients that hold fewer than their share of
// it, so that none can keep the others out. Nobody loses a place that it has.
//
// A share is the queue's limit divided by the number of clients that hold places, including the one
// that asks, but at least 1. So with n clients at most limit * (1 + 1/2 + ... + 1/n) places are
// held; in any case at most kClientsFull * limit. A client without a name has no share: it gets
// places only while the queue is not full.
//
// The owner counts every place: enter() when it is taken, leave() when it is free again. No threads
// and no clock: the caller locks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/check.h"

namespace banyan {

class FairShares {
 public:
  // Whether `client` may have `places` more of a queue that holds `limit`.
  bool admits(const std::string& client, int64_t limit, int64_t places = 1) const {
    if (total_ + places <= limit) return true;
    if (client.empty() || total_ + places > kClientsFull * limit) return false;
    int64_t held = held_by(client);
    int64_t clients = static_cast<int64_t>(held_.size()) + (held == 0 ? 1 : 0);
    return held + places <= std::max<int64_t>(1, limit / clients);
  }

  void enter(const std::string& client) {
    ++held_[client];
    ++total_;
  }
  void leave(const std::string& client) {
    auto found = held_.find(client);
    CHECK(found != held_.end(), "a client leaves that holds no place");
    if (--found->second == 0) held_.erase(found);
    --total_;
  }
  // All places are free.
  void clear() {
    held_.clear();
    total_ = 0;
  }

  int64_t held_by(const std::string& client) const {
    auto found = held_.find(client);
    return found == held_.end() ? 0 : found->second;
  }
  int64_t total() const { return total_; }

 private:
  static constexpr int64_t kClientsFull = 8;

  std::unordered_map<std::string, int64_t> held_;  // above 0
  int64_t total_ = 0;
};

}  // namespace banyan
