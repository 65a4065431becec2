#include "router/meta_tree.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/divide.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr size_t kShards = 256;  // by the first byte of a key
constexpr size_t kShardEntriesMin = 16;
constexpr int kWordBits = 64;
constexpr size_t kPrefetchAhead = 8;
constexpr uint32_t kChunkBlocks = 256;

uint64_t bit_of(int slot) {
  return uint64_t{1} << (slot % kWordBits);
}

size_t word_of(int slot) {
  return slot / kWordBits;
}

uint8_t class_bit(int unit_class) {
  return static_cast<uint8_t>(1U << unsigned(unit_class));
}

// A key is a digest, so any of its bytes will do.
size_t hash_of(const PageKey& key) {
  size_t hash = 0;
  std::memcpy(&hash, key.bytes.data() + 8, sizeof hash);
  return hash;
}

template <class Visit>
void for_each_bit(const uint64_t* set, size_t words, Visit visit) {
  int word = 0;  // its first slot
  for (size_t w = 0; w < words; ++w, word += kWordBits) {
    for (uint64_t left = set[w]; left != 0; left &= left - 1) {
      visit(word + std::countr_zero(left));
    }
  }
}

}  // namespace

MetaTree::MetaTree(const MetaTreeConfig& config)
    : classes_(config.classes),
      shard_entries_max_(std::max<int64_t>(1, config.entries_max / int64_t{kShards})),
      words_(as_size(divide_up(config.slots_max, kWordBits))),
      shards_(kShards),
      slots_(as_size(config.slots_max)),
      open_(words_),
      set_(words_),
      memory_pages_(slots_.size()) {
  CHECK(config.slots_max > 0 && config.slots_max < kNobody);
}

int64_t MetaTree::bytes() const {
  size_t bytes = chunks_.size() * kChunkBlocks * block_words() * sizeof(uint64_t);
  for (const Shard& shard : shards_) bytes += shard.entries.capacity() * sizeof(Entry);
  return bytes;
}

// ---- Slots -------------------------------------------------------------------------------------

int MetaTree::open() {
  auto is_free = [](const Slot& slot) { return !slot.open && slot.unswept == 0; };
  auto found = std::ranges::find_if(slots_, is_free);
  while (found == slots_.end() && sweep()) found = std::ranges::find_if(slots_, is_free);
  found = std::ranges::find_if(slots_, is_free);
  if (found == slots_.end()) return -1;
  *found = {.open = true};
  int slot = narrow<int>(found - slots_.begin());
  open_[word_of(slot)] |= bit_of(slot);
  return slot;
}

void MetaTree::close(int slot) {
  Slot& closing = at(slots_, slot);
  CHECK(closing.open);
  storage_units_ -= closing.stored;
  closing = {.open = false, .unswept = int{kShards}};
  open_[word_of(slot)] &= ~bit_of(slot);
  ++closed_;
}

bool MetaTree::sweep() {
  if (closed_ == 0) return false;
  Shard& shard = shards_[swept_];
  swept_ = (swept_ + 1) % kShards;
  // Erasing moves other entries into its place, perhaps from the end of the table to its beginning;
  // those were visited already.
  for (size_t i = 0; i < shard.entries.size(); ++i) {
    while (!shard.entries[i].vacant()) {
      forget_closed(shard.entries[i]);
      if (is_held(shard.entries[i])) break;
      erase(shard, i);
    }
  }
  for (Slot& slot : slots_) {
    if (slot.unswept > 0 && --slot.unswept == 0) --closed_;
  }
  return closed_ > 0;
}

void MetaTree::forget_closed(Entry& entry) const {
  if (entry.block == 0) {
    for (Holder& holder : entry.holders) {
      if (holder.slot != kNobody && !is_open(holder.slot)) holder = {};
    }
    return;
  }
  uint64_t* all = bits(entry, 0, 0);
  for (size_t i = 0; i < block_words(); ++i) all[i] &= open_[i % words_];
}

// ---- The table ---------------------------------------------------------------------------------

size_t MetaTree::place_of(const Shard& shard, const PageKey& key) {
  size_t mask = shard.entries.size() - 1, place = hash_of(key) & mask;
  while (!shard.entries[place].vacant() && shard.entries[place].key != key) {
    place = (place + 1) & mask;
  }
  return place;
}

