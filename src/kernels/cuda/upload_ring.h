// Pinned memory for uploads, as a ring: which bytes the next upload takes, and which copies to the
// GPU have to end before. So a step can be uploaded while several before it are in flight. On the
// host; `Copy` is what to wait for.
#pragma once

#include <cstddef>
#include <deque>

namespace banyan::cuda {

template <class Copy>
class UploadRing {
 public:
  explicit UploadRing(size_t bytes) : bytes_(bytes) {}

  // An upload takes at most so many bytes at a time.
  size_t part_max() const { return bytes_ / 2; }

  // Where `bytes` of them begin. Calls wait(copy) for the oldest copies until they are free.
  template <class Wait>
  size_t take(size_t bytes, const Wait& wait) {
    if (pending_.empty()) next_ = 0;
    bool wraps = next_ + bytes > bytes_;
    size_t skipped = wraps ? bytes_ - next_ : 0;
    while (bytes_ - used_ < skipped + bytes) {
      wait(pending_.front().copy);
      used_ -= pending_.front().bytes;
      pending_.pop_front();
    }
    size_t begin = wraps ? 0 : next_;
    next_ = begin + bytes;
    taken_ = skipped + bytes;
    return begin;
  }
  // Calls end(copy) for all that are on their way.
  template <class End>
  void drain(const End& end) {
    for (; !pending_.empty(); pending_.pop_front()) end(pending_.front().copy);
    used_ = 0;
  }
  // The copy of the bytes taken last is on its way.
  void started(Copy copy) {
    pending_.push_back({taken_, copy});
    used_ += taken_;
  }

 private:
  struct Pending {
    size_t bytes;
    Copy copy;
  };
  const size_t bytes_;
  size_t next_ = 0, taken_ = 0, used_ = 0;
  std::deque<Pending> pending_;  // oldest first
};

}  // namespace banyan::cuda
