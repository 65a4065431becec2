// Latent attention over bf16 latents on AMX tiles. Queries, which include the scale, and weights
// are rounded to bf16; scores, sums and the softmax are f32.
//
// Sixteen heads of a row are a group, in the lanes of a vector. Scores are keys x queries, with
// sixteen latents as an operand as they lie in their page. Weights are transposed from heads in
// lanes to rows of heads, and multiplied with pairs of latents, which are interleaved once for all
// groups that see them. That leaves the columns of each 32 in the processor's interleaving order
// until sums are stored.
//
// A part of the keys has one maximum, so that its sums stay in tiles from its first key to its
// last. Keys of the part that a row does not see have weight zero, and may or may not be present:
// adding their products changes at most a zero's sign, and results have no negative zeros. If such
// a key is NaN or infinite, rows are processed one by one, with zeros interleaved in its place.
#pragma once

#include "kernels/x86/amx/latent_tiles.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {

// The arithmetic in tiles T, and in vectors V where tiles have none.
template <class T, class V>
class LatentTiles {
 public:
  using Vec = V;
  static constexpr int64_t kHeadUnit = kLatentGroup;
  static constexpr int64_t kHeadsMax = kLatentSharedGroupsMax * kLatentGroup;

  static int64_t scratch_floats(const LatentAttentionArgs& a) { return Memory(a, nullptr).floats; }
  LatentTiles(const LatentAttentionArgs& a, float* memory) : a_(a), memory_(a, memory) {
    T::begin();
  }
  ~LatentTiles() { T::end(); }
  LatentTiles(const LatentTiles&) = delete;
  LatentTiles& operator=(const LatentTiles&) = delete;

  // Many rows are divided among workers; few are divided by parts of their keys.
  static LatentRows rows_at(const LatentAttentionArgs& a, const LatentShares& shares,
                            const SpanArgs& span, int64_t i, int64_t cost) {
    constexpr int64_t kRowsMin = 4;  // for each worker
    int64_t left = span.row_count - i;
    bool whole = span.row_count >= kRowsMin * shares.workers && shares.runs == 1;
    int64_t groups = (groups_of(a.heads) + shares.runs - 1) / shares.runs;
    if (a.selected.runs != nullptr) return {.count = 1, .whole = whole};
    int64_t most = (whole ? kLatentGroupsMax : kLatentSharedGroupsMax) / groups;
    if (most < 1) most = 1;
    if (most > left) most = left;
    if (!whole) return {.count = most, .whole = false};
    int64_t rows = 0, owner = shares.owner(cost);
    for (; rows < most && shares.owner(cost) == owner; ++rows) {
      cost += latent_parts(a, span, i + rows);
    }
    return {.count = rows, .whole = true};
  }

  void attend_whole(const LatentItem& item) {
    for (int64_t part = 0; part < item.end_part(); ++part) add_part(part, nullptr);
  }
  void start(const LatentAttentionArgs& a, const LatentItem& item) {
    item_ = &item;
    row_groups_ = item.row_lanes / kLatentGroup;
    for (int64_t g = 0; g < item.rows * row_groups_; ++g) {
      int64_t head = item.head + g % row_groups_ * kLatentGroup;
      const float* q = a.q + (item.row() + g / row_groups_) * a.q_row_stride + head * a.width;
      pack_queries<V>(a, q, heads_of(g), queries_of(g));
    }
  }
  void attend(const LatentAttentionArgs&, const LatentItem&, int64_t part, const PartialSums& to) {
    add_part(part, &to);
  }
  static void write(const float* sums, float weight, int64_t rank, float* out) {
    auto inverse = V::div(V::set(1), V::set(weight));
    for (int64_t c = 0; c < rank; c += V::kLanes) {
      V::store(out + c, V::fma(V::load(sums + c), inverse, V::set(0)));
    }
  }

 private:
  static constexpr int64_t kGroupScores = kPart * kLatentGroup;

  // A worker's memory: packed queries, running maxima and weights of all groups, and of a batch
  // weights, sums and scores, these of the next batch too.
  struct Memory {
    Memory(const LatentAttentionArgs& a, float* memory) : start(memory) {
      int64_t groups = groups_of(a.heads);
      if (groups < kLatentGroupsMax) groups = kLatentGroupsMax;
      query_bytes = a.width / kLatentStep * kLatentTileBytes;
      queries = bytes(groups * query_bytes);
      max = take(groups * kLatentGroup), weight = take(groups * kLatentGroup);
      scores = take(2 * 2 * kGroupScores);
      for (auto& tiles_of : weights) tiles_of = bytes(kLatentSteps * kLatentTileBytes);
      int64_t columns = a.rank / kLatentStep;
      tiles = take(columns * 4 * kLatentGroup * kLatentTileKeys);
      pairs = bytes(columns * kLatentSteps * 2 * kLatentTileBytes);
      copy = reinterpret_cast<BFloat16*>(take(copies_keys(a) ? kPart * a.width / 2 : 0));
    }
    float* take(int64_t count) {
      float* at = start == nullptr ? nullptr : start + floats;
      floats += count;
      return at;
    }
    std::byte* bytes(int64_t count) { return reinterpret_cast<std::byte*>(take(count / 4)); }

