// The engine's thread and its queues: order, bounds, cancellation, shutdown.
#include "llm/engine_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <semaphore>

#include "support/models/tiny_model.h"

namespace banyan::engine_thread_test {
namespace {

using Task = std::move_only_function<void()>;

// The delivery thread of a test: the test itself, when it calls run_until().
class Mailbox {
 public:
  void post(Task task) {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_one();
  }

  void run_until(const std::function<bool()>& done) {
    while (!done()) {
      std::unique_lock lock(mutex_);
      ASSERT_TRUE(wake_.wait_for(lock, std::chrono::seconds(20), [&] { return !tasks_.empty(); }));
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  void run_all() {
    for (; !tasks_.empty(); tasks_.pop_front()) tasks_.front()();
  }
  size_t waiting() {
    std::lock_guard lock(mutex_);
    return tasks_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
};

class EngineThreadTest : public testing::Test {
 protected:
  void start(EngineConfig changes(EngineConfig) = [](EngineConfig c) { return c; }) {
    engine_ = Engine::load(changes(test::tiny_model(folder_))).value();
    options_.post = [this](Task task) { mailbox_.post(std::move(task)); };
    options_.on_step = [this](const StepReport& report) { stats_ = report.stats; };
    thread_.emplace(*engine_, options_);
  }

  static std::vector<GenerateRequest> requests(size_t count, int64_t tokens) {
    GenerateRequest one;
    one.prompt = {1, 2, 3};
    one.options.max_new_tokens = tokens;
    return std::vector<GenerateRequest>(count, one);
  }

  // Collects what is heard of a submission.
  struct Heard {
    std::vector<std::vector<TokenId>> tokens;
    std::vector<FinishReason> finish;
    std::optional<Error> rejected;
    size_t events = 0;

    bool all_finished() const {
      return std::ranges::none_of(finish, [](auto f) { return f == FinishReason::kNone; });
    }
  };
  static SubmissionSinks into(Heard& heard, size_t count) {
    heard.tokens = std::vector<std::vector<TokenId>>(count);
    heard.finish = std::vector<FinishReason>(count);
    return {.event =
                [&heard](size_t index, const TokenEvent& event) {
                  ++heard.events;
                  if (event.has_token) heard.tokens[index].push_back(event.token);
                  heard.finish[index] = event.finish;
                },
            .rejected = [&heard](const Error& error) { heard.rejected = error; }};
  }

  bool is_empty() const {
    return stats_.running == 0 && stats_.queued == 0 &&
           stats_.pages_free + stats_.pages_cached == stats_.pages_total;
  }

  test::TemporaryFolder folder_;
  std::unique_ptr<Engine> engine_;
  Mailbox mailbox_;
  EngineThread::Options options_;
  EngineStats stats_ = {.running = 1};
  std::optional<EngineThread> thread_;
};

TEST_F(EngineThreadTest, DeliversEveryEventInOrder) {
  start();
  Heard heard;
  auto submission = thread_->submit(requests(3, 20), into(heard, 3));
  ASSERT_TRUE(submission);
  mailbox_.run_until([&] { return heard.all_finished(); });
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(heard.tokens[i].size(), 20u);
    EXPECT_EQ(heard.tokens[i], heard.tokens[0]);  // the same requests
    EXPECT_EQ(heard.finish[i], FinishReason::kLength);
  }
  mailbox_.run_until([&] { return is_empty(); });
}

TEST_F(EngineThreadTest, SpansOfAnEventAreItsOwn) {
  start();
  std::vector<GenerateRequest> asked = requests(2, 5);
  asked[0].options.top_logprobs = 3;
  asked[1].options.top_logprobs = 5;
  int finished = 0;
  auto submission = thread_->submit(
      std::move(asked), {.event =
                             [&](size_t index, const TokenEvent& event) {
                               EXPECT_EQ(event.top.size(), index == 0 ? 3u : 5u);
                               for (size_t i = 1; i < event.top.size(); ++i) {
                                 EXPECT_GE(event.top[i - 1].logprob, event.top[i].logprob);
                               }
                               finished += event.finish != FinishReason::kNone;
                             },
                         .rejected = [](const Error& error) { FAIL() << error.message; }});
  mailbox_.run_until([&] { return finished == 2; });
}

TEST_F(EngineThreadTest, SubmitsAllOrNone) {
  start();
  std::vector<GenerateRequest> asked = requests(3, 100000);
  asked[2].prompt[0] = -1;
  Heard heard;
  ASSERT_TRUE(thread_->submit(std::move(asked), into(heard, 3)));
  mailbox_.run_until([&] { return heard.rejected && is_empty(); });
  EXPECT_EQ(heard.rejected->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(heard.events, 0u);
}

TEST_F(EngineThreadTest, TellsOfAFullQueue) {
  start([](EngineConfig c) {
    c.running_max = 1;
    c.queued_max = 1;
    return c;
  });
  Heard first, second, third;
  auto running = thread_->submit(requests(1, 100000), into(first, 1));
  mailbox_.run_until([&] { return first.events > 0; });
  auto waiting = thread_->submit(requests(1, 5), into(second, 1));
  ASSERT_TRUE(thread_->submit(requests(1, 5), into(third, 1)));
  mailbox_.run_until([&] { return third.rejected.has_value(); });
  EXPECT_EQ(third.rejected->code, ErrorCode::kExhausted);
  thread_->cancel(*running);
  mailbox_.run_until([&] { return first.all_finished() && second.all_finished(); });
  EXPECT_EQ(first.finish[0], FinishReason::kCancelled);
  EXPECT_EQ(second.finish[0], FinishReason::kLength);
}

TEST_F(EngineThreadTest, NothingIsHeardOfWhatIsAbandoned) {
  start();
  Heard heard;
  auto submission = thread_->submit(requests(2, 100000), into(heard, 2));
  mailbox_.run_until([&] { return heard.events > 10; });
  thread_->abandon(*submission, 0);
  size_t tokens = heard.tokens[0].size();
  mailbox_.run_until([&] { return heard.tokens[1].size() > tokens + 100; });
  EXPECT_EQ(heard.tokens[0].size(), tokens);
  EXPECT_EQ(heard.finish[0], FinishReason::kNone);
  thread_->abandon(*submission);
  size_t events = heard.events;
  mailbox_.run_until([&] { return is_empty(); });
  EXPECT_EQ(heard.events, events);
}

TEST_F(EngineThreadTest, ASinkMayAbandonAndSubmit) {
  start();
  std::shared_ptr<Submission> submission;
  Heard second;
  int events = 0;
  submission = *thread_->submit(
      requests(1, 100000), {.event =
                                [&](size_t, const TokenEvent&) {
                                  if (++events > 1) return;
                                  thread_->abandon(submission);
                                  EXPECT_TRUE(thread_->submit(requests(1, 3), into(second, 1)));
                                },
                            .rejected = [](const Error&) {}});
  mailbox_.run_until([&] { return !second.finish.empty() && second.all_finished(); });
  EXPECT_EQ(events, 1);
}

TEST_F(EngineThreadTest, RunsTasksBetweenSteps) {
  start();
  bool ran = false, done = false;
  thread_->run([&](Engine& engine) { ran = &engine == engine_.get(); }, [&] { done = true; });
  mailbox_.run_until([&] { return done; });
  EXPECT_TRUE(ran);
}

TEST_F(EngineThreadTest, WaitsForADeliveryThreadThatIsBehind) {
  options_.steps_behind_max = 4;
  start();
  Heard heard;
  auto submission = thread_->submit(requests(1, 1000), into(heard, 1));
  while (mailbox_.waiting() < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(mailbox_.waiting(), 4u);
  mailbox_.run_until([&] { return heard.all_finished(); });
  EXPECT_EQ(heard.tokens[0].size(), 1000u);
}

TEST_F(EngineThreadTest, RefusesMoreThanMayWait) {
  options_.submissions_waiting_max = 2;
  options_.steps_behind_max = 1;
  start();
  Heard running, others;
  auto submission = thread_->submit(requests(1, 1000), into(running, 1));
  // The thread now blocks: its first batch is never delivered.
  while (mailbox_.waiting() < 1) std::this_thread::yield();
  size_t taken = 0;
  while (taken < 10 && thread_->submit(requests(1, 1), into(others, 1))) ++taken;
  EXPECT_GE(taken, 2u);
  EXPECT_LE(taken, 4u);
  thread_->stop();
  mailbox_.run_all();
}

TEST_F(EngineThreadTest, AClientThatSubmitsMuchDuringAStepKeepsNobodyOut) {
  options_.submissions_waiting_max = 2;
  start();
  std::binary_semaphore held(0), go(0);
  thread_->run([&](Engine&) {
    held.release();
    go.acquire();
  });
  held.acquire();
  Heard heard;
  auto accepts = [&](const std::string& client) {
    std::vector<GenerateRequest> one = requests(1, 1);
    one[0].options.client = client;
    return thread_->submit(std::move(one), into(heard, 1)).has_value();
  };
  for (bool fits : {true, true, false}) EXPECT_EQ(accepts("a"), fits);
  EXPECT_FALSE(accepts(""));
  for (bool fits : {true, false}) EXPECT_EQ(accepts("b"), fits);
  go.release();
  mailbox_.run_until([&] { return heard.events > 0; });
  EXPECT_TRUE(accepts("a"));
  thread_->stop();
  mailbox_.run_all();
}

// With a simulated clock, and a task that holds the engine's thread as a hanging kernel would.
class WatchdogTest : public EngineThreadTest {
 protected:
  void TearDown() override { thread_->stop(); }  // before the members that it uses are destroyed

  void start_with(double timeout_s) {
    options_.now = [&] {
      return std::chrono::steady_clock::time_point(std::chrono::seconds(now_s_));
    };
    options_.watchdog_timeout_s = timeout_s;
    start();
  }
  void hold() {
    thread_->run([&](Engine&) {
      held_.release();
      release_.acquire();
    });
    held_.acquire();
  }

  std::atomic<int64_t> now_s_ = 1000;
  std::binary_semaphore held_{0}, release_{0};
};

TEST_F(WatchdogTest, IsNotReadyWhileAStepHangs) {
  start_with(300);
  now_s_ += 1000;
  EXPECT_TRUE(thread_->ready()) << "idle for long";
  hold();
  now_s_ += 299;
  EXPECT_TRUE(thread_->ready());
  now_s_ += 1;
  Status hangs = thread_->ready();
  EXPECT_FALSE(hangs);
  if (!hangs) {
    EXPECT_EQ(hangs.error().code, ErrorCode::kExhausted);
    EXPECT_TRUE(hangs.error().message.contains("no step for 300 s")) << hangs.error().message;
    EXPECT_TRUE(hangs.error().message.contains("--watchdog-timeout")) << hangs.error().message;
  }
  // Requests that come later do not restart the clock; a step does.
  Heard heard;
  auto submission = thread_->submit(requests(1, 5), into(heard, 1));
  EXPECT_FALSE(thread_->ready());
  release_.release();
  mailbox_.run_until([&] { return heard.all_finished() && is_empty(); });
  EXPECT_TRUE(thread_->ready());
  now_s_ += 1000;
  EXPECT_TRUE(thread_->ready());
}

TEST_F(WatchdogTest, ZeroTurnsItOff) {
  start_with(0);
  hold();
  now_s_ += 1000000;
  EXPECT_TRUE(thread_->ready());
  release_.release();
}

TEST_F(EngineThreadTest, TellsEverybodyWhenItStops) {
  start();
  Heard running, late;
  auto submission = thread_->submit(requests(2, 100000), into(running, 2));
  mailbox_.run_until([&] { return running.events > 0; });
  thread_->stop();
  mailbox_.run_all();
  EXPECT_EQ(running.finish[0], FinishReason::kCancelled);
  EXPECT_EQ(running.finish[1], FinishReason::kCancelled);
  auto refused = thread_->submit(requests(1, 1), into(late, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
}

}  // namespace
}  // namespace banyan::engine_thread_test
