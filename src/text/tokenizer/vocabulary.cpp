#include "text/tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/hash.h"
#include "base/quote.h"

namespace banyan {
void Vocabulary::reserve(size_t tokens, size_t bytes) {
  bytes_.reserve(bytes);
  spans_.reserve(tokens);
  slots_.assign(std::bit_ceil(std::max<size_t>(tokens, 8) * 2), Slot{});
}

size_t Vocabulary::slot_of(std::string_view spelling, uint64_t hash) const {
  size_t at = hash & (slots_.size() - 1);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  while (slots_[at].id >= 0) {
    if (slots_[at].hash == tag && this->spelling(slots_[at].id) == spelling) break;
    at = (at + 1) & (slots_.size() - 1);
  }
  return at;
}

void Vocabulary::grow() {
  std::vector<Slot> old(std::max<size_t>(slots_.size() * 2, 16));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    const uint64_t hash = hash_bytes(spelling(slot.id));
    slots_[slot_of(spelling(slot.id), hash)] = slot;
  }
}

Status Vocabulary::add(std::string_view spelling, TokenId id) {
  if (id < 0 || id > kIdMax) {
    return corrupt("the token {} has id {}; ids go from 0 to {}", quote(spelling), id, kIdMax);
  }
  if (contains(id)) {
    return corrupt("the tokens {} and {} have the same id {}", quote(this->spelling(id)),
                   quote(spelling), id);
  }
  if (bytes_.size() + spelling.size() > UINT32_MAX) {
    return exhausted("the tokens' spellings take more than 4 GiB");
  }
  if ((count_ + 1) * 2 > slots_.size()) grow();
  const uint64_t hash = hash_bytes(spelling);
  Slot& slot = slots_[slot_of(spelling, hash)];
  if (slot.id >= 0) {
    return corrupt("the token {} appears twice, with ids {} and {}", quote(spelling), slot.id, id);
  }
  slot = {static_cast<uint32_t>(hash >> 32), id};
  if (id >= std::ssize(spans_)) spans_.resize(id + 1);
  spans_[id] = {static_cast<uint32_t>(bytes_.size()), static_cast<int32_t>(spelling.size())};
  bytes_ += spelling;
  longest_bytes_ = std::max(longest_bytes_, spelling.size());
  ++count_;
  return {};
}

std::optional<TokenId> Vocabulary::find(std::string_view spelling) const {
  if (slots_.empty() || spelling.size() > longest_bytes_) return std::nullopt;
  const Slot& slot = slots_[slot_of(spelling, hash_bytes(spelling))];
  if (slot.id < 0) return std::nullopt;
  return slot.id;
}

std::string_view Vocabulary::spelling(TokenId id) const {
  if (!contains(id)) return {};
  const Span& span = spans_[id];
  return std::string_view(bytes_).substr(span.start, span.size);
}

bool Vocabulary::contains(TokenId id) const {
  return id >= 0 && id < std::ssize(spans_) && spans_[id].size >= 0;
}

}  // namespace banyan
