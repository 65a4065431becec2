// Models on their way from a hub, which the server itself knows nothing of: one after the other, on
// a thread of their own.
//
// Belongs to the I/O thread; fetching is done elsewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "banyan/status.h"
#include "server/http/workers.h"

namespace banyan {

// Of one file.
struct PullProgress {
  std::string digest;
  int64_t bytes_done = 0;
  int64_t bytes_total = 0;
};

// Fetches a model by its name on a hub; blocks, on any thread. `progress` is false when it shall
// end.
using ModelPuller = std::function<Status(
    const std::string& name, const std::function<bool(const PullProgress& progress)>& progress)>;

class PullQueue {
 public:
  using Post = std::function<void(std::move_only_function<void()>)>;

  // Called on the I/O thread; `end` once, and last.
  struct Sinks {
    std::function<void(const PullProgress& progress)> progress;  // now and then
    std::function<void(const Status& outcome)> end;
  };

  // `post` runs closures on the I/O thread.
  PullQueue(ModelPuller puller, Post post);
  // Ends what is being fetched, of which the hub keeps what came; sinks are not called any more.
  ~PullQueue();

  // Becomes true when nobody wants the model any more.
  using Unwanted = std::shared_ptr<std::atomic<bool>>;
  // Null when too many wait.
  Unwanted start(const std::string& client, std::string name, Sinks sinks);

 private:
  void pull(const std::string& name, const Unwanted& unwanted,
            const std::shared_ptr<const Sinks>& sinks);

  const ModelPuller puller_;
  const Post post_;
  std::atomic<bool> stopping_ = false;
  Workers workers_;
};

}  // namespace banyan
