#include "grammar/run/stacks.h"

#include <xxhash.h>

#include <algorithm>

namespace banyan {
namespace {

uint64_t hash_of(const void* data, size_t bytes, uint64_t seed = 0) {
  return XXH3_64bits_withSeed(data, bytes, seed);
}

}  // namespace

Stacks::Stacks() : buckets_(256, 0) {
  frames_.push_back({});
  sets_.push_back({.begin = 0, .size = 1, .hash = hash_of("bottom", 6)});
}

StackId Stacks::push(const Frame& frame) {
  frames_.push_back(frame);
  return intern_last(1);
}

uint64_t Stacks::portable_hash(std::span<const Frame> frames) const {
  uint64_t hash = frames.size();
  for (const Frame& f : frames) {
    uint64_t below = f.node == Frame::kBottom ? 0 : sets_[f.below].hash;
    uint64_t words[3] = {f.node, f.hashed_count, below};
    hash = hash_of(words, sizeof words, hash);
  }
  return hash;
}

// Interns the last `count` frames as a set; drops them if an equal set exists.
StackId Stacks::intern_last(size_t count) {
  size_t begin = frames_.size() - count;
  std::span<const Frame> frames(frames_.data() + begin, count);
  uint64_t exact = hash_of(frames.data(), frames.size_bytes());
  size_t bucket = exact & (buckets_.size() - 1);
  for (uint32_t i = buckets_[bucket]; i != 0; i = sets_[i - 1].next) {
    const Set& set = sets_[i - 1];
    if (set.exact_hash != exact || set.size != count) continue;
    if (!std::equal(frames.begin(), frames.end(), frames_.begin() + set.begin)) continue;
    frames_.resize(begin);
    return i - 1;
  }
  Set set{.begin = static_cast<uint32_t>(begin), .size = static_cast<uint32_t>(count)};
  for (const Frame& f : frames) {
    if (f.node != Frame::kBottom) set.depth = std::max(set.depth, sets_[f.below].depth + 1);
  }
  set.hash = portable_hash(frames);
  set.exact_hash = exact;
  set.next = buckets_[bucket];
  sets_.push_back(set);
  buckets_[bucket] = static_cast<uint32_t>(sets_.size());
  if (sets_.size() > buckets_.size()) grow_buckets();
  return static_cast<StackId>(sets_.size() - 1);
}

StackId Stacks::unite(StackId a, StackId b) {
  if (a == b) return a;
  std::vector<Frame> merged;
  Set left = sets_[a], right = sets_[b];
  size_t i = left.begin, j = right.begin, i_end = i + left.size, j_end = j + right.size;
  auto key = [this](size_t k) { return uint64_t{frames_[k].node} << 32 | frames_[k].count; };
  while (i < i_end || j < j_end) {
    bool take_i = j == j_end || (i < i_end && key(i) <= key(j));
    bool take_j = i == i_end || (j < j_end && key(j) <= key(i));
    Frame frame = frames_[take_i ? i : j];
    if (take_i && take_j) frame.below = unite(frames_[i].below, frames_[j].below);
    merged.push_back(frame);
    i += take_i ? 1 : 0;
    j += take_j ? 1 : 0;
  }
  frames_.insert(frames_.end(), merged.begin(), merged.end());
  return intern_last(merged.size());
}

void Stacks::rewind(size_t mark) {
  while (sets_.size() > mark) {
    const Set& set = sets_.back();
    buckets_[set.exact_hash & (buckets_.size() - 1)] = set.next;
    frames_.resize(set.begin);
    sets_.pop_back();
  }
}

void Stacks::grow_buckets() {
  buckets_.assign(buckets_.size() * 4, 0);
  for (size_t i = 1; i < sets_.size(); ++i) {
    uint32_t& bucket = buckets_[sets_[i].exact_hash & (buckets_.size() - 1)];
    sets_[i].next = bucket;
    bucket = static_cast<uint32_t>(i + 1);
  }
}

}  // namespace banyan
