// Stores answers of /v1/responses, to be fetched again and for later requests to continue.
//
// Bounded in number, bytes and age; evicts the oldest first. Thread-safe.
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
  std::string owner;     // the API key that created it; not visible to others
  std::string response;  // the answer, as JSON
  std::string input;     // the request's own items, as JSON
  std::string messages;  // the conversation with the answer, in chat template form, as JSON

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

  // Drops a response that exceeds bytes_max by itself.
  void put(StoredResponse response, Clock::time_point now = Clock::now());
  // Null if the owner has no such response.
  std::shared_ptr<const StoredResponse> find(std::string_view id, std::string_view owner,
                                             Clock::time_point now = Clock::now());
  // Returns whether it existed.
  bool erase(std::string_view id, std::string_view owner);

 private:
  struct Entry {
    std::shared_ptr<const StoredResponse> response;
    Clock::time_point expires;
  };
  using Entries = std::list<Entry>;  // oldest first

  void drop(Entries::iterator entry);
  void drop_expired(Clock::time_point now);

  const Limits limits_;
  std::mutex mutex_;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_id_;  // views into the entries
  size_t bytes_ = 0;
};

}  // namespace banyan
