// Translates DRY's sequence breakers from strings to token sequences for the engine. As in
// llama.cpp, a token whose text contains the string is a breaker by itself. A token whose text ends
// with a prefix of the string is one together with the tokens of the rest.
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

// A cache of recent requests' breakers, since making them scans the whole vocabulary. Thread-safe.
class DryBreakerCache {
 public:
  std::shared_ptr<const DryBreakers> find(const Tokenizer& tokenizer,
                                          const std::vector<std::string>& strings);

 private:
  static constexpr size_t kEntriesMax = 16;
  using Entry = std::pair<std::vector<std::string>, std::shared_ptr<const DryBreakers>>;

  std::mutex mutex_;
  std::vector<Entry> entries_;  // most recently used last
};

}  // namespace banyan
