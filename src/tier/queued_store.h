// The common part of stores with threads of their own: jobs wait in queues, reads go before writes,
// and finished jobs wait until the caller takes them.
//
// A derived class calls start() once it is complete and stop() before any part of it is destroyed.
// The functions that it overrides run on the threads, with `worker` counting from 0. At most
// `writers_max` threads are in write_now or idle at a time, and one in idle.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "tier/store.h"

namespace banyan {

class QueuedStore : public TierStore {
 public:
  using Clock = std::chrono::steady_clock;

  void find(const TierQuestion& question) override;
  void read(const TierJob& job) override;
  void write(const TierJob& job) override;
  void take_done(std::vector<TierDone>& done) override;
  void wait(std::chrono::nanoseconds limit) override;

 protected:
  struct Ended {
    TierOutcome outcome = TierOutcome::kDone;
    int64_t bytes = 0;
  };

  // `write_share` is the share of time that writing may take while no caller waits in drain().
  QueuedStore(int workers, int writers_max, double write_share);

  void start();
  // Ends the threads after their current jobs; queued jobs end with kFailed.
  void stop();
  // Returns when every write queued now has ended.
  void drain();
  // No write or idle work runs until the object is destroyed.
  class WritesHeld {
   public:
    explicit WritesHeld(QueuedStore& store);
    ~WritesHeld();

   private:
    QueuedStore& store_;
  };
  // Blocks signals in this thread: they are for other threads, and SIGPIPE of a closed socket would
  // end the process.
  static void block_signals();
  // Ends a job that needed no thread.
  void finish(TierDone done);
  // Requests idle work at that time or earlier.
  void idle_by(Clock::time_point time);

  virtual Ended find_now(int worker, std::span<const TierKey> keys,
                         std::vector<uint8_t>& found) = 0;
  virtual Ended read_now(int worker, const TierJob& job) = 0;
  virtual Ended write_now(int worker, const TierJob& job) = 0;
  // Called when the queues are empty, or when idle work is overdue. Returns when it should be
  // called again.
  virtual Clock::time_point idle(int worker) = 0;

 private:
  struct Job {
    TierOperation operation = TierOperation::kRead;
    TierJob job;
    std::vector<TierKey> keys;  // kFind
  };

  void loop(int worker);
  // What this thread should do now; false: wait until `until`.
  bool choose(Job& job, bool& idle, Clock::time_point& until);
  void run(int worker, Job& job);
  double read_shares_s(int change);
  void run_idle(int worker);

  const int workers_, writers_max_;
  const double write_share_;

  std::mutex mutex_;
  std::condition_variable work_, ended_, drained_;
  std::deque<Job> finds_, reads_, writes_;  // in the order in which they are taken
  std::vector<TierDone> done_;
  // Of reads at a time, each counts its share of the time: the sum over time of 1 / reading_.
  int reading_ = 0;  // threads in read_now
  double read_shares_s_ = 0;
  Clock::time_point shares_until_ = {};
  int writing_ = 0;   // threads in write_now or idle
  int draining_ = 0;  // callers in drain()
  int held_ = 0;
  uint64_t writes_in_ = 0, writes_out_ = 0;
  Clock::time_point write_next_ = {}, idle_next_ = {};
  Clock::time_point idle_asked_ = Clock::time_point::max();  // deadline of current idle work
  bool idling_ = false;                                      // a thread is in idle
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace banyan
