// The choice of keys that sparse attention looks at.
#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/launch.h"
#include "kernels/portable/portable.h"
#include "kernels/selected_rows.h"
#include "kernels/state_rows.h"
#include "tensor/float_types.h"

namespace banyan::portable {
namespace {

// The sums of one head in one page's row, whose last position is `last`.
template <class S>
void sum_row(const KeySumsArgs& a, const SpanArgs& span, int64_t head, int64_t last) {
  RowShape shape = {.width = a.width};
  int64_t in_row = std::min(a.block_tokens, a.page_size);
  auto row_of = [&](int64_t position) {
    int64_t page = a.page_table[span.page_begin + position / a.page_size];
    int64_t rows = a.page_size / in_row;
    return a.sums + ((page * a.heads + head) * rows + position % a.page_size / in_row) * a.width;
  };
  int64_t first = last + 1 - in_row;
  float* to = row_of(last);
  bool begins = first % a.block_tokens == 0;
  const float* before = begins ? nullptr : row_of(first - 1);
  for (int64_t c = 0; c < a.width; ++c) to[c] = begins ? 0 : before[c];
  for (int64_t j = first; j <= last; ++j) {
    RowValues<S> key(
        static_cast<const S*>(a.keys) +
            pool_offset(a.page_table, span, j, head, a.heads, a.page_size, row_stride<S>(shape)),
        shape);
    for (int64_t c = 0; c < a.width; ++c) to[c] += key[c];
  }
}

template <class S>
void sum_keys(const KeySumsArgs& a) {
  int64_t in_row = std::min(a.block_tokens, a.page_size);
  parallel_interleaved(a.launch, [&](int64_t begin, int64_t step) {
    for (int64_t item = begin; item < a.span_count * a.heads; item += step) {
      const SpanArgs& span = a.spans[item / a.heads];
      int64_t end = span.first_position + span.row_count;
      for (int64_t next = (span.first_position / in_row + 1) * in_row; next <= end;
           next += in_row) {
        sum_row<S>(a, span, item % a.heads, next - 1);
      }
    }
  });
}

// The best entries of one row, in ascending order.
void select_best(const float* scores, const Candidates& c, std::vector<int64_t>& entries) {
  entries.clear();
  for (int64_t b = c.first; b < c.end; ++b) entries.push_back(b);
  std::ranges::stable_sort(entries, [&](int64_t x, int64_t y) {
    return score_order(scores[x]) > score_order(scores[y]);
  });
  entries.resize(c.count);
  std::ranges::sort(entries);
}

// The scores of one row's blocks by one head.
template <class S>
void max_of_blocks(const BlockMaximaArgs& a, const SpanArgs& span, const float* q, int64_t blocks,
                   float* scores) {
  RowShape shape = {.width = a.width};
  for (int64_t b = 0; b < blocks; ++b) {
    float best = -std::numeric_limits<float>::infinity();
    for (int64_t j = b * a.block_tokens; j < (b + 1) * a.block_tokens; ++j) {
      RowValues<S> key(
          static_cast<const S*>(a.keys) +
              pool_offset(a.page_table, span, j, 0, 1, a.page_size, row_stride<S>(shape)),
          shape);
      float dot = 0;
      for (int64_t c = 0; c < a.width; ++c) dot += q[c] * key[c];
      if (dot > best) best = dot;
    }
    scores[b] = best;
  }
}

template <class S>
void score_maxima(const BlockMaximaArgs& a) {
  parallel_for(a.launch, a.part.count, 1, [&](int64_t begin, int64_t end) {
    int64_t r = begin;
    for_span_rows(a.spans, a.span_count, a.part.begin + begin, a.part.begin + end,
                  [&](const SpanArgs& span, int64_t i) {
                    int64_t position = span.first_position + i;
                    for (int64_t head = 0; head < a.heads && position >= a.all_below; ++head) {
                      const float* q = a.q + (span.row_begin + i) * a.q_row_stride + head * a.width;
                      max_of_blocks<S>(a, span, q, position / a.block_tokens,
                                       a.scores + (r * a.heads + head) * a.entries_max);
                    }
                    ++r;
                  });
  });
}

}  // namespace

// Lu et al. 2025, "MoBA: Mixture of Block Attention" (arXiv:2502.13189), equation 6: blocks stand
// for themselves by the mean of their keys.
void key_sums(const KeySumsArgs& a) {
  if (a.key_dtype == DType::kBF16) return sum_keys<BFloat16>(a);
  if (a.key_dtype == DType::kF16) return sum_keys<Float16>(a);
  if (a.key_dtype == DType::kI8) return sum_keys<int8_t>(a);
  if (a.key_dtype == DType::kF8E4M3) return sum_keys<Float8E4M3>(a);
  sum_keys<float>(a);
}

// The same, with one choice for the queries of a group, by their mean: Ling 2.0 Sparse.
void block_scores(const BlockScoresArgs& a) {
  int64_t group = a.q_heads / a.heads;
  parallel_for(a.launch, a.part.count, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> mean(a.width);
    int64_t r = begin;
    auto score = [&](const SpanArgs& span, int64_t i, int64_t head) {
      const float* q = a.q + (span.row_begin + i) * a.q_row_stride + head * group * a.width;
      for (size_t c = 0; c < mean.size(); ++c) {
        float sum = 0;
        for (int64_t g = 0; g < group; ++g) sum += q[g * a.width + c];
        mean[c] = sum / group;
      }
      int64_t blocks = (span.first_position + i) / a.block_tokens;
      for (int64_t b = 0; b < blocks; ++b) {
        const float* sums =
            a.sums +
            sums_row(a.page_table, span, b, head, a.heads, a.page_size, a.block_tokens) * a.width;
        float dot = 0;
        for (size_t c = 0; c < mean.size(); ++c) dot += mean[c] * sums[c];
        a.scores[(r * a.heads + head) * a.entries_max + b] = dot / a.block_tokens;
      }
    };
    for_span_rows(a.spans, a.span_count, a.part.begin + begin, a.part.begin + end,
                  [&](const SpanArgs& span, int64_t i) {
                    for (int64_t head = 0; head < a.heads; ++head) score(span, i, head);
                    ++r;
                  });
  });
}

