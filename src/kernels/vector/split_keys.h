// The driver of attention: divides the keys of all items of a launch among its workers, and merges
// their sums.
//
// An item is a set of queries that run together over their keys. The key axis is cut at absolute
// multiples of kPart, where the sums of a query restart. The sums of parts are merged in ascending
// order, whether one worker computed them or several. So a result does not depend on how the work
// was divided, and all workers take part in one long context.
#pragma once

#include <concepts>

#include "kernels/launch.h"
#include "kernels/scratch.h"
#include "kernels/vector/vec_math.h"
#include "kernels/vector/vector.h"

namespace banyan::simd {

constexpr int64_t kPart = 512;
static_assert(kAttentionBlock % kPart == 0);
constexpr float kLowest = -0x1.fffffep+127f;

// Keys [begin, end).
struct KeyRange {
  int64_t begin, end;
};

// The sums of some queries over some of their keys: [count, width] of values, [count] of maxima and
// [count] of weights.
struct PartialSums {
  static constexpr int64_t kPad = 16;  // floats; vectors of every instruction set divide it

  static int64_t floats(int64_t count, int64_t width) {
    return count * width + (2 * count + kPad - 1) / kPad * kPad;
  }
  PartialSums(float* memory, int64_t count, int64_t row_width)
      : width(row_width), sums(memory), max(memory + count * width), weight(max + count) {}

  int64_t width;
  float *sums, *max, *weight;
};

// Static shares of equal work, one contiguous range for each worker. A part of an item belongs to
// the worker in whose share it starts.
struct KeyShares {
  int64_t work, workers;

  // The worker for a part that has `start` of the work before it; the first worker until the total
  // is known.
  int64_t owner(int64_t start) const { return work > 0 ? start * workers / work : 0; }
  template <class Item>
  int64_t owner(const Item& item, int64_t part) const {
    return owner(item.start_of(part));
  }
  template <class Item>
  bool split(const Item& item) const {
    return owner(item, item.first_part()) != owner(item, item.end_part() - 1);
  }
};

// Queries that run together, and their position in the work of the launch.
template <class T>
concept KeyItem = requires(const T& item, int64_t part) {
  { item.lanes() } -> std::same_as<int64_t>;  // places for the sums of its queries
  { item.first_part() } -> std::same_as<int64_t>;
  { item.end_part() } -> std::same_as<int64_t>;
  { item.start_of(part) } -> std::same_as<int64_t>;  // the work before the part
  { item.carried() } -> std::same_as<bool>;          // whether earlier launches left sums
};

// What a kind of attention provides to the driver, one object per worker: its arithmetic,
// constructed from the launch's arguments and scratch_floats of memory.
template <class W>
concept KeyWorker =
    KeyItem<typename W::Item> && FloatVector<typename W::Vec> &&
    std::derived_from<typename W::Shares, KeyShares> &&
    std::constructible_from<W, const typename W::Args&, float*> &&
    requires(W& worker, const W& known, const typename W::Args& a, const typename W::Shares& shares,
             const typename W::Item& item, int64_t n, const PartialSums& sums) {
      { W::scratch_floats(a) } -> std::same_as<int64_t>;
      { W::sums_width(a) } -> std::same_as<int64_t>;            // of one query, in whole vectors
      { W::kLanesMax } -> std::convertible_to<int64_t>;         // of an item that one worker takes
      W::for_items(a, shares, [](const typename W::Item&) {});  // calls it for all items in order
      { known.keys_of(item, n) } -> std::same_as<KeyRange>;  // keys that the query in lane n sees
      worker.start(item);                                    // selects the item for the calls below
      worker.attend(item, n, sums);  // computes part n, for the queries that see some of it
      worker.resume(item, sums);     // loads sums of earlier launches
      worker.finish(item, sums);     // writes results, or stores the sums for the next launch
    };

// For items that one worker sums up alone, part after part.
template <class W>
concept AttendsWhole =
    requires(W& worker, const typename W::Item& item) { worker.attend_whole(item); };

// Merges the sums of query n into those of query m over all earlier parts; copies them if there are
// none.
template <FloatVector V>
inline void merge_sums(bool first, const PartialSums& from, int64_t n, const PartialSums& to,
                       int64_t m) {
  const float* x = from.sums + n * from.width;
  float* y = to.sums + m * to.width;
  if (first) {
    for (int64_t c = 0; c < to.width; c += V::kLanes) V::store(y + c, V::load(x + c));
    to.max[m] = from.max[n];
    to.weight[m] = from.weight[n];
    return;
  }
  auto max = V::max(V::set(from.max[n]), V::set(to.max[m]));
  auto old = exp<V>(V::sub(V::set(to.max[m]), max));
  auto own = exp<V>(V::sub(V::set(from.max[n]), max));
  for (int64_t c = 0; c < to.width; c += V::kLanes) {
    V::store(y + c, V::fma(V::load(y + c), old, V::mul(V::load(x + c), own)));
  }
  to.max[m] = V::lane0(max);
  to.weight[m] = to.weight[m] * V::lane0(old) + from.weight[n] * V::lane0(own);
}

// Merges the sums over `part` into those over all earlier parts, for the queries that see some of
// it.
template <KeyWorker W>
inline void merge_part(const W& worker, const typename W::Item& item, int64_t part,
                       const PartialSums& from, const PartialSums& to) {
  for (int64_t n = 0; n < item.lanes(); ++n) {
    KeyRange seen = worker.keys_of(item, n);
    if (seen.begin >= (part + 1) * kPart || seen.end <= part * kPart) continue;
    merge_sums<typename W::Vec>(seen.begin >= part * kPart, from, n, to, n);
  }
}

// A worker's pass through the items, with memory for its sums over a part and over all parts so
// far.
template <KeyWorker W>
class SplitWorker {
 public:
  using Item = typename W::Item;
  using Shares = typename W::Shares;

