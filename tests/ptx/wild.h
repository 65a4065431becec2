// Names the instruction that reads or writes where there is no memory of the host, before the
// process dies of it.
#pragma once

#include <signal.h>

namespace banyan::ptx {

class Warp;

// While it lives, SIGSEGV and SIGBUS are reported. One at a time of each thread.
class WildAccessReport {
 public:
  WildAccessReport();
  ~WildAccessReport();
  WildAccessReport(const WildAccessReport&) = delete;

  static void set_running(const Warp* warp);

 private:
  struct sigaction segmentation_, bus_;  // what was there before
};

}  // namespace banyan::ptx
