#include "nn/gqa_attention.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

const GqaConfig& checked(const GqaConfig& c) {
  CHECK(c.kv_heads > 0 && c.q_heads > 0 && c.q_heads % c.kv_heads == 0 && c.head_dim > 0,
        "{} heads of queries, {} of keys, of {}", c.q_heads, c.kv_heads, c.head_dim);
  CHECK(c.window_tokens == 0 || c.chunk_tokens == 0, "a window of {} and chunks of {}",
        c.window_tokens, c.chunk_tokens);
  CHECK(!c.row_norms || (!c.head_norms && !c.norm_after_rope),
        "norms of whole rows together with norms of heads, or after rotation");
  CHECK(c.names.qkv.empty() || (!c.gated && !c.shared && !c.value_is_key),
        "one matrix of q, k and v has all three and nothing else");
  CHECK(!c.moba || c.moba->block_tokens == 0 ||
            (c.window_tokens == 0 && c.chunk_tokens == 0 && !c.shared),
        "blocks of keys in a window, or of another layer");
  CHECK(
      !c.index || (!c.moba && c.window_tokens == 0 && c.chunk_tokens == 0 && !c.shared && c.rotary),
      "an index of blocks in a window, of another layer, without rotation or beside another");
  return c;
}

Linear qkv_of(Builder b, const GqaConfig& c) {
  int64_t q = c.q_heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  int64_t columns = c.input > 0 ? c.input : c.hidden;
  if (!c.names.qkv.empty()) {
    Shard shard = Shard::rows(c.kv_heads, {q, kv, kv});
    return Linear(b, {{c.names.qkv, q + 2 * kv, shard}}, columns, c.qkv_bias);
  }
  Shard shard = Shard::rows(c.kv_heads);
  if (c.shared) return Linear(b, {{"q_proj", q, shard}}, columns, c.qkv_bias);
  if (c.value_is_key) {
    return Linear(b, {{"q_proj", q, shard}, {"k_proj", kv, shard}}, columns, c.qkv_bias);
  }
  if (c.gated) {
    Shard of_q = Shard::rows_of_runs(c.kv_heads, c.q_heads, {q, q});
    return Linear(b, {{"q_proj", 2 * q, of_q}, {"k_proj", kv, shard}, {"v_proj", kv, shard}},
                  columns, c.qkv_bias);
  }
  return Linear(b, {{"q_proj", q, shard}, {"k_proj", kv, shard}, {"v_proj", kv, shard}}, columns,
                c.qkv_bias);
}

// The state spec of keys or values.
StateSpec spec_of(const Builder& b, const GqaConfig& c, std::string_view name) {
  int64_t reach = std::max(c.window_tokens, c.chunk_tokens);
  return {.name = std::string(name),
          .reach = reach > 0 ? StateReach::kWindow : StateReach::kAll,
          .window_tokens = reach,
          .dtype = b.page_dtype(),
          .heads = b.part(c.kv_heads).count,
          .width = c.head_dim,
          .host_plans = c.chunk_tokens > 0 || c.moba || c.index,
          .two_forms = c.moba && !c.moba->decode};
}

StateSpec key_sums_of(const Builder& b, const GqaConfig& c) {
  return {.name = "key_sums",
          .dtype = DType::kF32,
          .heads = b.part(c.kv_heads).count,
          .width = c.head_dim,
          .tokens_per_row = narrow<int>(c.moba->block_tokens),
          .index = true};
}

}  // namespace

