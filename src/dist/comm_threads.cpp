#include "dist/comm_threads.h"

#include <cstring>

#include "base/signed.h"

namespace banyan {

class ThreadRanks::ThreadComm final : public Comm {
 public:
  ThreadComm(ThreadRanks& all, Rank rank) : Comm(rank), all_(all) {}

  bool exchanges() const override { return true; }
  int ranks_here() const override { return rank().count; }
  Rank processors() const override { return rank(); }

  void all_gather(std::span<const int64_t> sizes, float* to) override {
    at(all_.shown_, rank().index) = to;
    all_.barrier_.arrive_and_wait();
    size_t begin = 0;
    for (size_t other = 0; other < sizes.size(); ++other) {
      auto size = as_size(sizes[other]);
      const float* from = all_.shown_[other] + begin;
      if (other != as_size(rank().index) && size > 0) {
        std::memcpy(to + begin, from, size * sizeof(float));
      }
      begin += size;
    }
    all_.barrier_.arrive_and_wait();  // before any rank overwrites what others read
  }

  void broadcast(std::vector<std::byte>& message) override {
    if (rank().index == 0) all_.message_ = &message;
    all_.barrier_.arrive_and_wait();
    if (rank().index != 0) message = *all_.message_;
    all_.barrier_.arrive_and_wait();
  }

 private:
  ThreadRanks& all_;
};

ThreadRanks::ThreadRanks(int count) : barrier_(count), shown_(as_size(count)) {
  for (int index = 0; index < count; ++index) {
    comms_.push_back(std::make_unique<ThreadComm>(*this, Rank{index, count}));
  }
}

void ThreadRanks::give_up(int count) {
  for (int i = 0; i < count; ++i) barrier_.arrive_and_drop();
}

ThreadRanks::~ThreadRanks() = default;

}  // namespace banyan
