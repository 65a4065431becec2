#include "ops/nsa.h"

#include "base/check.h"

namespace banyan {

void pool_keys(Step& s, StateId keys, StateId pooled, const KeyPooling& pooling,
               const NsaShape& shape) {
  const StateSpec& spec = s.pools.spec(keys);
  pooling.weights.check_matrix(spec.width);
  CHECK(spec.window_tokens == shape.pool_tokens && pooling.weights.dim(0) == shape.pool_tokens,
        "{}: {} tokens, pooled by {}", spec.name, spec.window_tokens, shape.pool_tokens);
  s.kernels.pool_keys({.launch = s.launch,
                       .keys = s.pools.pool(keys),
                       .key_dtype = spec.dtype,
                       .key_page_table = s.table_inputs(keys).units,
                       .weights = pooling.weights.f32(),
                       .bias = pooling.bias.f32(),
                       .pooled = static_cast<float*>(s.pools.pool(pooled)),
                       .heads = spec.heads,
                       .width = spec.width,
                       .page_size = s.pools.page_size_tokens(),
                       .pool_tokens = shape.pool_tokens,
                       .stride = shape.stride,
                       .spans = s.inputs.stored.device,
                       .span_count = s.inputs.stored.count(),
                       .page_table = s.table_inputs(pooled).units});
}

PooledAttention pooled_attention(Step& s, Tensor q, StateId keys, StateId values,
                                 const AttentionShape& attention, const NsaShape& shape) {
  q.check_matrix(attention.q_heads * attention.head_dim);
  Tensor out = s.allocate({q.dim(0), q.dim(1)});
  auto attend = [&](const ScoreBlock& block) {
    s.kernels.pooled_attention({.launch = s.launch,
                                .q = q.f32(),
                                .q_row_stride = q.stride(0),
                                .keys = static_cast<const float*>(s.pools.pool(keys)),
                                .values = static_cast<const float*>(s.pools.pool(values)),
                                .out = out.f32(),
                                .q_heads = attention.q_heads,
                                .heads = attention.kv_heads,
                                .width = attention.head_dim,
                                .page_size = s.pools.page_size_tokens(),
                                .pool_tokens = shape.pool_tokens,
                                .stride = shape.stride,
                                .block_tokens = shape.block_tokens,
                                .scale = attention.scale,
                                .scores = block.scores,
                                .entries_max = block.entries_max,
                                .spans = s.inputs.spans.device,
                                .span_count = s.inputs.spans.count(),
                                .part = block.part,
                                .page_table = s.table_inputs(keys).units});
  };
  return {out, select_keys(s, s.inputs.spans, attention.kv_heads, shape.rule(), attend)};
}

Tensor selected_attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape,
                          const SelectedKeys& selected) {
  Tensor out = s.allocate({q.dim(0), q.dim(1)});
  AttentionArgs args = attention_args(s, q, k, v, shape, out);
  args.selected = selected;
  s.kernels.attention(args);
  return out;
}

}  // namespace banyan
