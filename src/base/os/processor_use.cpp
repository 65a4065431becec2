#include "base/os/processor_use.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <utility>

namespace banyan {
namespace {

double clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double own_s() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string read_stat() {
  std::ifstream file("/proc/stat");
  std::stringstream text;
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) text << line << '\n';
  return text.str();
}

}  // namespace

int64_t busy_ticks(const std::string& stat, const std::function<bool(int)>& counts) {
  // "cpu0 user nice system idle iowait irq softirq steal guest guest_nice"; guests are in user
  constexpr int kIdle = 3, kWaiting = 4, kFields = 8;
  int64_t busy = 0;
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("cpu") || line.starts_with("cpu ")) continue;
    std::istringstream fields(line.substr(3));
    int processor = -1;
    if (!(fields >> processor) || !counts(processor)) continue;
    int64_t ticks = 0;
    for (int field = 0; field < kFields && fields >> ticks; ++field) {
      if (field != kIdle && field != kWaiting) busy += ticks;
    }
  }
  return busy;
}

double OtherPrograms::free_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(::getpid(), sizeof(set), &set) != 0) return CPU_SETSIZE;
  int64_t busy = busy_ticks(read_stat(), [&](int processor) {
    return processor >= 0 && processor < CPU_SETSIZE && CPU_ISSET(processor, &set);
  });
  double others_s =
      static_cast<double>(busy) / static_cast<double>(::sysconf(_SC_CLK_TCK)) - own_s();
  double now = clock_s(), all = CPU_COUNT(&set);
  double used_s = others_s - std::exchange(others_s_, others_s);
  double time_s = now - std::exchange(read_s_, now);
  bool first = time_s == now;
  return first || time_s <= 0 ? all : std::clamp(all - used_s / time_s, 0.0, all);
}

}  // namespace banyan
