// How far the requests of a worker that died are suspected of having caused it. Those that it had
// not answered yet share a death: one alone is suspected fully, each of ten to a tenth.
#pragma once

#include <chrono>
#include <cstdint>

namespace banyan {

// The last death of one worker. Belongs to one thread.
class SharedDeath {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  // The share of a request that lost the worker at `now`, while `others` without an answer are
  // still there. Connections of one death break one after another, shortly.
  double share(SteadyTime now, int64_t others) {
    if (now - begun_ > kLength) {
      begun_ = now;
      lost_ = 0;
    }
    ++lost_;
    return 1.0 / static_cast<double>(lost_ + others);
  }

 private:
  static constexpr auto kLength = std::chrono::milliseconds(500);

  SteadyTime begun_ = {};
  int64_t lost_ = 0;
};

}  // namespace banyan
