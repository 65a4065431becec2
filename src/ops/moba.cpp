#include "ops/moba.h"

namespace banyan {

void write_key_sums(Step& s, StateId keys, StateId sums, const MobaShape& moba) {
  const StateSpec& spec = s.pools.spec(keys);
  s.kernels.key_sums({.launch = s.launch,
                      .keys = s.pools.pool(keys),
                      .key_dtype = spec.dtype,
                      .sums = static_cast<float*>(s.pools.pool(sums)),
                      .heads = spec.heads,
                      .width = spec.width,
                      .page_size = s.pools.page_size_tokens(),
                      .block_tokens = moba.block_tokens,
                      .spans = s.inputs.stored.device,
                      .span_count = s.inputs.stored.count(),
                      .page_table = s.table_inputs(keys).units});
}

Tensor moba_attention(Step& s, Tensor q, StateId k, StateId v, StateId sums,
                      const AttentionShape& shape, const MobaShape& moba) {
  auto score = [&](const SpanList& spans, const ScoreBlock& block) {
    s.kernels.block_scores({.launch = s.launch,
                            .q = q.f32(),
                            .q_row_stride = q.stride(0),
                            .sums = static_cast<const float*>(s.pools.pool(sums)),
                            .q_heads = shape.q_heads,
                            .heads = shape.kv_heads,
                            .width = shape.head_dim,
                            .page_size = s.pools.page_size_tokens(),
                            .block_tokens = moba.block_tokens,
                            .scores = block.scores,
                            .entries_max = block.entries_max,
                            .spans = spans.device,
                            .span_count = spans.count(),
                            .part = block.part,
                            .page_table = s.table_inputs(k).units});
  };
  return block_attention(s, q, k, v, shape, {moba.rule(), moba.decode}, score);
}

}  // namespace banyan
