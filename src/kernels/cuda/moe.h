// Routing of rows to experts, their order, and the weighted sum of their results (the definitions
// are in kernels/portable/moe.cpp and copies.cpp).
#pragma once

#include "kernels/cuda/atomic.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/fours.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/rowwise.h"
#include "kernels/kernel_table.h"

namespace banyan::cuda {

// A block per row. Threads count what is better than their own, which takes fewer phases than one
// choice after another. Experts of groups that were not chosen become NaN, which is never better.
struct Route {
  RouteArgs a;
  Shape shape() const {
    size_t words = 2 * a.experts + a.groups + a.top_k;
    return {.blocks = a.rows, .shared_bytes = words * sizeof(float)};
  }
  bool leaves(const PreparedOperand& next) const {
    int64_t choices = a.rows * a.top_k;
    return next.left_by(floats(a.logits, a.rows * a.logits_row_stride), range_of(a.ids, choices),
                        floats(a.weights, choices));
  }

  template <class Block>
  BANYAN_DEVICE void score(Block& block, const float* logits, float* scores) const {
    if (a.score == RouterScore::kSigmoid) {
      for_each(block, a.experts, [&](int64_t e) { scores[e] = sigmoid(logits[e]); });
      return;
    }
    float max = best_over(block, a.experts, [&](int64_t e) { return logits[e]; }).value;
    float sum = sum_over(block, a.experts, [&](int64_t e) { return exp(logits[e] - max); });
    for_each(block, a.experts, [&](int64_t e) { scores[e] = exp(logits[e] - max) / sum; });
  }

  BANYAN_DEVICE float score_group(const float* choices, int64_t count) const {
    Best first, second;
    for (int64_t i = 0; i < count; ++i) {
      Best next = {choices[i], static_cast<int32_t>(i)};
      if (Better()(first, next).index == next.index) {
        second = first;
        first = next;
      } else {
        second = Better()(second, next);
      }
    }
    if (a.group_score == GroupScore::kMax || count == 1) return first.value;
    float sum = first.value + second.value;
    return is_nan(sum) ? -kInfinity : sum;
  }

  template <class Block>
  BANYAN_DEVICE void mask_groups(Block& block, float* choices, float* groups) const {
    if (a.top_groups >= a.groups) return;
    int64_t size = quotient(a.experts, a.groups);
    for_each(block, a.groups,
             [&](int64_t g) { groups[g] = score_group(choices + g * size, size); });
    for_each(block, a.experts, [&](int64_t e) {
      if (rank_of(groups, a.groups, quotient(e, size)) >= a.top_groups) choices[e] = not_a_number();
    });
  }

  // How many are better than value i: larger, or equal and before it.
  BANYAN_DEVICE static int64_t rank_of(const float* values, int64_t count, int64_t i) {
    float own = values[i];
    int64_t rank = 0;
    for (int64_t j = 0; j < i; ++j) rank += values[j] >= own ? 1 : 0;
    for (int64_t j = i + 1; j < count; ++j) rank += values[j] > own ? 1 : 0;
    return rank;
  }

  template <class Block>
  BANYAN_DEVICE void choose(Block& block, int64_t r, const float* scores, const float* choices,
                            int32_t* chosen) const {
    for_each(block, a.experts, [&](int64_t e) {
      if (is_nan(choices[e])) return;
      int64_t rank = rank_of(choices, a.experts, e);
      if (rank < a.top_k) chosen[rank] = static_cast<int32_t>(e);
    });
    for_each(block, a.top_k, [&](int64_t j) {
      float sum = 0;
      for (int64_t i = 0; i < a.top_k; ++i) sum += scores[chosen[i]];
      // The small constant avoids 0 / 0 if all sigmoids are 0.
      float factor = a.normalise ? a.scale / (sum + 1e-20f) : a.scale;
      a.ids[r * a.top_k + j] = chosen[j];
      a.weights[r * a.top_k + j] = scores[chosen[j]] * factor;
    });
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    float* scores = block.template shared<float>();
    float *choices = scores + a.experts, *groups = choices + a.experts;
    auto* chosen = reinterpret_cast<int32_t*>(groups + a.groups);  // [top_k]
    for (int64_t r = block.index(); r < a.rows; r += block.count()) {
      score(block, a.logits + r * a.logits_row_stride, scores);
      for_each(block, a.experts, [&](int64_t e) {
        float choice = scores[e] + (a.bias != nullptr ? a.bias[e] : 0.0f);
        choices[e] = is_nan(choice) ? -kInfinity : choice;
      });
      mask_groups(block, choices, groups);
      choose(block, r, scores, choices, chosen);
    }
  }
};

// Few choices are sorted by one block. An expert's first assignment has as many before it as there
// are choices of experts before that one; and so it is with each choice.
struct SortFewExperts {
  static constexpr int64_t kChoicesMax = 512;       // of which each thread compares four with all
  static constexpr int64_t kComparisonsMax = 1024;  // of a thread

