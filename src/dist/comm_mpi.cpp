#include "dist/comm_mpi.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signed.h"

namespace banyan {
namespace {

// mpirun, or Slurm with --mpi=pmix.
bool started_with_others() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (size == nullptr) size = std::getenv("SLURM_NTASKS");
  bool joined =
      std::getenv("OMPI_COMM_WORLD_RANK") != nullptr || std::getenv("PMIX_RANK") != nullptr;
  return joined && size != nullptr && std::string_view(size) != "1";
}

// A step follows within microseconds, a request perhaps tomorrow: sleeps an eighth of the time that
// it has waited, at most.
void wait_patiently(MPI_Request& request) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::nanoseconds kPolling = std::chrono::milliseconds(1);
  constexpr std::chrono::nanoseconds kLongest = std::chrono::milliseconds(2);
  auto began = Clock::now();
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    std::chrono::nanoseconds waited = Clock::now() - began;
    if (waited > kPolling) std::this_thread::sleep_for(std::min(waited / 8, kLongest));
  }
}

class MpiComm final : public Comm {
 public:
  MpiComm(Rank rank, int ranks_here, Rank processors)
      : Comm(rank), ranks_here_(ranks_here), processors_(processors) {}

  bool exchanges() const override { return !rank().alone(); }
  int ranks_here() const override { return ranks_here_; }
  Rank processors() const override { return processors_; }

  void all_gather(std::span<const int64_t> sizes, float* to) override {
    counts_.resize(sizes.size());
    begins_.resize(sizes.size());
    int64_t begin = 0;
    for (size_t r = 0; r < sizes.size(); ++r) {
      CHECK(begin + sizes[r] <= INT_MAX, "{} floats", begin + sizes[r]);
      counts_[r] = static_cast<int>(sizes[r]);
      begins_[r] = static_cast<int>(begin);
      begin += sizes[r];
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, counts_.data(), begins_.data(),
                   MPI_FLOAT, MPI_COMM_WORLD);
  }

  void broadcast(std::vector<std::byte>& message) override {
    bool sends = rank().index == 0;
    Head head;
    if (sends) {
      head.bytes = message.size();
      std::memcpy(head.first.data(), message.data(), std::min(message.size(), head.first.size()));
    }
    MPI_Request request;
    MPI_Ibcast(&head, sizeof(head), MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    wait_patiently(request);
    message.resize(head.bytes);
    size_t sent = std::min(head.bytes, head.first.size());
    if (!sends) std::memcpy(message.data(), head.first.data(), sent);
    for (; sent < head.bytes; sent += kPartBytes) {
      size_t bytes = std::min(head.bytes - sent, kPartBytes);
      MPI_Bcast(message.data() + sent, static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
    }
  }

 private:
  static constexpr size_t kPartBytes = size_t{1} << 30;
  // A step of a few sequences fits in, and all of it into what Open MPI sends without waiting for
  // the receiver: 4,096 bytes with its own header between processes of a machine.
  struct Head {
    size_t bytes = 0;
    std::array<std::byte, 3992> first = {};
  };

  int ranks_here_;
  Rank processors_;
  std::vector<int> counts_, begins_;
};

std::unique_ptr<MpiComm> world;

// This rank among those of its machine that may use the same processors.
Rank rank_among_processors(MPI_Comm here) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  ::sched_getaffinity(0, sizeof(mine), &mine);
  int index = 0, count = 1;
  MPI_Comm_rank(here, &index);
  MPI_Comm_size(here, &count);
  std::vector<cpu_set_t> all(as_size(count));
  MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all.data(), sizeof(mine), MPI_BYTE, here);
  auto same = [&](const cpu_set_t& other) { return CPU_EQUAL(&mine, &other) != 0; };
  auto before = std::ranges::count_if(all.begin(), all.begin() + index, same);
  auto total = std::ranges::count_if(all, same);
  cpu_set_t covered = mine;
  for (const cpu_set_t& other : all) CPU_OR(&covered, &covered, &other);
  auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (index == 0 && CPU_COUNT(&covered) < online / 2) {
    spdlog::warn(
        "mpirun has bound the ranks of this machine to {} of its {} processors; with --bind-to "
        "none, each takes an equal part of all",
        CPU_COUNT(&covered), online);
  }
  return {static_cast<int>(before), static_cast<int>(total)};
}

}  // namespace

Status join_mpi() {
  if (!started_with_others()) return {};
  int provided = 0;
  // Errors end all processes, which is what the rest of MPI does when one of them ends.
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    return unsupported("this MPI library does not let different threads take turns");
  }
  Rank rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank.index);
  MPI_Comm_size(MPI_COMM_WORLD, &rank.count);
  MPI_Comm here;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank.index, MPI_INFO_NULL, &here);
  int ranks_here = 1;
  MPI_Comm_size(here, &ranks_here);
  world = std::make_unique<MpiComm>(rank, ranks_here, rank_among_processors(here));
  MPI_Comm_free(&here);
  if (rank.index > 0) {  // mpirun passes signals to all; rank 0 decides when the others end
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
  }
  return {};
}

void leave_mpi() {
  if (world == nullptr) return;
  world.reset();
  MPI_Finalize();
}

Comm* mpi_world() {
  return world.get();
}

}  // namespace banyan
