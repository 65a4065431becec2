// Who uses the processors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace banyan {

// Ticks since the system started in which the processors were busy, for guests of other virtual
// machines too (steal). `stat`: the text of /proc/stat; only processors for which `counts` is true.
int64_t busy_ticks(const std::string& stat, const std::function<bool(int processor)>& counts);

// How many of the processors that this process may run on other programs leave free.
class OtherPrograms {
 public:
  // Mean since the last call; all of them at first, or if the system does not say. Call it at
  // intervals of some tenths of a second: the system counts in hundredths.
  double free_processors();

 private:
  double others_s_ = 0, read_s_ = 0;  // time that others had used by then, and when that was
};

}  // namespace banyan
