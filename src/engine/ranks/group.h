// Starts and ends the other ranks of an engine (EngineConfig::tp_size).
#pragma once

#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "banyan/config.h"
#include "dist/comm_threads.h"
#include "models/registry.h"

namespace banyan {

class RankGroup {
 public:
  // Null if the engine is to have one rank. Leaves in config.threads those of this one.
  static Result<std::unique_ptr<RankGroup>> create(EngineConfig& config,
                                                   std::span<const Family> families);
  ~RankGroup();  // after rank 0's runner

  // Makes the others load the model. Next, this thread calls Runner::load with comm().
  void load();
  Comm& comm() { return *comm_; }

 private:
  RankGroup() = default;
  void start_threads(int ranks, std::span<const Family> families);

  EngineConfig config_;
  Comm* comm_ = nullptr;
  std::unique_ptr<ThreadRanks> ranks_;  // null: the others are processes
  std::vector<std::jthread> threads_;
};

// What the other ranks do: run the engines that rank 0 loads, until it dismisses them.
void follow_engines(Comm& comm, std::span<const Family> families);
void dismiss_followers(Comm& comm);

}  // namespace banyan
