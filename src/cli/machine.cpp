#include "cli/machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/log.h"
#include "base/threads/thread_pool.h"

namespace banyan::cli {
namespace {

// The name that the kernel reports; "unknown" if none.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

Json describe_machine() {
  int64_t memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return {{"cpu", processor_name()},
          {"processors", usable_processors()},
          {"memory_bytes", memory_bytes}};
}

Json describe_machine(const EngineInfo& engine) {
  Json machine = describe_machine();
  machine["threads"] = engine.threads;
  machine["kernels"] = engine.kernels;
  return machine;
}

void raise_descriptor_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) spdlog::debug("the descriptor limit stays as it is");
}

}  // namespace banyan::cli
