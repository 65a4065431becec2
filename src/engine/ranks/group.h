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
  // Null if the engine is to have one rank. Divides config.threads among the ranks of this machine.
  static Result<std::unique_ptr<RankGroup>> create(EngineConfig& config);

  // Makes the others load `config`. Next, this thread calls Runner::load with comm(), even if
  // it is to fail.
  void start(const EngineConfig& config, std::span<const Family> families);
  Comm& comm() { return *comm_; }

 private:
  RankGroup() = default;

  Comm* comm_ = nullptr;
  std::unique_ptr<ThreadRanks> ranks_;   // null: the others are processes
  std::vector<std::jthread> followers_;  // end with rank 0's runner
};

// What ranks do that are processes: run the engines that rank 0 loads, until it leaves.
void follow_engines(Comm& world);

// Lets the other processes end.
void dismiss_followers(Comm& world);

}  // namespace banyan