MetaTree::Entry* MetaTree::find(const PageKey& key) {
  Shard& shard = shard_of(key);
  if (shard.entries.empty()) return nullptr;
  Entry& entry = shard.entries[place_of(shard, key)];
  return entry.vacant() ? nullptr : &entry;
}

void MetaTree::prefetch(const PageKey& key) const {
  const Shard& shard = shard_of(key);
  if (shard.entries.empty()) return;
  __builtin_prefetch(&shard.entries[hash_of(key) & (shard.entries.size() - 1)]);
}

// A new entry is vacant until it gets a holder, which must happen before the next call.
MetaTree::Entry& MetaTree::find_or_add(const PageKey& key) {
  Shard& shard = shard_of(key);
  if (Entry* found = find(key)) return *found;
  if (shard.count >= shard_entries_max_) evict_from(shard);
  auto capacity = std::ssize(shard.entries);
  if ((shard.count + 1) * 4 > capacity * 3) grow(shard);
  Entry& entry = shard.entries[place_of(shard, key)];
  entry = {.key = key};
  ++shard.count;
  ++entries_;
  return entry;
}

void MetaTree::grow(Shard& shard) {
  std::vector<Entry> old(std::max(kShardEntriesMin, shard.entries.size() * 2));
  std::swap(old, shard.entries);
  for (const Entry& entry : old) {
    if (!entry.vacant()) shard.entries[place_of(shard, entry.key)] = entry;
  }
  shard.hand = 0;
}

// An entry that was not requested since the clock's hand last passed it.
void MetaTree::evict_from(Shard& shard) {
  for (;; shard.hand = (shard.hand + 1) % shard.entries.size()) {
    Entry& entry = shard.entries[shard.hand];
    bool touched = entry.touched != 0;
    entry.touched = 0;
    if (entry.vacant() || touched) continue;
    uncount(entry);
    erase(shard, shard.hand);
    ++evicted_;
    return;
  }
}

// Moves later entries up to close the gap.
void MetaTree::erase(Shard& shard, size_t place) {
  std::vector<Entry>& entries = shard.entries;
  if (entries[place].block != 0) free_blocks_.push_back(entries[place].block);
  size_t mask = entries.size() - 1, gap = place;
  for (size_t next = (gap + 1) & mask; !entries[next].vacant(); next = (next + 1) & mask) {
    size_t home = hash_of(entries[next].key) & mask;
    if (((next - home) & mask) < ((next - gap) & mask)) continue;
    entries[gap] = entries[next];
    gap = next;
  }
  entries[gap] = {};
  --shard.count;
  --entries_;
}

// ---- Holders -----------------------------------------------------------------------------------

uint64_t* MetaTree::bits(const Entry& entry, int plane, int unit_class) const {
  uint32_t block = entry.block - 1;
  uint64_t* begin = chunks_[block / kChunkBlocks].get() + block % kChunkBlocks * block_words();
  return begin + as_size(plane * classes_.count + unit_class) * words_;
}

void MetaTree::count(int slot, Plane plane, int unit_class, int64_t change) {
  Slot& counted = at(slots_, slot);
  if (!counted.open) return;
  if (plane == kMemory && unit_class == kPathClass) counted.held += change;
  if (plane != kStorage) return;
  counted.stored += change;
  storage_units_ += change;
}

void MetaTree::uncount(const Entry& entry) {
  for (Plane plane : {kMemory, kStorage}) {
    for (int c = 0; c < classes_.count; ++c) {
      std::ranges::fill(set_, 0);
      add_holders(entry, c, plane == kStorage, set_.data());
      for_each_bit(set_.data(), words_, [&](int slot) {
        if (has(entry, slot, plane, c)) count(slot, plane, c, -1);
      });
    }
  }
}

bool MetaTree::has(const Entry& entry, int slot, Plane plane, int unit_class) const {
  if (entry.block != 0) {
    return (bits(entry, plane, unit_class)[word_of(slot)] & bit_of(slot)) != 0;
  }
  return std::ranges::any_of(entry.holders, [&](const Holder& holder) {
    return holder.slot == slot && (holder.classes[plane] & class_bit(unit_class)) != 0;
  });
}

bool MetaTree::is_held(const Entry& entry) const {
  if (entry.block == 0) return !entry.vacant();
  const uint64_t* all = bits(entry, 0, 0);
  return std::any_of(all, all + block_words(), [](uint64_t word) { return word != 0; });
}

