#include "ops/attention.h"

#include "base/check.h"

namespace banyan {
void write_pages(Step& s, Tensor x, StateId state) {
  const StateSpec& spec = s.pools.spec(state);
  x.check_matrix(spec.heads * spec.width);
  CHECK(spec.tokens_per_row == 1, "{}: {} tokens a row", spec.name, spec.tokens_per_row);
  s.kernels.page_write({.launch = s.launch,
                        .x = x.f32(),
                        .x_row_stride = x.stride(0),
                        .pool = s.pools.pool(state),
                        .pool_dtype = spec.dtype,
                        .heads = spec.heads,
                        .width = spec.width,
                        .page_size = s.pools.page_size_tokens(),
                        .spans = s.inputs.spans.device,
                        .span_count = s.inputs.spans.count(),
                        .page_table = s.table_inputs(state).units});
}

Tensor attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape) {
  q.check_matrix(shape.q_heads * shape.head_dim);
  const StateSpec& spec = s.pools.spec(k);
  CHECK(spec.heads == shape.kv_heads && spec.width == shape.head_dim);
  CHECK(spec.reach != StateReach::kWindow || shape.window_tokens == spec.window_tokens,
        "{} keeps {} tokens, {} are looked at", spec.name, spec.window_tokens, shape.window_tokens);
  Tensor out = s.allocate({q.dim(0), q.dim(1)});
  s.kernels.attention({.launch = s.launch,
                       .q = q.f32(),
                       .q_row_stride = q.stride(0),
                       .k_pool = s.pools.pool(k),
                       .v_pool = s.pools.pool(v),
                       .pool_dtype = spec.dtype,
                       .out = out.f32(),
                       .q_heads = shape.q_heads,
                       .kv_heads = shape.kv_heads,
                       .head_dim = shape.head_dim,
                       .value_dim = shape.head_dim,
                       .page_size = s.pools.page_size_tokens(),
                       .scale = shape.scale,
                       .window = shape.window_tokens,
                       .soft_cap = shape.soft_cap,
                       .sinks = shape.sinks,
                       .spans = s.inputs.spans.device,
                       .span_count = s.inputs.spans.count(),
                       .page_table = s.table_inputs(k).units});
  return out;
}

}  // namespace banyan
