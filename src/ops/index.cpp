#include "ops/index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace banyan {
namespace {

// Rows that are scored at a time: more rows need more memory, fewer rows share less of the keys
// they read.
constexpr int64_t kScoredRows = 16;

}  // namespace

KeyChoice allocate_choice(Step& s, int64_t keys_max) {
  int64_t rows = s.batch.rows();
  return {.runs = s.arena.allocate_array<KeyRun>(rows * keys_max),
          .run_counts = s.arena.allocate_array<int32_t>(rows),
          .key_counts = s.arena.allocate_array<int32_t>(rows),
          .runs_max = keys_max};
}

bool chooses_keys(const Step& s, int64_t top_k) {
  return std::ranges::any_of(s.inputs.spans.host, [&](const SpanArgs& span) {
    return span.first_position + span.row_count > top_k;
  });
}

void choose_keys(Step& s, Tensor q, Tensor weights, StateId keys, const IndexShape& shape) {
  q.check_matrix(shape.heads * shape.dim);
  weights.check_matrix(shape.heads);
  const StateSpec& spec = s.pools.spec(keys);
  CHECK(spec.heads == 1 && spec.width == shape.dim && spec.split == 0 && spec.tokens_per_row == 1,
        "{}: {} heads of {}", spec.name, spec.heads, spec.width);
  CHECK(s.choice.runs_max >= shape.top_k, "room for {} keys of a row, of {}", s.choice.runs_max,
        shape.top_k);
  size_t mark = s.arena.mark();
  int64_t rows = s.batch.rows();
  Tensor scores = s.allocate({std::min(rows, kScoredRows), shape.context_tokens});
  for (int64_t begin = 0; begin < rows; begin += kScoredRows) {
    RowPart part = {.begin = begin, .count = std::min(rows - begin, kScoredRows)};
    s.kernels.index_scores({.launch = s.launch,
                            .q = q.f32(),
                            .q_row_stride = q.stride(0),
                            .weights = weights.f32(),
                            .weights_row_stride = weights.stride(0),
                            .keys = s.pools.pool(keys),
                            .key_dtype = spec.dtype,
                            .heads = shape.heads,
                            .width = shape.dim,
                            .page_size = s.pools.page_size_tokens(),
                            .all_below = shape.top_k,
                            .scores = scores.f32(),
                            .entries_max = shape.context_tokens,
                            .spans = s.inputs.spans.device,
                            .span_count = s.inputs.spans.count(),
                            .part = part,
                            .page_table = s.table_inputs(keys).units});
    s.kernels.select_keys({.launch = s.launch,
                           .scores = scores.f32(),
                           .entries_max = shape.context_tokens,
                           .rule = {.top_k = shape.top_k},
                           .spans = s.inputs.spans.device,
                           .span_count = s.inputs.spans.count(),
                           .part = part,
                           .runs = s.choice.runs,
                           .run_counts = s.choice.run_counts,
                           .key_counts = s.choice.key_counts,
                           .runs_max = s.choice.runs_max});
  }
  s.arena.rewind(mark);
}

Tensor indexed_block_attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape,
                               Tensor queries, StateId index_keys, const SelectionRule& rule) {
  const StateSpec& spec = s.pools.spec(index_keys);
  queries.check_matrix(shape.kv_heads * spec.width);
  CHECK(spec.heads == 1 && spec.split == 0 && spec.tokens_per_row == 1, "{}: {} heads", spec.name,
        spec.heads);
  auto score = [&](const SpanList& spans, const ScoreBlock& block) {
    s.kernels.block_maxima({.launch = s.launch,
                            .q = queries.f32(),
                            .q_row_stride = queries.stride(0),
                            .keys = s.pools.pool(index_keys),
                            .key_dtype = spec.dtype,
                            .heads = shape.kv_heads,
                            .width = spec.width,
                            .page_size = s.pools.page_size_tokens(),
                            .block_tokens = rule.entry_tokens,
                            .all_below = rule.entry_tokens * rule.top_k,
                            .scores = block.scores,
                            .entries_max = block.entries_max,
                            .spans = spans.device,
                            .span_count = spans.count(),
                            .part = block.part,
                            .page_table = s.table_inputs(index_keys).units});
  };
  return block_attention(s, q, k, v, shape, {.rule = rule}, score);
}

Tensor hadamard(Step& s, Tensor x, int64_t dim) {
  CHECK(std::has_single_bit(static_cast<uint64_t>(dim)) && x.dim(1) % dim == 0,
        "{} columns in groups of {}", x.dim(1), dim);
  Tensor y = s.allocate({x.dim(0), x.dim(1)});
  s.kernels.hadamard({.launch = s.launch,
                      .x = x.f32(),
                      .x_row_stride = x.stride(0),
                      .y = y.f32(),
                      .rows = x.dim(0),
                      .groups = x.dim(1) / dim,
                      .dim = dim});
  return y;
}

}  // namespace banyan