// Null: both inline places are taken by other slots.
MetaTree::Holder* MetaTree::holder_for(Entry& entry, int slot) const {
  Holder* unused = nullptr;
  for (Holder& holder : entry.holders) {
    if (holder.slot == slot) return &holder;
    if (holder.slot == kNobody || !is_open(holder.slot)) unused = &holder;
  }
  if (unused != nullptr) *unused = {.slot = narrow<uint16_t>(slot)};
  return unused;
}

void MetaTree::spill(Entry& entry) {
  if (free_blocks_.empty()) {
    if (blocks_ % kChunkBlocks == 0) {
      chunks_.push_back(std::make_unique<uint64_t[]>(kChunkBlocks * block_words()));
    }
    free_blocks_.push_back(++blocks_);
  }
  auto holders = std::exchange(entry.holders, {});
  entry.block = free_blocks_.back() & 0x7fffffffU;
  free_blocks_.pop_back();
  std::fill_n(bits(entry, 0, 0), block_words(), 0);
  for (const Holder& holder : holders) {
    for (int plane = 0; plane < kPlanes; ++plane) {
      for (int c = 0; c < classes_.count; ++c) {
        bool held = (at(holder.classes, plane) & class_bit(c)) != 0;
        if (held) bits(entry, plane, c)[word_of(holder.slot)] |= bit_of(holder.slot);
      }
    }
  }
}

void MetaTree::set(int slot, const PageKey& key, Plane plane, int unit_class) {
  Entry& entry = find_or_add(key);
  if (has(entry, slot, plane, unit_class)) return;
  count(slot, plane, unit_class, 1);
  if (entry.block == 0) {
    if (Holder* holder = holder_for(entry, slot)) {
      holder->classes[plane] |= class_bit(unit_class);
      return;
    }
    spill(entry);
  }
  bits(entry, plane, unit_class)[word_of(slot)] |= bit_of(slot);
}

void MetaTree::clear(int slot, const PageKey& key, Plane plane, int unit_class) {
  Entry* entry = find(key);
  if (entry == nullptr || !has(*entry, slot, plane, unit_class)) return;
  count(slot, plane, unit_class, -1);
  if (entry->block != 0) {
    bits(*entry, plane, unit_class)[word_of(slot)] &= ~bit_of(slot);
  } else {
    Holder& holder = *holder_for(*entry, slot);
    holder.classes[plane] &= static_cast<uint8_t>(~class_bit(unit_class));
    if (holder.empty()) holder = {};
  }
  Shard& shard = shard_of(key);
  if (!is_held(*entry)) erase(shard, as_size(entry - shard.entries.data()));
}

void MetaTree::stored(int slot, const KvUnit& unit) {
  if (unit.unit_class >= classes_.count) return;
  set(slot, unit.page, unit.tier == KvTier::kStorage ? kStorage : kMemory, unit.unit_class);
}

void MetaTree::removed(int slot, const KvUnit& unit) {
  if (unit.unit_class >= classes_.count) return;
  clear(slot, unit.page, unit.tier == KvTier::kStorage ? kStorage : kMemory, unit.unit_class);
}

void MetaTree::predict(int slot, std::span<const PageKey> pages) {
  for (int c = 0; c < classes_.count; ++c) {
    if (!classes_[c].decides()) continue;
    size_t first = classes_[c].paged() ? 0 : pages.size() - std::min<size_t>(1, pages.size());
    for (const PageKey& page : pages.subspan(first)) set(slot, page, kPredicted, c);
  }
}

void MetaTree::unpredict(int slot, std::span<const PageKey> pages) {
  for (int c = 0; c < classes_.count; ++c) {
    for (const PageKey& page : pages) clear(slot, page, kPredicted, c);
  }
}

bool MetaTree::holds(int slot, const KvUnit& unit) const {
  const Shard& shard = shard_of(unit.page);
  if (shard.entries.empty() || unit.unit_class >= classes_.count) return false;
  const Entry& entry = shard.entries[place_of(shard, unit.page)];
  return has(entry, slot, unit.tier == KvTier::kStorage ? kStorage : kMemory, unit.unit_class);
}

// ---- Prefixes ----------------------------------------------------------------------------------

