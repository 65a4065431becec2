#include "engine/ranks/group.h"

#include <algorithm>

#include "base/error.h"
#include "base/os/affinity.h"
#include "base/threads/thread_pool.h"
#include "dist/comm_mpi.h"
#include "engine/ranks/calls.h"
#include "engine/runner.h"
#include "kernels/select.h"

namespace banyan {
namespace {

// Of one rank. Call before its thread is restricted to its part of the processors.
int threads_of_rank(const EngineConfig& config, const Comm& comm) {
  int threads = config.threads > 0 ? config.threads : usable_processors();
  return std::max(1, threads / comm.processors().count);
}

void load_and_follow(const EngineConfig& config, std::span<const Family> families, Comm& comm) {
  Rank part = comm.processors();
  ProcessorShare share(part.index, part.count);
  auto runner = Runner::load(config, {}, families, comm);
  if (runner) follow_calls(**runner, comm);  // else rank 0 reports it
}

}  // namespace

Result<std::unique_ptr<RankGroup>> RankGroup::create(EngineConfig& config) {
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
    group->ranks_ = std::make_unique<ThreadRanks>(config.tp_size);
    group->comm_ = &group->ranks_->of(0);
  }
  config.threads = threads_of_rank(config, *group->comm_);
  return group;
}

void RankGroup::start(const EngineConfig& config, std::span<const Family> families) {
  if (ranks_ == nullptr) {
    RankCalls(*comm_).send(RankCall::kLoad, config);
    return;
  }
  for (int index = 1; index < comm_->rank().count; ++index) {
    followers_.emplace_back(
        [config, families, &comm = ranks_->of(index)] { load_and_follow(config, families, comm); });
  }
}

void follow_engines(Comm& world) {
  std::vector<std::byte> bytes;
  while (true) {
    world.broadcast(bytes);
    MessageReader message(bytes);
    if (message.get<RankCall>() == RankCall::kLeave) return;
    load_and_follow(message.get<EngineConfig>(), registered_families(), world);
  }
}

void dismiss_followers(Comm& world) {
  RankCalls(world).send(RankCall::kLeave);
}

}  // namespace banyan
