// A cache of parsed chat templates from requests, since clients send the same one each time.
//
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "text/chat_template.h"

namespace banyan {

class ChatTemplateCache {
 public:
  Result<std::shared_ptr<const ChatTemplate>> find(const std::string& source);

 private:
  static constexpr size_t kEntriesMax = 16;
  using Entry = std::pair<std::string, std::shared_ptr<const ChatTemplate>>;

  std::mutex mutex_;
  std::vector<Entry> entries_;  // most recently used last
};

}  // namespace banyan
