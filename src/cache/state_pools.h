// The bytes of all layer states. Page i of every kPage state is row i of that state's pool: one
// page-id space, so a sequence has one page table however many layers it passes through.
//
// Pools are reserved up front and committed by the operating system when first touched. Owned by
// the Runner; who holds which page is the engine's business (PageList).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "banyan/status.h"
#include "base/memory.h"
#include "cache/state_spec.h"

namespace banyan {

class StatePools {
 public:
  // Refuses units and reaches that this version does not keep yet.
  static Result<StatePools> create(std::vector<StateSpec> specs, int page_size_tokens,
                                   int64_t pages);

  const StateSpec& spec(StateId id) const { return specs_[id]; }
  void* pool(StateId id) const { return pools_[id].data(); }
  int page_size_tokens() const { return page_size_tokens_; }
  int64_t pages() const { return pages_; }

 private:
  StatePools() = default;

  std::vector<StateSpec> specs_;
  std::vector<MemoryBlock> pools_;
  int page_size_tokens_ = 0;
  int64_t pages_ = 0;
};

// Bytes that one token, and one sequence beside its tokens, take in states like `specs`.
size_t state_bytes_per_token(std::span<const StateSpec> specs);
size_t state_bytes_per_sequence(std::span<const StateSpec> specs);

// The pages that nobody holds. Every page is in exactly one of {this list, one sequence}.
class PageList {
 public:
  explicit PageList(int64_t pages);

  int64_t free_count() const { return static_cast<int64_t>(free_.size()); }
  // Requires free_count() > 0.
  int32_t take();
  void give_back(int32_t page);

 private:
  std::vector<int32_t> free_;  // a stack: the page used last is the warmest
};

}  // namespace banyan
