// Several ranks run one model: rank 0 has the scheduler, the tree and the sinks, and tells the
// others what its Runner is called with. They call theirs likewise, on identical batches, and so
// draw the same tokens.
#pragma once

#include <exception>
#include <vector>

#include "dist/comm.h"
#include "engine/ranks/message.h"

namespace banyan {

class Runner;

// What rank 0 tells the others.
enum class RankCall : uint8_t {
  kLoad,  // an EngineConfig (engine/ranks/group.h)
  kLaunch,
  kLaunchFollowing,
  kCollect,
  kPredict,
  kDrawPredicted,
  kUnload,
  kLeave,  // nothing will be loaded again
};

// Rank 0's end.
class RankCalls {
 public:
  explicit RankCalls(Comm& comm) : comm_(comm) {}

  // Until its end, rank 0 makes the call itself. If it throws, the others are waiting somewhere
  // in the middle, and the process ends.
  class Sent {
   public:
    ~Sent();

   private:
    int exceptions_ = std::uncaught_exceptions();
  };

  template <class... Args>
  Sent send(RankCall call, const Args&... args) {
    message_.clear();
    MessageWriter writer(message_);
    writer.put(call);
    (writer.put(args), ...);
    comm_.broadcast(message_);
    return {};
  }

 private:
  Comm& comm_;
  std::vector<std::byte> message_;
};

// The other end: makes rank 0's calls on `runner` until it unloads its own.
void follow_calls(Runner& runner, Comm& comm);

}  // namespace banyan