    float* start;
    int64_t floats = 0, query_bytes;
    std::byte *queries, *weights[2], *pairs;
    float *max, *weight, *scores, *tiles;
    BFloat16* copy;
  };

  static int64_t groups_of(int64_t heads) { return (heads + kLatentGroup - 1) / kLatentGroup; }
  std::byte* queries_of(int64_t g) const { return memory_.queries + g * memory_.query_bytes; }
  float* scores_of(int n) const { return scores_ + n * kGroupScores; }
  // The lanes of a group that hold real heads.
  int64_t heads_of(int64_t g) const {
    int64_t left = item_->count - g % row_groups_ * kLatentGroup;
    return left < kLatentGroup ? left : kLatentGroup;
  }
  // The keys of a part that a row sees, or the row of a group.
  int64_t keys_of_row(int64_t row, int64_t part) const {
    int64_t count = latent_keys(a_, *item_->span, item_->i + row) - part * kPart;
    return count < kPart ? (count > 0 ? count : 0) : kPart;
  }
  int64_t keys_of(int64_t g) const { return keys_of_row(g / row_groups_, part_); }

  // Attends to a part of the keys: into `shared`, or, if that is null, continues the results.
  void add_part(int64_t part, const PartialSums* shared) {
    part_ = part, shared_ = shared;
    int64_t rows = item_->rows, first = 0;
    while (keys_of_row(first, part) == 0) ++first;
    locate_key_tiles(a_, *item_->span, item_->i, part, keys_of_row(rows - 1, part), memory_.copy,
                     keys_);
    bool together = are_numbers<V>(keys_, keys_of_row(first, part), keys_.count, a_.rank);
    for (int64_t row = first; row < rows;) {
      int64_t end = together ? rows : row + 1;
      keys_.count = keys_of_row(end - 1, part);
      add_rows(row, end);
      row = end;
    }
  }

  // One or two groups that are scored, weighed and summed together.
  struct Batch {
    int64_t first = 0;  // group
    int groups = 0;
    bool is_first = false, is_last = false;

    // Several groups interleave the keys while scoring; a single group, while summing.
    bool first_of_many() const { return is_first && !is_last; }
    bool single() const { return is_first && is_last; }
  };

  // Weighs a batch while the next one is scored.
  void add_rows(int64_t begin, int64_t end) {
    int64_t first = begin * row_groups_, last = end * row_groups_;
    Batch before;
    for (int64_t g = first; g < last; g += 2) {
      Batch batch = {.first = g,
                     .groups = last - g > 1 ? 2 : 1,
                     .is_first = g == first,
                     .is_last = g + 2 >= last};
      if (batch.is_first) {
        pairs_ = batch.is_last ? LatentPairTiles::passing(memory_.pairs)
                               : LatentPairTiles::kept(memory_.pairs);
      }
      batch.groups == 2 ? score<2>(batch) : score<1>(batch);
      if (before.groups > 0) sum(before);
      start_weighing(batch);
      before = batch;
    }
    sum(before);
  }

  template <int Groups>
  void score(const Batch& batch) {
    constexpr int64_t kTiles = 4 / Groups, kKeys = kTiles * kLatentTileKeys;
    int64_t steps = a_.width / kLatentStep, chunk = Groups == 1 ? steps : kLatentScoreSteps;
    int64_t seen = keys_of(batch.first + Groups - 1);
    const std::byte* q[Groups];
#pragma GCC unroll 2
    for (int n = 0; n < Groups; ++n) q[n] = queries_of(batch.first + n), max_[n].start();
    scores_ = memory_.scores + (scores_ == memory_.scores ? 2 * kGroupScores : 0);
    for (int64_t begin = 0; begin < steps; begin += chunk) {
      int64_t end = begin + chunk < steps ? begin + chunk : steps;
      for (int64_t key = 0; key < seen; key += kKeys) {
        if (end == steps && key > 0) find_max<Groups>(batch, key - kKeys, kKeys);
        float* scores[Groups];
#pragma GCC unroll 2
        for (int n = 0; n < Groups; ++n) scores[n] = scores_of(n) + key * kLatentGroup;
        score_key_tiles<T, Groups>(keys_.tiles + key / kLatentTileKeys, a_.width, begin, end, q,
                                   scores, [&](int64_t step) {
                                     if (step % 2 == 0) weighing_.go_on();
                                     if (batch.first_of_many()) pair<kKeys>(key, step);
                                   });
      }
    }
    find_max<Groups>(batch, (seen - 1) / kKeys * kKeys, kKeys);
    if (!batch.first_of_many()) return;
    for (int64_t key = (seen + kKeys - 1) / kKeys * kKeys; key < keys_.count; key += kKeys) {
      for (int64_t step = 0; step < steps; ++step) pair<kKeys>(key, step);
    }
  }
  // Interleaves the keys from `key` on, in a step of columns.
  template <int64_t kKeys>
  void pair(int64_t key, int64_t step) {
    if (step * kLatentStep >= a_.rank) return;
    for (int64_t n = 0; n < kKeys; n += kLatentStep) {
      pair_keys<V>(keys_, step, (key + n) / kLatentStep, pairs_);
    }
  }
  template <int Groups>
  void find_max(const Batch& batch, int64_t key, int64_t count) {
#pragma GCC unroll 2
    for (int n = 0; n < Groups; ++n) {
      int64_t end = keys_of(batch.first + n);
      max_[n].add(scores_of(n), key, key + count < end ? key + count : end);
    }
  }

