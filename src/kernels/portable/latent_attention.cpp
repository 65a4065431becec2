// Attention over latents that all heads share.
#include <cmath>
#include <limits>

#include "kernels/launch.h"
#include "kernels/portable/portable.h"
#include "kernels/selected_rows.h"
#include "kernels/state_rows.h"
#include "tensor/float_types.h"

namespace banyan::portable {
namespace {

// One query, its softmax online as in attention.cpp.
template <class S>
void attend(const LatentAttentionArgs& a, const SpanArgs& span, int64_t i, int64_t head) {
  const float* q = a.q + (span.row_begin + i) * a.q_row_stride + head * a.width;
  float* out = a.out + ((span.row_begin + i) * a.heads + head) * a.rank;
  for (int64_t c = 0; c < a.rank; ++c) out[c] = 0;
  float max = std::numeric_limits<float>::lowest();
  float sum = 0;
  RowShape shape = {.width = a.width, .split = a.rank < a.width ? a.rank : 0};
  int64_t end = span.first_position + i + 1;
  for_keys(a.selected, span.row_begin + i, 0, 0, end, [&](int64_t j) {
    RowValues<S> latent(
        static_cast<const S*>(a.pool) +
            pool_offset(a.page_table, span, j, 0, 1, a.page_size, row_stride<S>(shape)),
        shape);
    float score = 0;
    for (int64_t c = 0; c < a.width; ++c) score += q[c] * latent[c];
    score *= a.scale;
    if (score > max) {
      float correction = std::exp(max - score);
      for (int64_t c = 0; c < a.rank; ++c) out[c] *= correction;
      sum *= correction;
      max = score;
    }
    float weight = std::exp(score - max);
    for (int64_t c = 0; c < a.rank; ++c) out[c] += weight * latent[c];
    sum += weight;
  });
  for (int64_t c = 0; c < a.rank; ++c) out[c] /= sum;
}

template <class S>
void attend_all(const LatentAttentionArgs& a) {
  int64_t rows = span_rows(a.spans, a.span_count);
  parallel_for(a.launch, rows, 1, [&](int64_t begin, int64_t end) {
    for_span_rows(a.spans, a.span_count, begin, end, [&](const SpanArgs& span, int64_t i) {
      for (int64_t head = 0; head < a.heads; ++head) attend<S>(a, span, i, head);
    });
  });
}

}  // namespace

// DeepSeek-AI 2024, "DeepSeek-V2" (arXiv:2405.04434), section 2.1: multi-head latent attention,
// with the projections to keys and values absorbed into those of the query and the output.
void latent_attention(const LatentAttentionArgs& a) {
  if (a.pool_dtype == DType::kBF16) return attend_all<BFloat16>(a);
  if (a.pool_dtype == DType::kF16) return attend_all<Float16>(a);
  if (a.pool_dtype == DType::kI8) return attend_all<int8_t>(a);
  if (a.pool_dtype == DType::kF8E4M3) return attend_all<Float8E4M3>(a);
  attend_all<float>(a);
}

}  // namespace banyan::portable
