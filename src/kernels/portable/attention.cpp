// Attention over pages, and the writing of pages.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/launch.h"
#include "kernels/portable/portable.h"
#include "kernels/selected_rows.h"
#include "kernels/state_rows.h"
#include "tensor/float_types.h"

namespace banyan::portable {
namespace {

template <class S>
void write_pages(const PageWriteArgs& a) {
  S* pool = static_cast<S*>(a.pool);
  RowShape shape = {.width = a.width, .split = a.split};
  int64_t rows = span_rows(a.spans, a.span_count);
  parallel_for(a.launch, rows, rows_per_job(a.heads * a.width), [&](int64_t begin, int64_t end) {
    for_span_rows(a.spans, a.span_count, begin, end, [&](const SpanArgs& span, int64_t i) {
      for (int64_t head = 0; head < a.heads; ++head) {
        const float* x = a.x + (span.row_begin + i) * a.x_row_stride + head * a.width;
        S* to = pool + pool_offset(a.page_table, span, span.first_position + i, head, a.heads,
                                   a.page_size, row_stride<S>(shape));
        store_row(x, shape, to);
      }
    });
  });
}

template <class S>
void read_pages(const PageReadArgs& a) {
  const S* pool = static_cast<const S*>(a.pool);
  RowShape shape = {.width = a.width, .split = a.split};
  int64_t rows = span_rows(a.spans, a.span_count);
  parallel_for(a.launch, rows, rows_per_job(a.heads * a.width), [&](int64_t begin, int64_t end) {
    for_span_rows(a.spans, a.span_count, begin, end, [&](const SpanArgs& span, int64_t i) {
      for (int64_t head = 0; head < a.heads; ++head) {
        const S* from = pool + pool_offset(a.page_table, span, span.first_position + i, head,
                                           a.heads, a.page_size, row_stride<S>(shape));
        float* x = a.x + (span.row_begin + i) * a.x_row_stride + head * a.width;
        RowValues<S> values(from, shape);
        for (int64_t c = 0; c < a.width; ++c) x[c] = values[c];
      }
    });
  });
}

// One query of one head. The softmax runs online (Milakov and Gimelshein 2018, "Online normalizer
// calculation for softmax"): key by key in ascending order, rescaling what was summed whenever a
// larger score appears. The maximum starts at the lowest finite number, so that a score of -inf
// weighs nothing even if it is the first.
template <class S>
void attend(const AttentionArgs& a, const SpanArgs& span, int64_t i, int64_t head) {
  int64_t position = span.first_position + i;
  int64_t kv_head = head / (a.q_heads / a.kv_heads);
  int64_t place = (span.row_begin + i) * a.q_heads + head;
  const float* q = a.q + (span.row_begin + i) * a.q_row_stride + head * a.head_dim;
  float* out = a.out + place * a.value_dim;
  int64_t first = a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
  int64_t end = position + 1;
  if (a.blocks != nullptr) {
    const KeyBlock& block = a.blocks[&span - a.spans];
    if (position < block.begin) return;
    first = block.begin;
    end = std::min<int64_t>(end, block.end);
  }
  bool carried = a.blocks != nullptr && first > 0;
  float max = carried ? a.max[place] : std::numeric_limits<float>::lowest();
  float sum = carried ? a.weight[place] : 0;
  for (int64_t c = 0; c < a.value_dim && !carried; ++c) out[c] = 0;
  RowShape key = {.width = a.head_dim}, value = {.width = a.value_dim};
  for_keys(a.selected, span.row_begin + i, kv_head, first, end, [&](int64_t j) {
    int64_t row = pool_offset(a.page_table, span, j, kv_head, a.kv_heads, a.page_size, 1);
    RowValues<S> k(static_cast<const S*>(a.k_pool) + row * row_stride<S>(key), key);
    RowValues<S> v(static_cast<const S*>(a.v_pool) + row * row_stride<S>(value), value);
    float score = 0;
    for (int64_t c = 0; c < a.head_dim; ++c) score += q[c] * k[c];
    score *= a.scale;
    if (a.soft_cap > 0) score = a.soft_cap * std::tanh(score / a.soft_cap);
    if (score > max) {
      float correction = std::exp(max - score);
      for (int64_t c = 0; c < a.value_dim; ++c) out[c] *= correction;
      sum *= correction;
      max = score;
    }
    float weight = std::exp(score - max);
    for (int64_t c = 0; c < a.value_dim; ++c) out[c] += weight * v[c];
    sum += weight;
  });
  if (end <= position) {
    a.max[place] = max;
    a.weight[place] = sum;
    return;
  }
  if (a.sinks != nullptr) {
    float larger = std::max(max, a.sinks[head]);
    float correction = std::exp(max - larger);
    for (int64_t c = 0; c < a.value_dim; ++c) out[c] *= correction;
    sum = sum * correction + std::exp(a.sinks[head] - larger);
  }
  for (int64_t c = 0; c < a.value_dim; ++c) out[c] /= sum;
}

template <class S>
void attend_all(const AttentionArgs& a) {
  int64_t rows = span_rows(a.spans, a.span_count);
  parallel_for(a.launch, rows, 1, [&](int64_t begin, int64_t end) {
    for_span_rows(a.spans, a.span_count, begin, end, [&](const SpanArgs& span, int64_t i) {
      for (int64_t head = 0; head < a.q_heads; ++head) attend<S>(a, span, i, head);
    });
  });
}

}  // namespace

void page_write(const PageWriteArgs& a) {
  if (a.pool_dtype == DType::kBF16) return write_pages<BFloat16>(a);
  if (a.pool_dtype == DType::kF16) return write_pages<Float16>(a);
  if (a.pool_dtype == DType::kI8) return write_pages<int8_t>(a);
  if (a.pool_dtype == DType::kF8E4M3) return write_pages<Float8E4M3>(a);
  write_pages<float>(a);
}

void page_read(const PageReadArgs& a) {
  if (a.pool_dtype == DType::kBF16) return read_pages<BFloat16>(a);
  if (a.pool_dtype == DType::kF16) return read_pages<Float16>(a);
  if (a.pool_dtype == DType::kI8) return read_pages<int8_t>(a);
  if (a.pool_dtype == DType::kF8E4M3) return read_pages<Float8E4M3>(a);
  read_pages<float>(a);
}

// Vaswani et al. 2017, "Attention Is All You Need", equation 1, with grouped heads (Ainslie et al.
// 2023, "GQA"), a sliding window (Beltagy et al. 2020, "Longformer"), a soft cap of the scores
// (Gemma 2) and a learned sink in each head's softmax (GPT-OSS).
void attention(const AttentionArgs& a) {
  if (a.pool_dtype == DType::kBF16) return attend_all<BFloat16>(a);
  if (a.pool_dtype == DType::kF16) return attend_all<Float16>(a);
  if (a.pool_dtype == DType::kI8) return attend_all<int8_t>(a);
  if (a.pool_dtype == DType::kF8E4M3) return attend_all<Float8E4M3>(a);
  attend_all<float>(a);
}

}  // namespace banyan::portable
