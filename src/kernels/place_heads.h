// The kernel place_heads as a sequence of other kernels of its table, which is its definition.
//
// Included by files of several instruction sets, so nothing here is an inline function with
// external linkage (see x86/vec_avx512.h).
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace banyan {

// Heads of q, k or v, dense inside a row.
struct HeadRows {
  const float* x;
  int64_t row_stride, heads;
};

// Norms heads, if there is a weight, and rotates them if there are pairs. Whatever changes them
// writes to `room`, which is dense. Of heads in parts, what is rotated has not been normed.
template <auto kRmsNorm, auto kRope>
static void norm_and_rotate(const PlaceHeadsArgs& a, HeadRows& rows, const float* weight,
                            int64_t pairs, float* room) {
  HeadRows given = rows, changed = {room, rows.heads * a.head_dim, rows.heads};
  auto norm = [&] {
    if (weight == nullptr) return;
    kRmsNorm({.launch = a.launch,
              .x = rows.x,
              .x_row_stride = rows.row_stride,
              .weight = weight,
              .y = room,
              .y_row_stride = changed.row_stride,
              .rows = a.rows,
              .groups = rows.heads,
              .dim = a.normed_columns(),
              .eps = a.eps});
    rows = changed;
  };
  if (!a.norm_after_rope) norm();
  if (pairs > 0 || a.split > 0) {
    const HeadRows& from = a.split > 0 ? given : rows;
    kRope({.launch = a.launch,
           .x = from.x + a.split,
           .x_row_stride = from.row_stride,
           .x_head_stride = a.head_dim,
           .cos = a.cos,
           .sin = a.sin,
           .y = room + a.split,
           .y_row_stride = changed.row_stride,
           .y_head_stride = a.head_dim,
           .rows = a.rows,
           .heads = rows.heads,
           .head_dim = a.head_dim - a.split,
           .pairs = pairs,
           .layout = a.layout});
    rows = changed;
  }
  if (a.norm_after_rope) norm();
}

template <auto kPageWrite>
static void write_heads(const PlaceHeadsArgs& a, const HeadRows& rows, void* pool) {
  kPageWrite({.launch = a.launch,
              .x = rows.x,
              .x_row_stride = rows.row_stride,
              .pool = pool,
              .pool_dtype = a.pool_dtype,
              .heads = rows.heads,
              .width = a.head_dim,
              .page_size = a.page_size,
              .split = a.split,
              .spans = a.spans,
              .span_count = a.span_count,
              .page_table = a.page_table});
}

template <auto kRmsNorm, auto kRope, auto kPageWrite>
static void place_heads_by(const PlaceHeadsArgs& a) {
  if (a.q != nullptr) {
    HeadRows q = {a.q, a.q_row_stride, a.q_heads};
    norm_and_rotate<kRmsNorm, kRope>(a, q, a.q_weight, a.pairs, a.q_out);
  }
  if (a.k == nullptr) return;
  HeadRows k = {a.k, a.k_row_stride, a.kv_heads}, v = {a.v, a.v_row_stride, a.kv_heads};
  norm_and_rotate<kRmsNorm, kRope>(a, k, a.k_weight, a.pairs, a.kv_room);
  write_heads<kPageWrite>(a, k, a.k_pool);
  if (a.v == nullptr) return;
  norm_and_rotate<kRmsNorm, kRope>(a, v, a.v_weight, 0, a.kv_room);
  write_heads<kPageWrite>(a, v, a.v_pool);
}

}  // namespace banyan
