// A host's addresses, with a deadline: the system's resolver has none of its own, and waits for
// half a minute where a name server is silent.
#pragma once

#include <chrono>
#include <future>
#include <string>
#include <vector>

namespace banyan {

// One thread. An attempt that outlives its deadline goes on, and the next one waits for the same.
class Resolver {
 public:
  explicit Resolver(std::string host) : host_(std::move(host)) {}

  struct Found {
    std::vector<std::string> addresses;  // as numbers; empty: none
    std::string trouble;                 // why
    bool timed_out = false;
  };
  Found find(std::chrono::steady_clock::time_point deadline);

 private:
  std::string host_;
  std::shared_future<Found> attempt_;
};

}  // namespace banyan
