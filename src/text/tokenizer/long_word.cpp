#include "text/tokenizer/long_word.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <unordered_map>

namespace banyan {
namespace {

using Position = uint32_t;
constexpr Position kNone = std::numeric_limits<Position>::max();

// Positions where one rank's merge may apply, popped in ascending order. Positions known when the
// rank is first popped are sorted once; later ones (rare in trained merges) go to a heap.
class Places {
 public:
  void add(Position position) {
    if (!opened_) {
      places_.push_back(position);
    } else {
      late_.push(position);
    }
  }

  bool empty() const { return next_ == places_.size() && late_.empty(); }

  Position take() {
    if (!opened_) {
      opened_ = true;
      if (!std::is_sorted(places_.begin(), places_.end())) {
        std::sort(places_.begin(), places_.end());
      }
    }
    if (late_.empty() || (next_ < places_.size() && places_[next_] <= late_.top())) {
      return places_[next_++];
    }
    const Position position = late_.top();
    late_.pop();
    return position;
  }

 private:
  std::vector<Position> places_;
  size_t next_ = 0;
  bool opened_ = false;
  std::priority_queue<Position, std::vector<Position>, std::greater<>> late_;
};

// A doubly linked list of symbols in an array; a removed symbol has id -1.
class Merger {
 public:
  Merger(const MergeTable& merges, std::vector<TokenId>& symbols)
      : merges_(merges), symbols_(symbols), next_(symbols.size()), previous_(symbols.size()) {
    const auto count = static_cast<Position>(symbols.size());
    for (Position i = 0; i < count; ++i) {
      next_[i] = i + 1 < count ? i + 1 : kNone;
      previous_[i] = i > 0 ? i - 1 : kNone;
    }
    for (Position i = 0; i + 1 < count; ++i) consider(i);
  }

  void run() {
    while (!ranks_.empty()) {
      const uint32_t rank = ranks_.top();
      Places& places = *places_.at(rank);
      while (!places.empty() && ranks_.top() == rank) apply(rank, places.take());
      if (ranks_.top() != rank) continue;  // a lower rank appeared
      ranks_.pop();
      places_.erase(rank);
      last_places_ = nullptr;
    }
    std::erase(symbols_, -1);
  }

 private:
  void consider(Position position) {
    const Merge merge = merges_.find(symbols_[position], symbols_[next_[position]]);
    if (merge.rank == UINT32_MAX) return;
    if (merge.rank != last_rank_ || last_places_ == nullptr) {
      std::unique_ptr<Places>& places = places_[merge.rank];
      if (!places) {
        places = std::make_unique<Places>();
        ranks_.push(merge.rank);
      }
      last_rank_ = merge.rank;
      last_places_ = places.get();
    }
    last_places_->add(position);
  }

  void apply(uint32_t rank, Position position) {
    if (symbols_[position] < 0 || next_[position] == kNone) return;
    const Position right = next_[position];
    const Merge merge = merges_.find(symbols_[position], symbols_[right]);
    if (merge.rank != rank) return;  // another merge was applied first
    symbols_[position] = merge.id;
    symbols_[right] = -1;
    next_[position] = next_[right];
    if (next_[position] != kNone) previous_[next_[position]] = position;
    if (previous_[position] != kNone) consider(previous_[position]);
    if (next_[position] != kNone) consider(position);
  }

  const MergeTable& merges_;
  std::vector<TokenId>& symbols_;
  std::vector<Position> next_, previous_;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ranks_;
  std::unordered_map<uint32_t, std::unique_ptr<Places>> places_;
  uint32_t last_rank_ = 0;
  Places* last_places_ = nullptr;
};

}  // namespace

void merge_long_word(const MergeTable& merges, std::vector<TokenId>& symbols) {
  Merger(merges, symbols).run();
}

}  // namespace banyan
