// Downloads models, one after the other on a thread of its own. The server itself knows nothing of
// hubs; it is given a ModelPuller.
//
// Belongs to the I/O thread; downloads run on the worker thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "banyan/status.h"
#include "server/http/workers.h"

namespace banyan {

// Progress of one file.
struct PullProgress {
  std::string digest;
  int64_t bytes_done = 0;
  int64_t bytes_total = 0;
};

// Downloads a model by its hub name. Blocks; called on any thread. `progress` returns false to stop
// the download.
using ModelPuller = std::function<Status(
    const std::string& name, const std::function<bool(const PullProgress& progress)>& progress)>;

class PullQueue {
 public:
  using Post = std::function<void(std::move_only_function<void()>)>;

  // Called on the I/O thread; `end` is called once, last.
  struct Sinks {
    std::function<void(const PullProgress& progress)> progress;  // called at intervals
    std::function<void(const Status& outcome)> end;
  };

  // `post` runs a closure on the I/O thread.
  PullQueue(ModelPuller puller, Post post);
  // Stops the current download; the hub cache keeps the part that has arrived. Sinks are no longer
  // called.
  ~PullQueue();

  // Set to true when the download is no longer wanted.
  using Unwanted = std::shared_ptr<std::atomic<bool>>;
  // Null when too many downloads are waiting.
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
