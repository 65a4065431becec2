#include "nn/nsa_attention.h"

#include <cmath>
#include <string>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

AttentionShape shape_of(const Builder& b, const NsaConfig& c) {
  CHECK(c.kv_heads > 0 && c.q_heads % c.kv_heads == 0 && c.head_dim > 0,
        "{} heads of queries, {} of keys, of {}", c.q_heads, c.kv_heads, c.head_dim);
  const NsaShape& nsa = c.shape;
  CHECK(nsa.stride > 0 && nsa.pool_tokens % nsa.stride == 0 && nsa.block_tokens % nsa.stride == 0,
        "{} pooled tokens and blocks of {}, by strides of {}", nsa.pool_tokens, nsa.block_tokens,
        nsa.stride);
  int64_t heads = b.part(c.kv_heads).count;
  return {.q_heads = heads * (c.q_heads / c.kv_heads),
          .kv_heads = heads,
          .head_dim = c.head_dim,
          .scale = 1 / std::sqrt(static_cast<float>(c.head_dim))};
}

AttentionShape windowed(AttentionShape shape, int64_t tokens) {
  shape.window_tokens = tokens;
  return shape;
}

Linear input_of(Builder b, const NsaConfig& c) {
  int64_t kv = c.kv_heads * c.head_dim;
  Shard shard = Shard::rows(c.kv_heads);
  return Linear(b,
                {{"q_proj", c.q_heads * c.head_dim, shard},
                 {"compressed.k_proj", kv, shard},
                 {"compressed.v_proj", kv, shard},
                 {"selected.k_proj", kv, shard},
                 {"selected.v_proj", kv, shard},
                 {"window.k_proj", kv, shard},
                 {"window.v_proj", kv, shard},
                 {"compressed.g_proj", c.q_heads, shard},
                 {"selected.g_proj", c.q_heads, shard},
                 {"window.g_proj", c.q_heads, shard}},
                c.hidden, false);
}

KeyPooling pooling_of(Builder b, const NsaConfig& c) {
  return {b.values("weight", {c.shape.pool_tokens, c.head_dim}, 0),
          b.values("bias", {c.head_dim}, 0)};
}

}  // namespace

NsaAttention::NsaAttention(Builder b, const NsaConfig& c)
    : nsa_(c.shape),
      shape_(shape_of(b, c)),
      window_shape_(windowed(shape_, c.window_tokens)),
      input_(input_of(b, c)),
      output_(b, {{"o_proj", c.hidden, Shard::columns(c.kv_heads)}}, c.q_heads * c.head_dim, false),
      key_pooling_(pooling_of(b / "compressed" / "pool_keys", c)),
      value_pooling_(pooling_of(b / "compressed" / "pool_values", c)),
      raw_(states(b, "raw",
                  {.reach = StateReach::kWindow,
                   .window_tokens = c.shape.pool_tokens,
                   .dtype = b.page_dtype()})),
      pooled_(states(
          b, "pooled",
          {.dtype = DType::kF32, .tokens_per_row = narrow<int>(c.shape.stride), .index = true})),
      selected_(states(b, "selected", {.dtype = b.page_dtype()})),
      window_(states(b, "window",
                     {.reach = StateReach::kWindow,
                      .window_tokens = c.window_tokens,
                      .dtype = b.page_dtype()})) {}

NsaAttention::KeysAndValues NsaAttention::states(Builder b, std::string_view branch,
                                                 const StateSpec& spec) const {
  auto state = [&](std::string_view what) {
    StateSpec own = spec;
    own.name = std::string(branch) + "_" + std::string(what);
    own.heads = shape_.kv_heads;
    own.width = shape_.head_dim;
    return b.state(own);
  };
  StateId keys = state("keys");
  return {keys, state("values")};
}

Tensor NsaAttention::operator()(Step& s, Tensor x, const Rotation& rotation) const {
  Tensor in = input_(s, x);
  int64_t column = 0;
  auto next = [&](int64_t width) {
    column += width;
    return in.columns(column - width, width);
  };
  auto rotated = [&](Tensor y) {
    return rope(s, y, shape_.head_dim, rotation, RopeLayout::kHalves);
  };
  int64_t kv = shape_.kv_heads * shape_.head_dim;
  Tensor q = next(shape_.q_heads * shape_.head_dim), rotated_q = rotated(q);
  write_pages(s, next(kv), raw_.keys);
  write_pages(s, next(kv), raw_.values);
  pool_keys(s, raw_.keys, pooled_.keys, key_pooling_, nsa_);
  pool_keys(s, raw_.values, pooled_.values, value_pooling_, nsa_);
  for (const KeysAndValues& states : {selected_, window_}) {
    write_pages(s, rotated(next(kv)), states.keys);
    write_pages(s, next(kv), states.values);
  }
  auto gated = [&](Tensor out) {
    return gate_mul(s, GateFunction::kSigmoid, next(shape_.q_heads), out);
  };
  auto [compressed, selected] = pooled_attention(s, q, pooled_.keys, pooled_.values, shape_, nsa_);
  Tensor out = gated(compressed);
  out = add(
      s, out,
      gated(selected_attention(s, rotated_q, selected_.keys, selected_.values, shape_, selected)));
  out = add(s, out, gated(attention(s, rotated_q, window_.keys, window_.values, window_shape_)));
  return output_(s, out);
}

}  // namespace banyan
