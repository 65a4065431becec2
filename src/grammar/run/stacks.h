// Sets of return stacks, shared and interned: what a position in the grammar must remember of the
// calls around it. A set is a list of top frames, each with the set of stacks below it; equal sets
// have equal ids, so comparing states compares numbers.
//
// Frames with the same top are kept together and their rests united, so a set takes no more than a
// list even where a grammar is so ambiguous that the number of stacks grows exponentially.
//
// Not thread-safe; one per matcher. Ids made after mark() vanish with rewind().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace banyan {

using StackId = uint32_t;

struct Frame {
  static constexpr uint32_t kBottom = UINT32_MAX;

  uint32_t node = kBottom;    // the kCall or kLoop node that waits; kBottom: nothing does
  uint32_t count = 0;         // kLoop: how often the body has been completed
  uint32_t hashed_count = 0;  // what stands for `count` in portable hashes; follows from both
  StackId below = 0;

  bool operator==(const Frame&) const = default;
};

class Stacks {
 public:
  static constexpr StackId kBottomStack = 0;
  static constexpr uint32_t kDepthMax = 4096;

  Stacks();

  std::span<const Frame> frames(StackId id) const {
    return {frames_.data() + sets_[id].begin, sets_[id].size};
  }
  // Of the contents with their `hashed_count`, hence the same in every matcher of a grammar.
  uint64_t hash(StackId id) const { return sets_[id].hash; }

  // Whether one more frame may stand on `below`.
  bool may_push(StackId below) const { return sets_[below].depth < kDepthMax; }
  StackId push(const Frame& frame);
  StackId unite(StackId a, StackId b);

  size_t mark() const { return sets_.size(); }
  void rewind(size_t mark);
  size_t bytes() const {
    return frames_.capacity() * sizeof(Frame) + sets_.capacity() * sizeof(Set);
  }

 private:
  struct Set {
    uint32_t begin = 0, size = 0;
    uint32_t depth = 0;  // of its deepest stack
    uint32_t next = 0;   // in its bucket, + 1
    uint64_t hash = 0;
    uint64_t exact_hash = 0;  // of ids and counts as they are
  };

  StackId intern_last(size_t count);
  uint64_t portable_hash(std::span<const Frame> frames) const;
  void grow_buckets();

  std::vector<Frame> frames_;
  std::vector<Set> sets_;
  std::vector<uint32_t> buckets_;  // id + 1, the newest first
};

}  // namespace banyan
