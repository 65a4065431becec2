#include "ptx/wild.h"

#include <cstdio>

#include "ptx/warp.h"

namespace banyan::ptx {
namespace {

thread_local const Warp* running = nullptr;

// It is past saving: what a handler should not do costs nothing more. The signal comes again when
// the access does, and then nobody handles it.
void report(int) {
  if (running != nullptr) {
    std::fprintf(stderr, "no memory of the host: %s\n", running->where().c_str());
  }
  signal(SIGSEGV, SIG_DFL);
  signal(SIGBUS, SIG_DFL);
}

}  // namespace

WildAccessReport::WildAccessReport() {
  struct sigaction action = {};
  action.sa_handler = report;
  sigaction(SIGSEGV, &action, &segmentation_);
  sigaction(SIGBUS, &action, &bus_);
}

WildAccessReport::~WildAccessReport() {
  running = nullptr;
  sigaction(SIGSEGV, &segmentation_, nullptr);
  sigaction(SIGBUS, &bus_, nullptr);
}

void WildAccessReport::set_running(const Warp* warp) {
  running = warp;
}

}  // namespace banyan::ptx
