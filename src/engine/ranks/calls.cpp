#include "engine/ranks/calls.h"

#include <algorithm>
#include <new>

#include "base/os/memory.h"
#include "base/signed.h"
#include "engine/runner.h"

namespace banyan {
namespace {

// The arrays of a step, which must live until it is collected.
struct FollowedStep {
  Batch before, batch;
  DrawBatch draws;
  Runner::DraftPasses passes;
};

class Follower {
 public:
  explicit Follower(Runner& runner)
      : runner_(runner), steps_(as_size(std::max<int64_t>(2, runner.flights_max()))) {}

  // Returns whether there is more to come.
  bool make(RankCall call, MessageReader& message);

 private:
  FollowedStep& next_step() { return at(steps_, launched_++ % std::ssize(steps_)); }
  void launch(MessageReader& message);
  void launch_following(MessageReader& message);
  void predict(MessageReader& message);
  void draw_predicted(MessageReader& message);

  Runner& runner_;
  std::vector<FollowedStep> steps_;
  int64_t launched_ = 0;
  Batch predicted_;
  DrawBatch predicted_draws_;
  std::vector<int32_t> rows_;
};

void Follower::launch(MessageReader& message) {
  FollowedStep& step = next_step();
  message.get(step.batch);
  message.get(step.draws);
  runner_.launch(step.batch, step.draws);
}

void Follower::launch_following(MessageReader& message) {
  FollowedStep& step = next_step();
  message.get(step.before);
  message.get(step.batch);
  message.get(step.draws);
  message.get(step.passes.drafts);
  message.get(step.passes.row);
  message.get(step.passes.draws);
  runner_.launch_following(step.before, step.batch, step.draws, step.passes);
}

void Follower::predict(MessageReader& message) {
  message.get(predicted_);
  message.get(rows_);
  runner_.predict(predicted_, rows_, message.get<bool>());
}

void Follower::draw_predicted(MessageReader& message) {
  message.get(rows_);
  message.get(predicted_draws_);
  runner_.draw_predicted(rows_, predicted_draws_);
}

bool Follower::make(RankCall call, MessageReader& message) {
  switch (call) {
    case RankCall::kLaunch:
      launch(message);
      return true;
    case RankCall::kLaunchFollowing:
      launch_following(message);
      return true;
    case RankCall::kCollect:
      runner_.collect();
      return true;
    case RankCall::kPredict:
      predict(message);
      return true;
    case RankCall::kDrawPredicted:
      draw_predicted(message);
      return true;
    case RankCall::kUnload:
      return false;
    case RankCall::kLoad:
    case RankCall::kLeave:
      break;
  }
  CHECK(false, "call {} while a model is loaded", static_cast<int>(call));
  return false;
}

}  // namespace

RankCalls::Sent::~Sent() {
  if (std::uncaught_exceptions() > exceptions_) exit_without_memory(std::bad_alloc());
}

void follow_calls(Runner& runner, Comm& comm) {
  Follower follower(runner);
  std::vector<std::byte> bytes;
  bool more = true;
  while (more) {
    comm.broadcast(bytes);
    MessageReader message(bytes);
    more = follower.make(message.get<RankCall>(), message);
    CHECK(message.done());
  }
}

}  // namespace banyan
