// Answers of /v1/responses that are kept, to be read again and for later requests to go on from.
//
// Bounded in number, bytes and age: the oldest go first. Safe from many threads at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace banyan {

struct StoredResponse {
  std::string id;
  std::string owner;     // the API key that it was asked for with; others do not find it
  std::string response;  // the answer, as JSON
  std::string input;     // the items of its own request, as JSON
  std::string messages;  // the conversation with the answer, as chat templates know it, as JSON

  size_t bytes() const {
    return id.size() + owner.size() + response.size() + input.size() + messages.size();
  }
};

class ResponseStore {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    size_t count_max = 0;
    size_t bytes_max = 0;
    Clock::duration age_max = {};
  };

  explicit ResponseStore(Limits limits) : limits_(limits) {}

  // One that is larger than all may be together is not kept.
  void put(StoredResponse response, Clock::time_point now = Clock::now());
  // Null if there is none of that owner's.
  std::shared_ptr<const StoredResponse> find(std::string_view id, std::string_view owner,
                                             Clock::time_point now = Clock::now());
  // Whether there was one.
  bool erase(std::string_view id, std::string_view owner);

 private:
  struct Entry {
    std::shared_ptr<const StoredResponse> response;
    Clock::time_point expires;
  };
  using Entries = std::list<Entry>;  // the oldest first

  void drop(Entries::iterator entry);
  void drop_expired(Clock::time_point now);

  const Limits limits_;
  std::mutex mutex_;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_id_;  // views into the entries
  size_t bytes_ = 0;
};

}  // namespace banyan
