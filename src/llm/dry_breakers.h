// DRY's sequence breakers as an engine takes them: from strings to the tokens that may hold them.
// As in llama.cpp: a token breaks by itself if its text has the string in it, and together with the
// tokens of the rest if its text ends with a beginning of the string.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "banyan/request.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {

inline constexpr size_t kDryBreakerBytesMax = 40;

// "\n", ":", "\"" and "*".
const std::vector<std::string>& default_dry_breakers();

DryBreakers make_dry_breakers(const Tokenizer& tokenizer, const std::vector<std::string>& strings);

// Those of recent requests: making them looks at the whole vocabulary. Thread-safe.
class DryBreakerCache {
 public:
  std::shared_ptr<const DryBreakers> find(const Tokenizer& tokenizer,
                                          const std::vector<std::string>& strings);

 private:
  static constexpr size_t kEntriesMax = 16;
  using Entry = std::pair<std::vector<std::string>, std::shared_ptr<const DryBreakers>>;

  std::mutex mutex_;
  std::vector<Entry> entries_;  // the most recent last
};

}  // namespace banyan
