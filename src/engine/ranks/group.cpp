#include "engine/ranks/group.h"

#include <algorithm>

#include "base/error.h"
#include "base/os/affinity.h"
#include "base/os/memory.h"
#include "base/threads/thread_pool.h"
#include "dist/comm_mpi.h"
#include "engine/ranks/calls.h"
#include "engine/runner.h"

namespace banyan {
namespace {

// Of one rank. Call before its thread is restricted to its part of the processors.
int threads_of_rank(const EngineConfig& config, const Comm& comm) {
  if (config.threads > 0) return std::max(1, config.threads / comm.ranks_here());
  return std::max(1, usable_processors() / comm.processors().count);
}

void load_and_follow(EngineConfig config, std::span<const Family> families, Comm& comm) {
  config.threads = threads_of_rank(config, comm);
  Rank part = comm.processors();
  ProcessorShare share(part.index, part.count);
  auto runner = Runner::load(config, {}, families, comm);
  if (runner) follow_calls(**runner, comm);  // else rank 0 reports it
}

}  // namespace

Result<std::unique_ptr<RankGroup>> RankGroup::create(EngineConfig& config,
                                                     std::span<const Family> families) {
  TRY(config.validate());
  std::unique_ptr<RankGroup> group(new RankGroup);
  group->comm_ = mpi_world();
  if (group->comm_ != nullptr) {
    if (int count = group->comm_->rank().count; count != config.tp_size) {
      return invalid_argument("mpirun started {} processes, but --tp-size is {}", count,
                              config.tp_size);
    }
  } else if (config.tp_size == 1) {
    return nullptr;
  } else {
    group->start_threads(config.tp_size, families);
  }
  group->config_ = config;
  config.threads = threads_of_rank(config, *group->comm_);
  return group;
}

void RankGroup::start_threads(int ranks, std::span<const Family> families) {
  ranks_ = std::make_unique<ThreadRanks>(ranks);
  comm_ = &ranks_->of(0);
  try {
    for (int index = 1; index < ranks; ++index) {
      threads_.emplace_back([&comm = ranks_->of(index), families] {
        try {
          follow_engines(comm, families);
        } catch (const std::exception& error) {
          exit_without_memory(error);  // the others wait for this one
        }
      });
    }
  } catch (...) {
    ranks_->give_up(ranks - 1 - static_cast<int>(threads_.size()));
    throw;
  }
}

RankGroup::~RankGroup() {
  if (ranks_ != nullptr) dismiss_followers(*comm_);
}

void RankGroup::load() {
  RankCalls(*comm_).send(RankCall::kLoad, config_);
}

void follow_engines(Comm& comm, std::span<const Family> families) {
  std::vector<std::byte> bytes;
  while (true) {
    comm.broadcast(bytes);
    MessageReader message(bytes);
    if (message.get<RankCall>() == RankCall::kLeave) return;
    load_and_follow(message.get<EngineConfig>(), families, comm);
  }
}

void dismiss_followers(Comm& comm) {
  RankCalls(comm).send(RankCall::kLeave);
}

}  // namespace banyan
