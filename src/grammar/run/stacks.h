// Sets of return stacks, shared and interned: the calls that enclose a position in the grammar. A
// set is a list of top frames, each with the set of stacks below it. Equal sets have equal ids, so
// states are compared by number.
//
// Frames with the same top are merged and the sets below them united. A set is therefore never
// larger than a list, even if ambiguity makes the number of stacks exponential.
//
// Not thread-safe; one per matcher. rewind() discards ids made after mark().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace banyan {

using StackId = uint32_t;

struct Frame {
  static constexpr uint32_t kBottom = UINT32_MAX;

  uint32_t node = kBottom;    // the kCall or kLoop node to return to; kBottom: none
  uint32_t count = 0;         // kLoop: completed iterations of the body
  uint32_t hashed_count = 0;  // replaces `count` in portable hashes; a function of node and count
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
  // Hash of the contents with `hashed_count`, so it is equal in every matcher of a grammar.
  uint64_t hash(StackId id) const { return sets_[id].hash; }

  // Whether one more frame fits on `below`.
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
    uint32_t next = 0;   // next set of its bucket, + 1
    uint64_t hash = 0;
    uint64_t exact_hash = 0;  // of ids and exact counts
  };

  StackId intern_last(size_t count);
  uint64_t portable_hash(std::span<const Frame> frames) const;
  void grow_buckets();

  std::vector<Frame> frames_;
  std::vector<Set> sets_;
  std::vector<uint32_t> buckets_;  // id + 1, newest first
};

}  // namespace banyan
