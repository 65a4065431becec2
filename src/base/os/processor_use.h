// Who uses the processors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace banyan {

// Ticks since the system started in which the processors were busy, for guests of other virtual
// machines too (steal). `stat`: the text of /proc/stat; only processors for which `counts` is true.
int64_t busy_ticks(const std::string& stat, const std::function<bool(int processor)>& counts);

// How many of the processors that this process may use are taken by other programs.
class OtherPrograms {
 public:
  // Mean since the last call; 0 at first. Call it at intervals of some tenths of a second: the
  // system counts in hundredths. 0 if it does not say.
  double processors();

 private:
  double read();  // the time that others have used so far
  double others_s_ = 0, read_s_ = 0;
};

}  // namespace banyan
