#include "server/worker/run_logs.h"

#include <utility>

namespace banyan {
namespace {

constexpr std::chrono::seconds kUnusedMax{60};  // by then a client has found another router
constexpr int64_t kLogBytes = 512;              // of a log without lines, roughly

}  // namespace

RunLogs::LogPtr RunLogs::open(RunLog log, SteadyTime now) {
  if (auto older = logs_.find(log.name); older != logs_.end()) drop(*LogPtr(older->second.log));
  auto opened = std::make_shared<RunLog>(std::move(log));
  logs_[opened->name] = {opened, now};
  queue_.push_back({opened, now});
  bytes_ += kLogBytes + std::ssize(opened->lines);
  trim(now);
  return opened;
}

void RunLogs::append(RunLog& log, std::string_view line, SteadyTime now) {
  Kept* found = kept(log);
  if (found == nullptr) return std::string().swap(log.lines);  // it was dropped
  log.lines += line;
  found->used = now;
  bytes_ += std::ssize(line);
  trim(now);
}

RunLogs::LogPtr RunLogs::find(const std::string& name, const Digest& request) const {
  auto found = logs_.find(name);
  if (found == logs_.end()) return nullptr;
  const LogPtr& log = found->second.log;
  return log->request == request && !log->tokens.empty() ? log : nullptr;
}

void RunLogs::drop(const RunLog& log) {
  if (kept(log) == nullptr) return;
  bytes_ -= kLogBytes + std::ssize(log.lines);
  logs_.erase(log.name);
}

RunLogs::Kept* RunLogs::kept(const RunLog& log) {
  auto found = logs_.find(log.name);
  return found != logs_.end() && found->second.log.get() == &log ? &found->second : nullptr;
}

void RunLogs::trim(SteadyTime now) {
  while (!queue_.empty()) {
    Place& oldest = queue_.front();
    bool full = bytes_ > bytes_max_;
    if (!full && now - oldest.used <= kUnusedMax) return;
    LogPtr log = oldest.log.lock();
    Kept* found = log ? kept(*log) : nullptr;
    SteadyTime placed = oldest.used;
    queue_.pop_front();
    if (found == nullptr) continue;
    if (found->used > placed) {  // it was used since
      queue_.push_back({log, found->used});
    } else {
      drop(*log);
    }
  }
}

}  // namespace banyan
