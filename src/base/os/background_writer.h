// Text for a descriptor that may not be read: a pipe whose reader sleeps, a terminal that was
// stopped, a full disk. Writers never wait and never fail; a thread of its own does the waiting.
//
// What does not fit into the queue is lost and counted, and the count is written once there is
// room again. The descriptor's flags are left alone, since other processes share them.
//
// Thread-safe. The thread may outlive the object where a write never returns; it uses nothing but
// the descriptor and the queue, which it shares.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>

namespace banyan {

class BackgroundWriter {
 public:
  // `descriptor` stays open for the rest of the process. `bytes_max` is what may wait.
  explicit BackgroundWriter(int descriptor, size_t bytes_max = 1 << 20);
  // Waits for what was written a moment at most, as flush() does.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // All of `text` or, where it does not fit, none.
  void write(std::string_view text);
  // Waits until all has been written or `patience` is over; says which.
  bool flush(std::chrono::milliseconds patience = kMoment);

  static constexpr auto kMoment = std::chrono::milliseconds(200);

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
};

}  // namespace banyan
