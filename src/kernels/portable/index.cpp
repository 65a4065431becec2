// The index of DeepSeek's sparse attention: its scores, and what its keys go through.
#include <cmath>
#include <vector>

#include "kernels/index_items.h"
#include "kernels/portable/portable.h"
#include "tensor/float_types.h"

namespace banyan::portable {
namespace {

template <class S>
class IndexScorer {
 public:
  explicit IndexScorer(const IndexScoresArgs& a) : a_(a), rounded_(a.width), codes_(a.width) {}

  void score(const IndexItem& item) {
    for (int64_t r = 0; r < item.rows; ++r) {
      float* scores = a_.scores + (item.score_row + r) * a_.entries_max;
      for (int64_t j = item.begin; j < item.end; ++j) scores[j] = 0;
      for (int64_t h = 0; h < a_.heads; ++h) add_head(item, r, h, scores);
      if constexpr (kIsCode<S>) {
        for (int64_t j = item.begin; j < item.end; ++j)
          scores[j] *= row_scale(row(item, j), shape(), 0);
      }
    }
  }

 private:
  RowShape shape() const { return {.width = a_.width}; }
  const S* row(const IndexItem& item, int64_t j) const {
    return static_cast<const S*>(a_.keys) +
           pool_offset(a_.page_table, *item.span, j, 0, 1, a_.page_size, row_stride<S>(shape()));
  }
  void add_head(const IndexItem& item, int64_t r, int64_t h, float* scores) {
    const float* q = index_query(a_, item, r, h);
    if constexpr (kIsCode<S>) {
      round_query(q, a_.width, codes_.data(), rounded_.data());
      q = rounded_.data();
    }
    float weight = index_weights(a_, item, r)[h];
    for (int64_t j = item.begin; j < item.end; ++j) {
      const S* key = row(item, j);
      float dot = 0;
      for (int64_t c = 0; c < a_.width; ++c) dot += q[c] * to_float(key[c]);
      scores[j] += weight * (dot > 0 ? dot : 0);
    }
  }

  const IndexScoresArgs& a_;
  std::vector<float> rounded_;
  std::vector<S> codes_;
};

template <class S>
void score_all(const IndexScoresArgs& a) {
  share_index_items(a, kIndexKeys, [&](const auto& for_own_items) {
    IndexScorer<S> scorer(a);
    for_own_items([&](const IndexItem& item) { scorer.score(item); });
  });
}

}  // namespace

// DeepSeek-AI 2025, "DeepSeek-V3.2" (arXiv:2512.02556), equation 1: the lightning indexer.
void index_scores(const IndexScoresArgs& a) {
  if (a.key_dtype == DType::kBF16) return score_all<BFloat16>(a);
  if (a.key_dtype == DType::kF16) return score_all<Float16>(a);
  if (a.key_dtype == DType::kI8) return score_all<int8_t>(a);
  if (a.key_dtype == DType::kF8E4M3) return score_all<Float8E4M3>(a);
  score_all<float>(a);
}

// The fast transform: log2(dim) stages of sums and differences.
void hadamard(const HadamardArgs& a) {
  float factor = 1 / std::sqrt(static_cast<float>(a.dim));
  int64_t row = a.groups * a.dim;
  parallel_for(a.launch, a.rows, rows_per_job(8 * row), [&](int64_t begin, int64_t end) {
    for (int64_t g = begin * a.groups; g < end * a.groups; ++g) {
      const float* x = a.x + g / a.groups * a.x_row_stride + g % a.groups * a.dim;
      float* y = a.y + g * a.dim;
      for (int64_t c = 0; c < a.dim; ++c) y[c] = x[c];
      for (int64_t half = 1; half < a.dim; half *= 2) {
        for (int64_t c = 0; c < a.dim; c += 2 * half) {
          for (int64_t i = c; i < c + half; ++i) {
            float sum = y[i] + y[i + half];
            y[i + half] = y[i] - y[i + half];
            y[i] = sum;
          }
        }
      }
      for (int64_t c = 0; c < a.dim; ++c) y[c] *= factor;
    }
  });
}

void layer_norm(const LayerNormArgs& a) {
  parallel_for(a.launch, a.rows, rows_per_job(a.dim), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x = a.x + r * a.x_row_stride;
      float* y = a.y + r * a.dim;
      float mean = 0, square = 0;
      for (int64_t c = 0; c < a.dim; ++c) mean += x[c];
      mean /= a.dim;
      for (int64_t c = 0; c < a.dim; ++c) square += (x[c] - mean) * (x[c] - mean);
      float factor = 1 / std::sqrt(square / a.dim + a.eps);
      for (int64_t c = 0; c < a.dim; ++c) y[c] = (x[c] - mean) * factor * a.weight[c] + a.bias[c];
    }
  });
}

}  // namespace banyan::portable