  explicit SplitWorker(const typename W::Args& a)
      : width_(W::sums_width(a)),
        memory_(worker_scratch(static_cast<size_t>(2 * own_floats() + W::scratch_floats(a)))),
        worker_(a, memory_ + 2 * own_floats()) {}

  // Merges the sums of an item that several workers share: those of its parts in order, after any
  // sums of earlier launches.
  static int64_t shared_floats(const typename W::Args& a, const Item& item) {
    int64_t count = item.end_part() - item.first_part() + (item.carried() ? 1 : 0);
    return count * PartialSums::floats(item.lanes(), W::sums_width(a));
  }

  // Computes an item that belongs to this worker only.
  void attend_whole(const Item& item) {
    if constexpr (AttendsWhole<W>) {
      worker_.attend_whole(item);
    } else {
      worker_.start(item);
      PartialSums total = sums_at(item, memory_);
      PartialSums sums = sums_at(item, memory_ + own_floats());
      int64_t part = item.first_part();
      if (item.carried()) {
        worker_.resume(item, total);
      } else {
        worker_.attend(item, part++, total);
      }
      for (; part < item.end_part(); ++part) {
        worker_.attend(item, part, sums);
        merge_part(worker_, item, part, sums, total);
      }
      worker_.finish(item, total);
    }
  }

  // Computes the parts of a shared item that belong to worker `index`, into their places in
  // `memory`.
  void attend_some(const Item& item, const Shares& shares, int64_t index, float* memory) {
    bool started = false;
    if (item.carried()) memory += floats(item);
    for (int64_t part = item.first_part(); part < item.end_part(); ++part) {
      if (shares.owner(item, part) == index) {
        if (!started) worker_.start(item);
        started = true;
        worker_.attend(item, part, sums_at(item, memory));
      }
      memory += floats(item);
    }
  }

  void merge_shared(const Item& item, float* memory) {
    PartialSums total = sums_at(item, memory);
    int64_t part = item.first_part();
    if (item.carried()) {
      worker_.resume(item, total);
    } else {
      ++part;
    }
    for (; part < item.end_part(); ++part) {
      memory += floats(item);
      merge_part(worker_, item, part, sums_at(item, memory), total);
    }
    worker_.finish(item, total);
  }

 private:
  int64_t own_floats() const {
    return AttendsWhole<W> ? 0 : PartialSums::floats(W::kLanesMax, width_);
  }
  int64_t floats(const Item& item) const { return PartialSums::floats(item.lanes(), width_); }
  PartialSums sums_at(const Item& item, float* memory) const {
    return PartialSums(memory, item.lanes(), width_);
  }

  int64_t width_;
  float* memory_;
  W worker_;
};

// Runs every worker's share; if workers share items, merges those when all are done.
template <KeyWorker W>
void attend_split(const typename W::Args& a, const typename W::Shares& shares) {
  using Item = typename W::Item;
  if (shares.workers == 1) {
    SplitWorker<W> w(a);
    W::for_items(a, shares, [&](const Item& item) { w.attend_whole(item); });
    return;
  }
  int64_t floats = 0;
  W::for_items(a, shares, [&](const Item& item) {
    if (shares.split(item)) floats += SplitWorker<W>::shared_floats(a, item);
  });
  float* memory = floats > 0 ? shared_scratch(static_cast<size_t>(floats)) : nullptr;
  a.launch.threads->run([&](int worker) {
    SplitWorker<W> w(a);
    float* place = memory;
    W::for_items(a, shares, [&](const Item& item) {
      if (shares.split(item)) {
        w.attend_some(item, shares, worker, place);
        place += SplitWorker<W>::shared_floats(a, item);
      } else if (shares.owner(item, item.first_part()) == worker) {
        w.attend_whole(item);
      }
    });
    if (floats == 0) return;
    a.launch.threads->barrier();
    int64_t next = 0;
    place = memory;
    W::for_items(a, shares, [&](const Item& item) {
      if (!shares.split(item)) return;
      if (next++ % shares.workers == worker) w.merge_shared(item, place);
      place += SplitWorker<W>::shared_floats(a, item);
    });
  });
}

}  // namespace banyan::simd
