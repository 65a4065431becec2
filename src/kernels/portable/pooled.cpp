// Pooled keys of native sparse attention: Yuan et al. 2025, "Native Sparse Attention"
// (arXiv:2502.11089).
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/launch.h"
#include "kernels/portable/portable.h"
#include "kernels/selected_rows.h"
#include "kernels/state_rows.h"
#include "tensor/float_types.h"

namespace banyan::portable {
namespace {

template <class S>
void pool_entry(const PoolKeysArgs& a, const SpanArgs& span, int64_t entry, int64_t head) {
  RowShape shape = {.width = a.width};
  float* to = a.pooled +
              sums_row(a.page_table, span, entry, head, a.heads, a.page_size, a.stride) * a.width;
  for (int64_t c = 0; c < a.width; ++c) to[c] = a.bias[c];
  int64_t first = (entry + 1) * a.stride - a.pool_tokens;
  for (int64_t i = 0; i < a.pool_tokens; ++i) {
    RowValues<S> key(
        static_cast<const S*>(a.keys) + pool_offset(a.key_page_table, span, first + i, head,
                                                    a.heads, a.page_size, row_stride<S>(shape)),
        shape);
    for (int64_t c = 0; c < a.width; ++c) to[c] += a.weights[i * a.width + c] * key[c];
  }
}

template <class S>
void pool_all(const PoolKeysArgs& a) {
  parallel_interleaved(a.launch, [&](int64_t begin, int64_t step) {
    for (int64_t item = begin; item < a.span_count * a.heads; item += step) {
      const SpanArgs& span = a.spans[item / a.heads];
      int64_t end = (span.first_position + span.row_count) / a.stride;
      int64_t entry = span.first_position / a.stride;
      if (entry < a.pool_tokens / a.stride - 1) entry = a.pool_tokens / a.stride - 1;
      for (; entry < end; ++entry) pool_entry<S>(a, span, entry, item % a.heads);
    }
  });
}

// One row of one head of keys, with its queries.
class PooledRow {
 public:
  PooledRow(const PooledAttentionArgs& a, const SpanArgs& span, int64_t i, int64_t head)
      : a_(a),
        span_(span),
        row_(span.row_begin + i),
        head_(head),
        first_(a.pool_tokens / a.stride - 1),
        end_((span.first_position + i + 1) / a.stride),
        blocks_((span.first_position + i) / a.block_tokens + 1) {}

  void attend(float* scores, std::vector<float>& weights) const {
    int64_t group = a_.q_heads / a_.heads;
    for (int64_t b = 0; b < blocks_; ++b) scores[b] = 0;
    for (int64_t g = head_ * group; g < (head_ + 1) * group; ++g) {
      float* out = a_.out + (row_ * a_.q_heads + g) * a_.width;
      for (int64_t c = 0; c < a_.width; ++c) out[c] = 0;
      if (first_ >= end_) continue;
      weigh(a_.q + row_ * a_.q_row_stride + g * a_.width, weights);
      for (int64_t e = first_; e < end_; ++e) {
        float p = weights[e - first_];
        const float* value = row_of(a_.values, e);
        for (int64_t c = 0; c < a_.width; ++c) out[c] += p * value[c];
        for (int64_t stride = e - first_; stride <= e; ++stride) {
          scores[stride * a_.stride / a_.block_tokens] += p;
        }
      }
    }
  }

 private:
  const float* row_of(const float* pool, int64_t e) const {
    return pool +
           sums_row(a_.page_table, span_, e, head_, a_.heads, a_.page_size, a_.stride) * a_.width;
  }
  // The softmax over the entries.
  void weigh(const float* q, std::vector<float>& weights) const {
    weights.clear();
    float most = std::numeric_limits<float>::lowest(), sum = 0;
    for (int64_t e = first_; e < end_; ++e) {
      const float* key = row_of(a_.keys, e);
      float dot = 0;
      for (int64_t c = 0; c < a_.width; ++c) dot += q[c] * key[c];
      weights.push_back(dot * a_.scale);
      if (weights.back() > most) most = weights.back();
    }
    for (float& weight : weights) sum += weight = std::exp(weight - most);
    for (float& weight : weights) weight /= sum;
  }

  const PooledAttentionArgs& a_;
  const SpanArgs& span_;
  int64_t row_, head_;
  int64_t first_, end_;  // entries
  int64_t blocks_;
};

}  // namespace

void pool_keys(const PoolKeysArgs& a) {
  if (a.key_dtype == DType::kBF16) return pool_all<BFloat16>(a);
  if (a.key_dtype == DType::kF16) return pool_all<Float16>(a);
  if (a.key_dtype == DType::kI8) return pool_all<int8_t>(a);
  if (a.key_dtype == DType::kF8E4M3) return pool_all<Float8E4M3>(a);
  pool_all<float>(a);
}

void pooled_attention(const PooledAttentionArgs& a) {
  parallel_for(a.launch, a.part.count, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> weights;
    int64_t r = begin;
    for_span_rows(a.spans, a.span_count, a.part.begin + begin, a.part.begin + end,
                  [&](const SpanArgs& span, int64_t i) {
                    for (int64_t head = 0; head < a.heads; ++head) {
                      PooledRow(a, span, i, head)
                          .attend(a.scores + (r * a.heads + head) * a.entries_max, weights);
                    }
                    ++r;
                  });
  });
}

}  // namespace banyan::portable