  int64_t steps_of(const Batch& batch) const {
    return (keys_of(batch.first + batch.groups - 1) + kLatentStep - 1) / kLatentStep;
  }
  void start_weighing(const Batch& batch) {
    for (int n = 0; n < batch.groups; ++n) {
      weighing_.groups[n] = {.scores = scores_of(n),
                             .count = keys_of(batch.first + n),
                             .max = max_[n].all(),
                             .sums = {},
                             .tiles = memory_.weights[n]};
    }
    weighing_.start(batch.groups, steps_of(batch));
  }

  void sum(const Batch& batch) {
    weighing_.finish();
    if (batch.groups == 2) {
      batch.single() ? sum_weighed<2, true>(batch) : sum_weighed<2, false>(batch);
    } else {
      batch.single() ? sum_weighed<1, true>(batch) : sum_weighed<1, false>(batch);
    }
  }
  template <int Groups, bool Pairing>
  void sum_weighed(const Batch& batch) {
    LatentSink sinks[Groups];
    LatentSumArgs<Groups> sums = {.keys = keys_,
                                  .pairs = pairs_,
                                  .weights = {},
                                  .sinks = {},
                                  .tiles = memory_.tiles,
                                  .steps = steps_of(batch)};
#pragma GCC unroll 2
    for (int n = 0; n < Groups; ++n) {
      set_sink(batch.first + n, weighing_.groups[n], sinks[n]);
      sums.weights[n] = memory_.weights[n];
      sums.sinks[n] = &sinks[n];
    }
    // The next batch is already scored; the queries of the one after are prefetched.
    int64_t next = batch.first + 4 < item_->rows * row_groups_ ? batch.first + 4 : 0;
    const std::byte* line = queries_of(next);
    const std::byte* end = batch.is_last ? line : line + 2 * memory_.query_bytes;
    sum_groups<T, V, Groups, Pairing>(sums, a_.rank, [&] {
      for (int64_t n = 0; n < 3 && line < end; ++n, line += 64) {
        __builtin_prefetch(line, 0, kPrefetchLevel2);
      }
    });
  }

  // Where the group's sums of the part go, and its sums so far.
  void set_sink(int64_t g, const LatentWeights<V>& group, LatentSink& sink) {
    int64_t row = g / row_groups_, lane = g * kLatentGroup;
    auto own_max = V::mul(group.max, V::set(0x1.62e43p-1f));  // ln 2
    sink = {.to = nullptr, .stride = a_.rank, .heads = heads_of(g), .merges = false, .ends = false};
    if (shared_ != nullptr) {
      V::store(shared_->max + lane, own_max);
      V::store(shared_->weight + lane, group.sum());
      sink.to = shared_->sums + lane * shared_->width;
      sink.stride = shared_->width;
      return;
    }
    int64_t head = item_->head + g % row_groups_ * kLatentGroup;
    sink.to = a_.out + ((item_->row() + row) * a_.heads + head) * a_.rank;
    sink.merges = part_ > 0;
    sink.ends = part_ == latent_parts(a_, *item_->span, item_->i + row) - 1;
    auto max = own_max, weight = group.sum();
    if (sink.merges) {
      auto before = V::load(memory_.max + lane);
      max = V::max(max, before);
      auto old = exp<V>(V::sub(before, max)), own = exp<V>(V::sub(own_max, max));
      weight = V::add(V::mul(V::load(memory_.weight + lane), old), V::mul(weight, own));
      V::store(sink.old, old);
      V::store(sink.own, own);
    }
    V::store(memory_.max + lane, max);
    V::store(memory_.weight + lane, weight);
    V::store(sink.inverse, V::div(V::set(1), weight));
  }

  const LatentAttentionArgs& a_;
  Memory memory_;
  const LatentItem* item_ = nullptr;
  int64_t row_groups_ = 0, part_ = 0;
  const PartialSums* shared_ = nullptr;
  LatentKeyTiles keys_;
  float* scores_ = nullptr;
  LatentPairTiles pairs_ = {};
  LatentMax<V> max_[2];
  LatentWeighing<V> weighing_;
};

template <class T, class V>
void latent_attention_tiles(const LatentAttentionArgs& a) {
  bool fits = a.width % kLatentStep == 0 && a.rank % kLatentStep == 0;
  if (a.pool_dtype != DType::kBF16 || !fits) return kAvx512Bf16Products.latent_attention(a);
  attend_all_latents<LatentTiles<T, V>>(a);
}

template <class T, class V>
constexpr TileProducts with_latent_tiles(TileProducts products) {
  products.latent_attention = latent_attention_tiles<T, V>;
  return products;
}

}  // namespace banyan::simd
