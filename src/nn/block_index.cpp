#include "nn/block_index.h"

#include "base/check.h"

namespace banyan {

BlockIndex::BlockIndex(Builder b, const BlockIndexConfig& c, int64_t hidden, int64_t heads,
                       float eps, NormWeight norm_weight, RopeLayout layout)
    : rule_(c.rule()),
      dim_(c.dim),
      layout_(layout),
      input_(b, {{"index_q_proj", heads * c.dim, Shard::rows(heads)}, {"index_k_proj", c.dim}},
             hidden, false),
      query_norm_(b / "index_q_norm", c.dim, eps, norm_weight),
      key_norm_(b / "index_k_norm", c.dim, eps, norm_weight),
      keys_(b.state(
          {.name = "index_keys", .dtype = b.index_dtype(), .width = c.dim, .index = true})) {
  CHECK(c.block_tokens > 0 && c.local_blocks <= c.top_k, "blocks of {}, {} local of {}",
        c.block_tokens, c.local_blocks, c.top_k);
}

Tensor BlockIndex::operator()(Step& s, Tensor x, const Rotation& rotation, Tensor q, StateId k,
                              StateId v, const AttentionShape& shape) const {
  Tensor in = input_(s, x);
  int64_t width = shape.kv_heads * dim_;
  auto placed = [&](Tensor y, const RmsNorm& norm) {
    return rope(s, norm(s, y), dim_, rotation, layout_);
  };
  write_pages(s, placed(in.columns(width, dim_), key_norm_), keys_);
  Tensor queries = placed(in.columns(0, width), query_norm_);
  return indexed_block_attention(s, q, k, v, shape, queries, keys_, rule_);
}

}  // namespace banyan
