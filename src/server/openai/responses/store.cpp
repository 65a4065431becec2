#include "server/openai/responses/store.h"

#include <iterator>
#include <utility>

namespace banyan {

void ResponseStore::put(StoredResponse response, Clock::time_point now) {
  std::lock_guard lock(mutex_);
  drop_expired(now);
  size_t bytes = response.bytes();
  if (bytes > limits_.bytes_max || limits_.count_max == 0) return;
  while (bytes_ + bytes > limits_.bytes_max || entries_.size() >= limits_.count_max) {
    drop(entries_.begin());
  }
  entries_.push_back({.response = std::make_shared<const StoredResponse>(std::move(response)),
                      .expires = now + limits_.age_max});
  by_id_[entries_.back().response->id] = std::prev(entries_.end());
  bytes_ += bytes;
}

std::shared_ptr<const StoredResponse> ResponseStore::find(std::string_view id,
                                                          std::string_view owner,
                                                          Clock::time_point now) {
  std::lock_guard lock(mutex_);
  drop_expired(now);
  auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->response->owner != owner) return nullptr;
  return found->second->response;
}

bool ResponseStore::erase(std::string_view id, std::string_view owner) {
  std::lock_guard lock(mutex_);
  auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->response->owner != owner) return false;
  drop(found->second);
  return true;
}

void ResponseStore::drop(Entries::iterator entry) {
  bytes_ -= entry->response->bytes();
  by_id_.erase(entry->response->id);
  entries_.erase(entry);
}

void ResponseStore::drop_expired(Clock::time_point now) {
  while (!entries_.empty() && entries_.front().expires <= now) drop(entries_.begin());
}

}  // namespace banyan
