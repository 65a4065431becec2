// A thread that runs posted tasks in order.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace banyan {

class TaskThread {
 public:
  using Task = std::move_only_function<void()>;

  TaskThread() : thread_([this] { loop(); }) {}
  ~TaskThread() { stop(); }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  void post(Task task);
  // Runs the tasks posted so far and ends the thread. Not thread-safe.
  void stop();

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> tasks_;
  bool stopping_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace banyan