// transformers, minimax_m3_vl: MiniMaxM3VLIndexer.
void block_maxima(const BlockMaximaArgs& a) {
  if (a.key_dtype == DType::kBF16) return score_maxima<BFloat16>(a);
  if (a.key_dtype == DType::kF16) return score_maxima<Float16>(a);
  if (a.key_dtype == DType::kI8) return score_maxima<int8_t>(a);
  if (a.key_dtype == DType::kF8E4M3) return score_maxima<Float8E4M3>(a);
  score_maxima<float>(a);
}

void select_keys(const SelectKeysArgs& a) {
  parallel_for(a.launch, a.part.count, 1, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> entries;
    int64_t r = begin;
    auto select = [&](const SpanArgs& span, int64_t i, int64_t head) {
      int64_t position = span.first_position + i;
      Candidates c = candidates_at(a.rule, position);
      RunWriter writer(a, span.row_begin + i, head, position);
      if (c.count == c.all) return writer.add(0, c.all);
      writer.add(0, c.first);
      select_best(a.scores + (r * a.heads + head) * a.entries_max, c, entries);
      for (int64_t b : entries) writer.add(b, b + 1);
      writer.add(c.end, c.all);
    };
    for_span_rows(a.spans, a.span_count, a.part.begin + begin, a.part.begin + end,
                  [&](const SpanArgs& span, int64_t i) {
                    for (int64_t head = 0; head < a.heads; ++head) select(span, i, head);
                    ++r;
                  });
  });
}

}  // namespace banyan::portable