  SortExpertsArgs a;

  BANYAN_HOST_DEVICE static constexpr int64_t choices(const SortExpertsArgs& a) {
    return a.rows * a.top_k;
  }
  static bool fits(const SortExpertsArgs& a) {
    int64_t comparisons = (a.experts + choices(a)) * choices(a);
    return choices(a) <= kChoicesMax && comparisons <= kComparisonsMax * kBlockThreads;
  }
  Shape shape() const {
    return {.blocks = 1, .shared_bytes = static_cast<size_t>(choices(a)) * sizeof(int32_t)};
  }
  bool leaves(const PreparedOperand& next) const {
    auto of_choices = [&](const int32_t* x) { return range_of(x, choices(a)); };
    return next.left_by(of_choices(a.ids), range_of(a.begins, a.experts + 1), of_choices(a.places),
                        of_choices(a.sources));
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    int64_t count = choices(a);
    auto* ids = block.template shared<int32_t>();
    for_each(block, count, [&](int64_t i) { ids[i] = a.ids[i]; });
    for_each(block, a.experts + 1, [&](int64_t e) {
      int32_t before = 0;
      for (int64_t j = 0; j < count; ++j) before += ids[j] < e ? 1 : 0;
      a.begins[e] = before;
    });
    for_each(block, count, [&](int64_t i) {
      int32_t id = ids[i], place = 0;
      if (a.counts != nullptr) add_atomically(&a.counts[id], 1);
      for (int64_t j = 0; j < i; ++j) place += ids[j] <= id ? 1 : 0;
      for (int64_t j = i + 1; j < count; ++j) place += ids[j] < id ? 1 : 0;
      a.places[i] = id < a.experts ? place : -1;
      if (id < a.experts) a.sources[place] = static_cast<int32_t>(quotient(i, a.top_k));
    });
  }
};

// Both for one row, whose block goes on to sort what it has chosen.
struct RouteAndSort {
  Route route;
  SortFewExperts sort;

  static bool may_join(const Route& route, const SortFewExperts& sort) {
    return route.a.rows == 1 && sort.a.rows == 1 && sort.a.top_k == route.a.top_k &&
           sort.a.ids == route.a.ids;
  }
  Shape shape() const {
    size_t first = route.shape().shared_bytes, second = sort.shape().shared_bytes;
    return {.blocks = 1, .shared_bytes = first > second ? first : second};
  }
  bool leaves(const PreparedOperand& next) const { return route.leaves(next) && sort.leaves(next); }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    route(block);
    sort(block);
  }
};

// A counting sort in three launches. First the number of each expert's assignments, in begins[1 +
// expert], and what concerns choices that are none.
struct CountExperts {
  SortExpertsArgs a;
  Shape shape() const { return {.blocks = a.experts}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    int64_t choices = a.rows * a.top_k;
    for (int64_t e = block.index(); e < a.experts; e += block.count()) {
      int32_t count = sum_over(block, choices, [&](int64_t i) { return a.ids[i] == e ? 1 : 0; });
      block.one([&] { a.begins[e + 1] = count; });
    }
    for_all(block, choices, [&](int64_t i) {
      if (a.ids[i] >= a.experts) a.places[i] = -1;
      if (a.counts != nullptr) add_atomically(&a.counts[a.ids[i]], 1);
    });
  }
};

struct BeginExperts {
  SortExpertsArgs a;
  Shape shape() const { return {.blocks = 1, .shared_bytes = kBlockThreads * sizeof(int32_t)}; }

  // Each thread has consecutive experts.
  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    auto* begins = block.template shared<int32_t>();  // of the first expert of each thread
    int64_t share = (a.experts + kBlockThreads - 1) / kBlockThreads;
    block.each([&](int thread) {
      int64_t end = least((thread + 1) * share, a.experts);
      begins[thread] = 0;
      for (int64_t e = thread * share; e < end; ++e) begins[thread] += a.begins[e + 1];
    });
    block.exclusive_sums(begins);
    block.each([&](int thread) {
      int64_t end = least((thread + 1) * share, a.experts);
      int32_t begin = begins[thread];
      if (thread == 0) a.begins[0] = 0;
      for (int64_t e = thread * share; e < end; ++e) {
        begin += a.begins[e + 1];
        a.begins[e + 1] = begin;
      }
    });
  }
};

