// What stores with threads of their own have in common: jobs wait in queues, reads go before
// writes, and what has ended waits until the caller takes it.
//
// A class over it calls start() when it is complete and stop() before anything of it goes. The
// functions that it overrides run on the threads, `worker` counting from 0; at most `writers_max`
// of them are in write_now or idle at a time, and one in idle.
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

  void find(uint64_t id, std::span<const TierKey> keys) override;
  void read(const TierJob& job) override;
  void write(const TierJob& job) override;
  void take_done(std::vector<TierDone>& done) override;
  void wait(std::chrono::nanoseconds limit) override;

 protected:
  struct Ended {
    TierOutcome outcome = TierOutcome::kDone;
    int64_t bytes = 0;
  };

  // `write_share` is the part of the time that writing may take while nobody waits in drain().
  QueuedStore(int workers, int writers_max, double write_share);

  void start();
  // Ends the threads after the jobs that they have begun; the others end with kFailed.
  void stop();
  // Returns when every write that waits now has ended.
  void drain();
  // No write and no idle work is under way until the object goes.
  class WritesHeld {
   public:
    explicit WritesHeld(QueuedStore& store);
    ~WritesHeld();

   private:
    QueuedStore& store_;
  };
  // Of this thread. They are for others, and one that a closed socket sends would end the process.
  static void block_signals();
  // Ends a job that needed no thread.
  void finish(TierDone done);
  // Idle work is due then, or earlier.
  void idle_by(Clock::time_point time);

  virtual Ended find_now(int worker, std::span<const TierKey> keys,
                         std::vector<uint8_t>& found) = 0;
  virtual Ended read_now(int worker, const TierJob& job) = 0;
  virtual Ended write_now(int worker, const TierJob& job) = 0;
  // Called when nothing waits, or when it has been due for a while; gives the time when it wants to
  // be called again.
  virtual Clock::time_point idle(int worker) = 0;

 private:
  struct Job {
    TierOperation operation = TierOperation::kRead;
    TierJob job;
    std::vector<TierKey> keys;  // kFind
  };

  void loop(int worker);
  // What this thread should do now; false: it waits until `until`.
  bool choose(Job& job, bool& idle, Clock::time_point& until);
  void run(int worker, Job& job);
  void run_idle(int worker);

  const int workers_, writers_max_;
  const double write_share_;

  std::mutex mutex_;
  std::condition_variable work_, ended_, drained_;
  std::deque<Job> reads_, writes_;
  std::vector<TierDone> done_;
  int writing_ = 0;   // threads in write_now or idle
  int draining_ = 0;  // callers of drain()
  int held_ = 0;
  uint64_t writes_in_ = 0, writes_out_ = 0;
  Clock::time_point write_next_ = {}, idle_next_ = {};
  Clock::time_point idle_asked_ = Clock::time_point::max();  // by idle_by, during idle work
  bool idling_ = false;                                      // a thread is in idle
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace banyan
