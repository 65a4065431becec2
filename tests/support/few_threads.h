// Runs code where the system refuses to start more than a few threads.
#pragma once

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <system_error>

namespace banyan::test {

enum class FewThreads { kThrew = 10, kReturned, kHung };

// Calls start() in a child process that can start `threads` threads: stacks are so large that no
// more of them fit into its address space.
template <class Start>
FewThreads with_few_threads(size_t threads, const Start& start) {
  pid_t child = ::fork();
  if (child == 0) {
    constexpr size_t kStack = size_t{1} << 29;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStack);
    pthread_setattr_default_np(&attributes);
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlim_t bytes =
        pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + threads * kStack + kStack / 2;
    rlimit limit = {bytes, bytes};
    ::setrlimit(RLIMIT_AS, &limit);
    ::alarm(60);
    try {
      start();
    } catch (const std::system_error&) {
      ::_exit(static_cast<int>(FewThreads::kThrew));
    }
    ::_exit(static_cast<int>(FewThreads::kReturned));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<FewThreads>(WEXITSTATUS(status)) : FewThreads::kHung;
}

}  // namespace banyan::test