void MetaTree::add_holders(const Entry& entry, int unit_class, bool storage, uint64_t* set) const {
  if (entry.block == 0) {
    for (const Holder& holder : entry.holders) {
      uint8_t classes = holder.classes[kMemory] | holder.classes[kPredicted];
      if (storage) classes |= holder.classes[kStorage];
      if ((classes & class_bit(unit_class)) != 0) set[word_of(holder.slot)] |= bit_of(holder.slot);
    }
    return;
  }
  for (int plane = 0; plane < kPlanes; ++plane) {
    if (plane == kStorage && !storage) continue;
    const uint64_t* holders = bits(entry, plane, unit_class);
    for (size_t w = 0; w < words_; ++w) set[w] |= holders[w];
  }
}

// Computes into resumable_ which slots have all pages up to each page. Returns the number of pages
// for which there is one.
size_t MetaTree::follow_path(bool storage) {
  resumable_.assign(path_.size() * words_, 0);
  const uint64_t* before = open_.data();
  for (size_t page = 0; page < path_.size(); ++page) {
    uint64_t* now = resumable_.data() + page * words_;
    add_holders(*path_[page], kPathClass, storage, now);
    uint64_t any = 0;
    for (size_t w = 0; w < words_; ++w) any |= now[w] &= before[w];
    if (any == 0) return page;
    before = now;
  }
  return path_.size();
}

// Removes slots that lack pages of the window before each position. A run of pages is the
// intersection of two shorter runs, so its cost is logarithmic in its length.
void MetaTree::keep_runs(size_t pages, int unit_class, bool storage) {
  int64_t page = classes_.page_size_tokens;
  int64_t reach = classes_[unit_class].window_tokens - 1;
  size_t need = pages;
  if (classes_[unit_class].windowed()) {
    need = std::min(pages, as_size((reach + page - 1) / page));
  }
  if (need == 0) return;
  runs_.assign(pages * words_, 0);
  for (size_t i = 0; i < pages; ++i) {
    add_holders(*path_[i], unit_class, storage, runs_.data() + i * words_);
  }
  auto meet = [&](size_t distance) {
    for (size_t i = runs_.size(); i-- > distance * words_;)
      runs_[i] &= runs_[i - distance * words_];
  };
  size_t length = 1;
  for (; length * 2 <= need; length *= 2) meet(length);
  if (need > length) meet(need - length);
  for (size_t i = 0; i < runs_.size(); ++i) resumable_[i] &= runs_[i];
}

void MetaTree::keep_snapshots(size_t pages, int unit_class, bool storage) {
  for (size_t i = 0; i < pages; ++i) {
    std::ranges::fill(set_, 0);
    add_holders(*path_[i], unit_class, storage, set_.data());
    for (size_t w = 0; w < words_; ++w) resumable_[i * words_ + w] &= set_[w];
  }
}

template <class Visit>
void MetaTree::visit_depths(bool storage, Visit visit) {
  size_t pages = follow_path(storage);
  for (int c = 1; c < classes_.count; ++c) {
    if (!classes_[c].decides()) continue;
    if (classes_[c].paged()) {
      keep_runs(pages, c, storage);
    } else {
      keep_snapshots(pages, c, storage);
    }
  }
  std::vector<uint64_t>& seen = set_;
  std::ranges::fill(seen, 0);
  for (size_t page = pages; page-- > 0;) {
    uint64_t* now = resumable_.data() + page * words_;
    for (size_t w = 0; w < words_; ++w) {
      now[w] &= ~seen[w];
      seen[w] |= now[w];
    }
    for_each_bit(now, words_, [&](int slot) { visit(slot, page + 1); });
  }
}

std::span<const PrefixHolder> MetaTree::match(std::span<const PageKey> pages) {
  path_.clear();
  found_.clear();
  for (size_t i = 0; i < std::min(kPrefetchAhead, pages.size()); ++i) prefetch(pages[i]);
  for (size_t i = 0; i < pages.size(); ++i) {
    if (i + kPrefetchAhead < pages.size()) prefetch(pages[i + kPrefetchAhead]);
    Entry* entry = find(pages[i]);
    if (entry == nullptr) break;
    entry->touched = 1;
    path_.push_back(entry);
  }
  visit_depths(true, [&](int slot, int64_t depth) { found_.push_back({slot, depth, depth}); });
  if (storage_units_ == 0) return found_;
  std::ranges::fill(memory_pages_, 0);
  visit_depths(false, [&](int slot, int64_t depth) { at(memory_pages_, slot) = depth; });
  for (PrefixHolder& holder : found_) {
    holder.memory_pages = at(memory_pages_, holder.slot);
  }
  return found_;
}

}  // namespace banyan
