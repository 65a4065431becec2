#include "base/os/affinity.h"

#include <atomic>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <vector>

namespace banyan {
namespace {

// The processors that this thread may use, starting with its current one.
std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return {};
  std::vector<int> processors = {::sched_getcpu()};
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &set) && processor != processors[0]) processors.push_back(processor);
  }
  return processors;
}

bool is_oversubscribed(int processors) {
  std::string line;
  std::ifstream file("/proc/loadavg");
  std::getline(file, line);
  return runnable_threads(line) > processors;
}

}  // namespace

int runnable_threads(const std::string& loadavg) {
  size_t slash = loadavg.find('/');  // "0.20 0.18 0.12 1/80 11206"
  if (slash == std::string::npos) return -1;
  size_t begin = loadavg.rfind(' ', slash) + 1;
  int count = -1;
  auto [end, error] = std::from_chars(loadavg.data() + begin, loadavg.data() + slash, count);
  return error == std::errc() && end == loadavg.data() + slash ? count : -1;
}

ProcessorShare::ProcessorShare(int index, int count) {
  CPU_ZERO(&before_);
  if (count == 1 || ::sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
  int all = CPU_COUNT(&before_), seen = 0;
  if (all < count) return;
  cpu_set_t part;
  CPU_ZERO(&part);
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &before_)) continue;
    if (int64_t{seen} * count / all == index) CPU_SET(processor, &part);
    ++seen;
  }
  restricted_ = ::sched_setaffinity(0, sizeof(part), &part) == 0;
}

ProcessorShare::~ProcessorShare() {
  if (restricted_) ::sched_setaffinity(0, sizeof(before_), &before_);
}

bool pin_workers(ThreadPool& pool) {
  std::vector<int> processors = allowed_processors();
  auto count = static_cast<int>(processors.size());
  if (pool.size() == 1 || pool.size() != count || usable_processors() < count) return false;
  if (is_oversubscribed(count)) return false;
  std::atomic<bool> pinned = true;
  pool.run([&](int worker) {
    if (worker == 0) return;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processors[worker], &own);
    if (::sched_setaffinity(0, sizeof(own), &own) != 0) pinned = false;
  });
  return pinned;
}

}  // namespace banyan
