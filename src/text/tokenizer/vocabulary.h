// A model's tokens: maps ids to spellings and back.
//
// Ids may have gaps; a spelling belongs to one id. Filled while loading, immutable afterwards;
// const use is thread-safe. Spellings are stored in one block of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

class Vocabulary {
 public:
  // Higher ids are rejected, since the tables are as long as the highest id.
  static constexpr TokenId kIdMax = (1 << 22) - 1;

  // Optional: reserves memory for `tokens` tokens of `bytes` bytes in total.
  void reserve(size_t tokens, size_t bytes);

  // Rejects an id that is out of range or taken, and a spelling that is taken.
  Status add(std::string_view spelling, TokenId id);

  std::optional<TokenId> find(std::string_view spelling) const;
  // Empty if there is no such id.
  std::string_view spelling(TokenId id) const;
  bool contains(TokenId id) const;

  size_t size() const { return count_; }
  // The highest id + 1.
  int id_end() const { return static_cast<int>(spans_.size()); }
  size_t longest_bytes() const { return longest_bytes_; }

 private:
  struct Span {
    uint32_t start = 0;
    int32_t size = -1;  // -1: no such id
  };
  struct Slot {
    uint32_t hash = 0;
    TokenId id = -1;
  };

  void grow();
  size_t slot_of(std::string_view spelling, uint64_t hash) const;

  std::string bytes_;
  std::vector<Span> spans_;  // by id
  std::vector<Slot> slots_;  // open addressing; size is a power of two
  size_t count_ = 0;
  size_t longest_bytes_ = 0;
};

}  // namespace banyan
