// Resolves a host's addresses with a deadline, which the system's resolver lacks: it waits for half
// a minute if a name server is silent.
#pragma once

#include <chrono>
#include <future>
#include <string>
#include <vector>

namespace banyan {

// One thread. An attempt that outlives its deadline continues, and the next call waits for the same
// attempt.
class Resolver {
 public:
  explicit Resolver(std::string host) : host_(std::move(host)) {}

  struct Found {
    std::vector<std::string> addresses;  // numeric; empty: none
    std::string trouble;                 // why there are none
    bool timed_out = false;
  };
  Found find(std::chrono::steady_clock::time_point deadline);

 private:
  std::string host_;
  std::shared_future<Found> attempt_;
};

}  // namespace banyan
