#include "dist/comm_threads.h"

#include <cstring>

namespace banyan {

class ThreadRanks::ThreadComm final : public Comm {
 public:
  ThreadComm(ThreadRanks& all, Rank rank) : Comm(rank), all_(all) {}

  bool exchanges() const override { return true; }

  void all_gather(std::span<const int64_t> sizes, float* to) override {
    all_.shown_[static_cast<size_t>(rank().index)] = to;
    all_.barrier_.arrive_and_wait();
    size_t begin = 0;
    for (size_t other = 0; other < sizes.size(); ++other) {
      auto size = static_cast<size_t>(sizes[other]);
      const float* from = all_.shown_[other] + begin;
      if (other != static_cast<size_t>(rank().index) && size > 0) {
        std::memcpy(to + begin, from, size * sizeof(float));
      }
      begin += size;
    }
    all_.barrier_.arrive_and_wait();  // before any rank overwrites what others read
  }

 private:
  ThreadRanks& all_;
};

ThreadRanks::ThreadRanks(int count) : barrier_(count), shown_(static_cast<size_t>(count)) {
  for (int index = 0; index < count; ++index) {
    comms_.push_back(std::make_unique<ThreadComm>(*this, Rank{index, count}));
  }
}

ThreadRanks::~ThreadRanks() = default;

}  // namespace banyan
