// What a worker's runs have sent, so that a router that takes over from one that is lost need not
// have it computed again.
//
// Only runs with a name have a log (RunName). A client that lost its router sends its request to
// another; that router asks the same worker for a run of that name, which begins with the log and
// continues after it. A log is used only for the same request, by SHA-256, so no name yields
// somebody else's output.
//
// Bounded: a log is dropped a minute after its last line, sooner if all take too much memory.
// Belongs to the I/O thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "banyan/token.h"
#include "base/digest.h"

namespace banyan {

struct RunLog {
  std::string name;
  Digest request;
  std::string lines;            // of the answer (server/worker/wire.h)
  std::vector<TokenId> tokens;  // the output that `lines` report
  bool ended = false;           // `lines` has the last one
};

class RunLogs {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  using LogPtr = std::shared_ptr<RunLog>;

  explicit RunLogs(int64_t bytes_max = 64 << 20) : bytes_max_(bytes_max) {}

  // Starts the log of a run; it replaces an older one of the same name.
  LogPtr open(RunLog log, SteadyTime now);
  void append(RunLog& log, std::string_view line, SteadyTime now);
  // Null: there is none, it has no output yet, or it belongs to another request.
  LogPtr find(const std::string& name, const Digest& request) const;
  void drop(const RunLog& log);

  int64_t bytes() const { return bytes_; }

 private:
  struct Kept {
    LogPtr log;
    SteadyTime used;
  };
  // A log as it was when it came to this place of the queue; it may have been used since.
  struct Place {
    std::weak_ptr<RunLog> log;
    SteadyTime used;
  };

  Kept* kept(const RunLog& log);
  void trim(SteadyTime now);

  const int64_t bytes_max_;
  std::unordered_map<std::string, Kept> logs_;  // by name
  std::deque<Place> queue_;                     // those that were not used for long come first
  int64_t bytes_ = 0;
};

}  // namespace banyan