// A block per expert. Each thread has consecutive choices, so that assignments keep their order.
struct PlaceExperts {
  SortExpertsArgs a;
  Shape shape() const {
    return {.blocks = a.experts, .shared_bytes = kBlockThreads * sizeof(int32_t)};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    int64_t choices = a.rows * a.top_k, share = (choices + kBlockThreads - 1) / kBlockThreads;
    auto* places = block.template shared<int32_t>();  // how many the threads before have
    auto for_own = [&](int thread, int64_t expert, const auto& body) {
      int64_t end = least((thread + 1) * share, choices);
      for (int64_t i = thread * share; i < end; ++i) {
        if (a.ids[i] == expert) body(i);
      }
    };
    for (int64_t e = block.index(); e < a.experts; e += block.count()) {
      block.each([&](int thread) {
        places[thread] = 0;
        for_own(thread, e, [&](int64_t) { ++places[thread]; });
      });
      block.exclusive_sums(places);
      block.each([&](int thread) {
        int32_t next = a.begins[e] + places[thread];
        for_own(thread, e, [&](int64_t i) {
          a.places[i] = next;
          a.sources[next++] = static_cast<int32_t>(quotient(i, a.top_k));
        });
      });
    }
  }
};

struct CombineExperts {
  CombineExpertsArgs a;
  BANYAN_HOST_DEVICE bool fours() const {
    return in_fours(a.dim, a.x_row_stride, a.x, a.expert_rows, a.shared, a.y);
  }
  std::array<MemoryRange, 5> reads() const {
    int64_t choices = a.rows * a.top_k;
    return {float_rows(a.x, a.rows, a.x_row_stride, a.dim),
            floats(a.expert_rows, choices * a.dim),  // or fewer
            range_of(a.places, choices), floats(a.weights, choices),
            floats(a.shared, a.shared != nullptr ? a.rows * a.dim : 0)};
  }
  Shape shape() const { return column_shape(a.rows, a.dim, fours()); }

  // What a row's experts have computed. The first choices are looked up before any values are read.
  class Row {
   public:
    BANYAN_DEVICE Row(const CombineExperts& experts, int64_t row) : a_(experts.a), row_(row) {
      int32_t places[kFirst];
      BANYAN_UNROLL
      for (int j = 0; j < kFirst; ++j) {  // the last one again where there are fewer
        int64_t choice = row * a_.top_k + least(j, a_.top_k - 1);
        places[j] = a_.places[choice], weights_[j] = a_.weights[choice];
      }
      BANYAN_UNROLL
      for (int j = 0; j < kFirst; ++j) values_[j] = values_at(places[j]);
    }

    // Columns c to c + N - 1, combined.
    template <int N>
    BANYAN_DEVICE Floats<N> sum(int64_t c) const {
      Floats<N> y = {};
      BANYAN_UNROLL
      for (int j = 0; j < kFirst; ++j) {
        if (j < a_.top_k) add(y, weights_[j], values_[j] + c);
      }
      BANYAN_NO_UNROLL
      for (int64_t j = kFirst; j < a_.top_k; ++j) {
        int64_t choice = row_ * a_.top_k + j;
        add(y, a_.weights[choice], values_at(a_.places[choice]) + c);
      }
      if (a_.shared != nullptr) add(y, 1, a_.shared + row_ * a_.dim + c);
      return y;
    }

   private:
    static constexpr int kFirst = 8;

    BANYAN_DEVICE const float* values_at(int32_t place) const {
      return place < 0 ? a_.x + row_ * a_.x_row_stride : a_.expert_rows + place * a_.dim;
    }
    template <int N>
    BANYAN_DEVICE static void add(Floats<N>& y, float weight, const float* values) {
      Floats<N> more = load<N>(values);
      BANYAN_UNROLL
      for (int i = 0; i < N; ++i) y.at[i] += weight * more.at[i];
    }

    const CombineExpertsArgs& a_;
    int64_t row_;
    const float* values_[kFirst];
    float weights_[kFirst];
  };

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_columns(block, a.rows, a.dim, fours(), [&]<int N>(int64_t r, int64_t c) {
      store(a.y + r * a.dim + c, Row(*this, r).template sum<N>(c));
    });
  }
};

}  // namespace banyan::cuda
