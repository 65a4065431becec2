// Writes text to a descriptor that may block: a pipe whose reader sleeps, a stopped terminal, a
// full disk. Callers never wait and never fail; a background thread waits instead.
//
// Text that does not fit into the queue is dropped and counted; the count is written once there is
// room. The descriptor's flags are not changed, since other processes share them.
//
// Thread-safe. If a write never returns, the thread outlives the object; it uses only the
// descriptor and the queue, which it co-owns.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>

namespace banyan {

class BackgroundWriter {
 public:
  // `descriptor` must stay open for the rest of the process. `bytes_max` is the size of the queue.
  explicit BackgroundWriter(int descriptor, size_t bytes_max = 1 << 20);
  // Waits up to kMoment for queued text, as flush() does.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Queues all of `text`, or drops it if it does not fit.
  void write(std::string_view text);
  // Waits until everything is written (true) or `patience` is over (false).
  bool flush(std::chrono::milliseconds patience = kMoment);

  static constexpr auto kMoment = std::chrono::milliseconds(200);

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
};

}  // namespace banyan
