#include "tier/queued_store.h"

#include <algorithm>
#include <csignal>

#include "base/check.h"

namespace banyan {
namespace {

// Idle work that is overdue by this much goes before writes, which may never run out.
constexpr auto kIdlePatience = std::chrono::seconds(1);

}  // namespace

QueuedStore::QueuedStore(int workers, int writers_max, double write_share)
    : workers_(workers), writers_max_(writers_max), write_share_(write_share) {}

void QueuedStore::start() {
  try {
    for (int worker = 0; worker < workers_; ++worker) {
      threads_.emplace_back([this, worker] { loop(worker); });
    }
  } catch (...) {  // out of threads: join those that started, then report
    stop();
    throw;
  }
}

void QueuedStore::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  threads_.clear();
  std::lock_guard lock(mutex_);
  for (std::deque<Job>* jobs : {&finds_, &reads_, &writes_}) {
    for (const Job& job : *jobs) {
      done_.push_back(
          {.id = job.job.id, .operation = job.operation, .outcome = TierOutcome::kFailed});
    }
    jobs->clear();
  }
}

void QueuedStore::find(const TierQuestion& question) {
  Job job{.operation = TierOperation::kFind, .keys = {question.keys.begin(), question.keys.end()}};
  job.job.id = question.id;
  {
    std::lock_guard lock(mutex_);
    finds_.push_back(std::move(job));
  }
  work_.notify_one();
}

void QueuedStore::read(const TierJob& job) {
  {
    std::lock_guard lock(mutex_);
    reads_.push_back({.operation = TierOperation::kRead, .job = job});
  }
  work_.notify_one();
}

void QueuedStore::write(const TierJob& job) {
  {
    std::lock_guard lock(mutex_);
    writes_.push_back({.operation = TierOperation::kWrite, .job = job});
    ++writes_in_;
  }
  work_.notify_one();
}

void QueuedStore::take_done(std::vector<TierDone>& done) {
  done.clear();
  std::lock_guard lock(mutex_);
  std::swap(done, done_);
}

void QueuedStore::wait(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, limit, [this] { return !done_.empty(); });
}

void QueuedStore::finish(TierDone done) {
  {
    std::lock_guard lock(mutex_);
    done_.push_back(std::move(done));
  }
  ended_.notify_all();
}

void QueuedStore::idle_by(Clock::time_point time) {
  {
    std::lock_guard lock(mutex_);
    idle_next_ = std::min(idle_next_, time);
    idle_asked_ = std::min(idle_asked_, time);
  }
  work_.notify_all();
}

void QueuedStore::drain() {
  std::unique_lock lock(mutex_);
  uint64_t last = writes_in_;
  ++draining_;
  work_.notify_all();
  drained_.wait(lock, [&] { return writes_out_ >= last || threads_.empty(); });
  --draining_;
}

QueuedStore::WritesHeld::WritesHeld(QueuedStore& store) : store_(store) {
  std::unique_lock lock(store_.mutex_);
  ++store_.held_;
  store_.drained_.wait(lock, [&] { return store_.writing_ == 0; });
}

QueuedStore::WritesHeld::~WritesHeld() {
  {
    std::lock_guard lock(store_.mutex_);
    --store_.held_;
  }
  store_.work_.notify_all();
}

void QueuedStore::block_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

void QueuedStore::loop(int worker) {
  block_signals();
  while (true) {
    Job job;
    bool idle_due = false;
    {
      std::unique_lock lock(mutex_);
      Clock::time_point until;
      while (!stopping_ && !choose(job, idle_due, until)) work_.wait_until(lock, until);
      if (stopping_) return;
    }
    if (idle_due) {
      run_idle(worker);
    } else {
      run(worker, job);
    }
  }
}

bool QueuedStore::choose(Job& job, bool& idle, Clock::time_point& until) {
  Clock::time_point now = Clock::now();
  idle = false;
  until = now + std::chrono::hours(1);
  for (std::deque<Job>* jobs : {&finds_, &reads_}) {
    if (jobs->empty()) continue;
    job = std::move(jobs->front());
    jobs->pop_front();
    return true;
  }
  if (writing_ >= writers_max_ || held_ > 0) return false;
  bool may_write = !writes_.empty() && (draining_ > 0 || now >= write_next_);
  bool idle_due = !idling_ && now >= idle_next_;
  if (idle_due && (!may_write || now >= idle_next_ + kIdlePatience)) {
    idle = idling_ = true;
    idle_next_ = idle_asked_ = Clock::time_point::max();
  } else if (may_write) {
    job = std::move(writes_.front());
    writes_.pop_front();
  } else {
    if (!idling_) until = std::min(until, idle_next_);
    if (!writes_.empty()) until = std::min(until, write_next_);
    return false;
  }
  ++writing_;
  return true;
}

// Call with the lock when a read begins (1) or ends (-1). The difference between both is its share.
double QueuedStore::read_shares_s(int change) {
  Clock::time_point now = Clock::now();
  std::chrono::duration<double> passed = now - shares_until_;
  if (reading_ > 0) read_shares_s_ += passed.count() / reading_;
  shares_until_ = now;
  reading_ += change;
  return read_shares_s_;
}

void QueuedStore::run(int worker, Job& job) {
  TierDone done{.id = job.job.id, .operation = job.operation};
  bool reads = job.operation == TierOperation::kRead;
  Clock::time_point begin = Clock::now();
  double shares_s = 0;
  if (reads) {
    std::lock_guard lock(mutex_);
    shares_s = read_shares_s(1);
  }
  Ended ended;
  switch (job.operation) {
    case TierOperation::kFind:
      ended = find_now(worker, job.keys, done.found);
      break;
    case TierOperation::kRead:
      ended = read_now(worker, job.job);
      break;
    case TierOperation::kWrite:
      ended = write_now(worker, job.job);
      break;
  }
  Clock::time_point now = Clock::now();
  done.outcome = ended.outcome;
  done.work[0] = {.done = true,
                  .bytes = ended.bytes,
                  .seconds = std::chrono::duration<double>(now - begin).count()};
  {
    std::lock_guard lock(mutex_);
    if (reads) done.work[0].seconds = read_shares_s(-1) - shares_s;
    done_.push_back(std::move(done));
    if (job.operation == TierOperation::kWrite) {
      --writing_;
      ++writes_out_;
      write_next_ =
          begin + std::chrono::duration_cast<Clock::duration>((now - begin) / write_share_);
    }
  }
  ended_.notify_all();
  if (job.operation == TierOperation::kWrite) {
    drained_.notify_all();
    work_.notify_all();
  }
}

void QueuedStore::run_idle(int worker) {
  Clock::time_point next = idle(worker);
  {
    std::lock_guard lock(mutex_);
    idle_next_ = std::min(next, idle_asked_);
    idling_ = false;
    --writing_;
  }
  drained_.notify_all();
  work_.notify_all();
}

}  // namespace banyan
