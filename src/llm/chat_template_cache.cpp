#include "llm/chat_template_cache.h"

#include <algorithm>

#include "base/error.h"

namespace banyan {

Result<std::shared_ptr<const ChatTemplate>> ChatTemplateCache::find(const std::string& source) {
  {
    std::lock_guard lock(mutex_);
    auto known = std::ranges::find(entries_, source, &Entry::first);
    if (known != entries_.end()) {
      std::rotate(known, known + 1, entries_.end());
      return entries_.back().second;
    }
  }
  auto parsed = std::make_shared<const ChatTemplate>(TRY(ChatTemplate::parse(source)));
  std::lock_guard lock(mutex_);
  if (entries_.size() == kEntriesMax) entries_.erase(entries_.begin());
  entries_.emplace_back(source, parsed);
  return parsed;
}

}  // namespace banyan
