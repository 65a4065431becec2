// A queue of work that is fair between clients: they take turns, however much each has queued.
// Within a client the cheapest item comes first, except that every fourth turn takes the oldest.
//
// No threads and no clock: the caller locks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace banyan {

template <class T>
class FairQueue {
 public:
  // `queued_max` per client; all clients together may queue kClientsFull times as much.
  explicit FairQueue(size_t queued_max) : queued_max_(queued_max) {}

  // False when the client's queue, or the whole queue, is full. Items of equal cost keep their
  // order.
  bool push(const std::string& client, size_t cost, T value) {
    if (size_ >= kClientsFull * queued_max_) return false;
    auto [it, fresh] = by_name_.try_emplace(client);
    if (fresh) {
      turns_.push_back({.name = client});
      it->second = std::prev(turns_.end());
    }
    if (it->second->waiting.size() >= queued_max_) return false;
    it->second->waiting.push_back({cost, std::move(value)});
    ++size_;
    return true;
  }

  std::optional<T> pop() {
    if (turns_.empty()) return std::nullopt;
    Client& client = turns_.front();
    auto next = client.waiting.begin();  // the oldest
    if (++client.turns % kOldestEvery != 0) {
      next = std::ranges::min_element(client.waiting, {}, &Entry::cost);
    }
    std::optional<T> value = std::move(next->value);
    client.waiting.erase(next);
    --size_;
    if (client.waiting.empty()) {
      by_name_.erase(client.name);
      turns_.pop_front();
    } else {
      turns_.splice(turns_.end(), turns_, turns_.begin());
    }
    return value;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  static constexpr size_t kOldestEvery = 4;
  static constexpr size_t kClientsFull = 8;

  struct Entry {
    size_t cost = 0;
    T value;
  };
  struct Client {
    std::string name;
    size_t turns = 0;
    std::vector<Entry> waiting = {};  // in order of arrival
  };

  size_t queued_max_;
  size_t size_ = 0;
  std::list<Client> turns_;  // next turn first; none is empty
  std::unordered_map<std::string, typename std::list<Client>::iterator> by_name_;
};

}  // namespace banyan