GqaAttention::GqaAttention(Builder b, const GqaConfig& c)
    : shape_{.q_heads = b.part(checked(c).kv_heads).count * (c.q_heads / c.kv_heads),
             .kv_heads = b.part(c.kv_heads).count,
             .head_dim = c.head_dim,
             .scale = c.scale > 0 ? static_cast<float>(c.scale)
                                  : 1 / std::sqrt(static_cast<float>(c.head_dim)),
             .window_tokens = c.window_tokens,
             .chunk_tokens = c.chunk_tokens,
             .soft_cap = c.soft_cap},
      kv_heads_whole_(c.kv_heads),
      gated_(c.gated),
      value_is_key_(c.value_is_key),
      shares_(c.shared.has_value()),
      form_{.head_dim = c.head_dim,
            .eps = c.eps,
            .norm_after_rope = c.norm_after_rope,
            .rotary = c.rotary,
            .layout = c.layout},
      query_scale_(c.query_scale),
      moba_(c.moba.value_or(MobaShape{})),
      qkv_(qkv_of(b, c)),
      output_(b, {{c.names.output, c.hidden, Shard::columns(c.kv_heads)}}, c.q_heads * c.head_dim,
              c.output_bias) {
  (b / "rotary_emb").ignore("inv_freq");  // old Llama 2 files have it
  auto norm_of = [&](std::string_view name, int64_t heads, NormWeight weight) {
    return RmsNorm(b / name, heads * c.head_dim, c.eps, weight);
  };
  if (c.row_norms) {
    q_norm_ = norm_of(c.names.q_norm, c.q_heads, c.norm_weight);
    if (!shares_) k_norm_ = norm_of(c.names.k_norm, c.kv_heads, c.norm_weight);
  }
  if (c.head_norms) {
    form_.q_weight = norm_of(c.names.q_norm, 1, c.norm_weight).weight();
    if (!shares_) form_.k_weight = norm_of(c.names.k_norm, 1, c.norm_weight).weight();
  }
  if (c.value_norm && !shares_) form_.v_weight = norm_of("v_norm", 1, NormWeight::kNone).weight();
  if (c.sinks) {
    sinks_ = b.vector({{"", c.q_heads, Shard::rows(c.kv_heads)}}, "sinks", 0);
    shape_.sinks = sinks_.empty() ? nullptr : sinks_.f32();
  }
  if (shares_) {
    states_ = *c.shared;
    for (std::string_view part : {"k_proj", "v_proj", "k_norm", "v_norm"}) {
      (b / part).ignore_scope();  // published files have them
    }
    return;
  }
  states_.keys = b.state(spec_of(b, c, "keys"));
  states_.values = b.state(spec_of(b, c, "values"));
  if (moba_.block_tokens > 0) key_sums_ = b.state(key_sums_of(b, c));
  if (c.index) index_.emplace(b, *c.index, c.hidden, c.kv_heads, c.eps, c.norm_weight, c.layout);
}

// A norm over all heads needs those of other ranks.
Tensor GqaAttention::normed(Step& s, Tensor x, const RmsNorm& norm) const {
  if (s.comm.rank().alone()) return norm(s, x);
  int64_t width = x.dim(1) / shape_.kv_heads;
  Tensor all = norm(s, gather_columns(s, x, kv_heads_whole_));
  UnitRange own = units_of(kv_heads_whole_, s.comm.rank());
  return all.columns(own.begin * width, own.count * width);
}

Heads GqaAttention::heads_of(Step& s, Tensor qkv) const {
  int64_t q_width = shape_.q_heads * shape_.head_dim, width = shape_.kv_heads * shape_.head_dim;
  Heads heads = {.q = qkv.columns(0, q_width)};
  if (!shares_) {
    int64_t begin = gated_ ? 2 * q_width : q_width;
    heads.k = qkv.columns(begin, width);
    heads.v = value_is_key_ ? heads.k : qkv.columns(begin + width, width);
  }
  if (q_norm_) heads.q = normed(s, heads.q, *q_norm_);
  if (k_norm_) heads.k = normed(s, heads.k, *k_norm_);
  return heads;
}

Tensor GqaAttention::attend(Step& s, Tensor x, Tensor q, const Rotation& rotation) const {
  const auto& [keys, values] = states_;
  if (index_) return (*index_)(s, x, rotation, q, keys, values, shape_);
  if (key_sums_ >= 0) return moba_attention(s, q, keys, values, key_sums_, shape_, moba_);
  return attention(s, q, keys, values, shape_);
}

Tensor GqaAttention::operator()(Step& s, Tensor x, const Rotation& rotation) const {
  Tensor qkv = qkv_(s, x);
  Tensor q = place_heads(s, heads_of(s, qkv), form_, rotation, states_.keys, states_.values);
  if (key_sums_ >= 0) write_key_sums(s, states_.keys, key_sums_, moba_);
  if (query_scale_.beta != 0) q = scale(s, q, 1, query_scale_);
  Tensor out = attend(s, x, q, rotation);
  int64_t q_width = shape_.q_heads * shape_.head_dim;
  if (gated_) out = gate_mul(s, GateFunction::kSigmoid, qkv.columns(q_width, q_width), out);
  return output_(s, out);
}

}  // namespace banyan
