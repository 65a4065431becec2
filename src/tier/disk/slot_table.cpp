#include "tier/disk/slot_table.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {

size_t SlotTable::HashKey::operator()(const PageKey& key) const noexcept {
  uint64_t word = 0;
  std::memcpy(&word, key.bytes.data(), sizeof word);
  return hash_number(word);
}

void SlotTable::grow(int64_t slots, bool unknown) {
  CHECK(slots >= size() && slots < kNone);
  auto begin = narrow<uint32_t>(slots_.size());
  slots_.resize(as_size(slots));
  for (auto slot = narrow<uint32_t>(slots); slot-- > begin;) {
    slots_[slot].state = unknown ? State::kUnknown : State::kFree;
    if (!unknown) free_.push_back(slot);  // the first one is taken first
  }
  if (unknown) unknown_ += slots - begin;
}

std::optional<uint32_t> SlotTable::find(const PageKey& key) const {
  auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  return found->second;
}

IndexEntry SlotTable::entry(uint32_t slot) const {
  const Slot& s = slots_[slot];
  return {.key = s.key,
          .parent = s.parent,
          .end = s.end,
          .slot = slot,
          .used_s = s.used_s,
          .write_number = s.write_number,
          .live = s.state == State::kLive};
}

void SlotTable::link(uint32_t slot) {
  Slot& s = slots_[slot];
  s.older = youngest_;
  s.younger = kNone;
  if (youngest_ != kNone) slots_[youngest_].younger = slot;
  youngest_ = slot;
  if (oldest_ == kNone) oldest_ = slot;
}

void SlotTable::unlink(uint32_t slot) {
  Slot& s = slots_[slot];
  (s.older == kNone ? oldest_ : slots_[s.older].younger) = s.younger;
  (s.younger == kNone ? youngest_ : slots_[s.younger].older) = s.older;
  s.older = s.younger = kNone;
}

void SlotTable::touch(uint32_t slot, uint32_t used_s) {
  Slot& s = slots_[slot];
  if (s.state != State::kLive) return;
  unlink(slot);
  link(slot);
  if (s.used_s == used_s) return;
  s.used_s = used_s;
  if (!s.touched) touched_.push_back(slot);
  s.touched = true;
}

std::vector<uint32_t> SlotTable::take_touched() {
  for (uint32_t slot : touched_) slots_[slot].touched = false;
  return std::exchange(touched_, {});
}

void SlotTable::pin(uint32_t slot) {
  CHECK(slots_[slot].pins < UINT16_MAX);
  ++slots_[slot].pins;
}

void SlotTable::unpin(uint32_t slot) {
  Slot& s = slots_[slot];
  CHECK(s.pins > 0);
  if (--s.pins > 0 || !s.given_up) return;
  s.given_up = false;
  s.state = State::kFree;
  free_.push_back(slot);
}

std::optional<uint32_t> SlotTable::take_free() {
  if (free_.empty()) return std::nullopt;
  uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot].state = State::kWriting;
  return slot;
}

std::optional<uint32_t> SlotTable::oldest() const {
  for (uint32_t slot = oldest_; slot != kNone; slot = slots_[slot].younger) {
    if (slots_[slot].pins == 0) return slot;
  }
  return std::nullopt;
}

void SlotTable::give_up(uint32_t slot) {
  Slot& s = slots_[slot];
  if (s.state == State::kFree || s.given_up) return;
  if (s.state == State::kLive) {
    by_key_.erase(s.key);
    unlink(slot);
  }
  if (s.state == State::kUnknown) --unknown_;
  s.state = s.pins > 0 ? State::kWriting : State::kFree;
  s.given_up = s.pins > 0;
  if (s.pins == 0) free_.push_back(slot);
}

void SlotTable::set_aside(uint32_t slot) {
  Slot& s = slots_[slot];
  CHECK(s.state == State::kLive);
  by_key_.erase(s.key);
  unlink(slot);
  s.state = State::kUnknown;
  ++unknown_;
}

bool SlotTable::put(const IndexEntry& entry) {
  Slot& s = slots_[entry.slot];
  CHECK((s.state == State::kWriting || s.state == State::kUnknown) && s.pins == 0,
        "slot {} is in use", entry.slot);
  write_number_ = std::max(write_number_, entry.write_number);
  if (auto other = find(entry.key)) {
    if (slots_[*other].write_number > entry.write_number) {
      give_up(entry.slot);
      return false;
    }
    give_up(*other);
  }
  if (s.state == State::kUnknown) --unknown_;
  s.key = entry.key;
  s.parent = entry.parent;
  s.end = entry.end;
  s.write_number = entry.write_number;
  s.used_s = entry.used_s;
  s.state = State::kLive;
  by_key_[entry.key] = entry.slot;
  link(entry.slot);
  return true;
}

std::optional<uint32_t> SlotTable::next_unknown(uint32_t slot) const {
  for (; slot < slots_.size(); ++slot) {
    if (slots_[slot].state == State::kUnknown && slots_[slot].pins == 0) return slot;
  }
  return std::nullopt;
}

}  // namespace banyan
