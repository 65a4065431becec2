#include "base/threads/task_thread.h"

#include <utility>

namespace banyan {

void TaskThread::post(Task task) {
  std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (tasks_.size() == 1) wake_.notify_one();
}

void TaskThread::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void TaskThread::loop() {
  std::vector<Task> taken;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      taken.swap(tasks_);
    }
    for (Task& task : taken) {
      task();
      task = nullptr;  // it may hold the last reference to something
    }
    taken.clear();
  }
}

}  // namespace banyan
