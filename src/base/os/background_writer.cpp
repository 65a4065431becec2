#include "base/os/background_writer.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/signed.h"

namespace banyan {
namespace {

constexpr int kAgain_ms = 20;  // retry delay if write would block although poll reported room

// Writes all of `text`, blocking as needed. False if the descriptor accepts no more.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    pollfd waiting = {.fd = descriptor, .events = POLLOUT, .revents = 0};
    if (poll(&waiting, 1, -1) < 0 && errno != EINTR) return false;
    // A pipe that polls writable accepts this many bytes without blocking.
    ssize_t count = ::write(descriptor, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (count >= 0) {
      text.remove_prefix(as_size(count));
    } else if (errno == EAGAIN) {
      poll(nullptr, 0, kAgain_ms);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct BackgroundWriter::Queue {
  Queue(int the_descriptor, size_t the_bytes_max)
      : descriptor(the_descriptor), bytes_max(the_bytes_max) {}

  void run();

  const int descriptor;
  const size_t bytes_max;
  std::mutex mutex;
  std::condition_variable work, idle;
  std::string text;    // not yet taken by the thread
  size_t lost = 0;     // dropped texts not yet reported to the reader
  bool busy = false;   // the thread is writing
  bool works = true;   // the last write succeeded
  bool ended = false;  // the object was destroyed
};

void BackgroundWriter::Queue::run() {
  // A closed reader must be an error of write(), not a SIGPIPE that ends the process.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::string taken;
  std::unique_lock lock(mutex);
  while (true) {
    auto has_work = [&] { return !text.empty() || (lost > 0 && works); };
    work.wait(lock, [&] { return ended || has_work(); });
    if (!has_work()) return;
    taken.clear();
    taken.swap(text);
    size_t dropped = std::exchange(lost, 0);
    busy = true;
    lock.unlock();
    if (dropped > 0) {
      taken +=
          fmt::format("banyan: {} lines of the log are lost: it was not read in time\n", dropped);
    }
    bool written = write_all(descriptor, taken);
    lock.lock();
    busy = false;
    works = written;
    if (!written) lost += dropped + 1;
    if (text.empty()) idle.notify_all();
  }
}

BackgroundWriter::BackgroundWriter(int descriptor, size_t bytes_max)
    : queue_(std::make_shared<Queue>(descriptor, bytes_max)) {
  std::thread([queue = queue_] { queue->run(); }).detach();
}

BackgroundWriter::~BackgroundWriter() {
  flush();
  std::lock_guard lock(queue_->mutex);
  queue_->ended = true;
  queue_->work.notify_all();
}

void BackgroundWriter::write(std::string_view text) {
  std::lock_guard lock(queue_->mutex);
  if (queue_->text.size() + text.size() > queue_->bytes_max) {
    ++queue_->lost;
    return;
  }
  queue_->text += text;
  queue_->work.notify_one();
}

bool BackgroundWriter::flush(std::chrono::milliseconds patience) {
  std::unique_lock lock(queue_->mutex);
  return queue_->idle.wait_for(lock, patience,
                               [&] { return queue_->text.empty() && !queue_->busy; });
}

}  // namespace banyan
