// Kernels that only move data (the definitions are in kernels/portable/copies.cpp, attention.cpp
// and draw.cpp).
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/fours.h"
#include "kernels/cuda/spans.h"
#include "kernels/follow.h"
#include "kernels/kernel_table.h"
#include "kernels/page_rows.h"
#include "kernels/state_rows.h"

namespace banyan::cuda {

struct CopyRows {
  CopyRowsArgs a;
  BANYAN_HOST_DEVICE bool fours() const {
    return in_fours(a.dim, a.x_row_stride, a.y_row_stride, a.x, a.y);
  }
  Shape shape() const { return column_shape(a.rows, a.dim, fours()); }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_columns(block, a.rows, a.dim, fours(), [&]<int N>(int64_t r, int64_t c) {
      int64_t source = a.index != nullptr ? a.index[r] : r;
      store(a.y + r * a.y_row_stride + c, load<N>(a.x + source * a.x_row_stride + c));
    });
  }
};

struct AddRows {
  AddRowsArgs a;
  BANYAN_HOST_DEVICE bool fours() const {
    return in_fours(a.dim, a.x_row_stride, a.y_row_stride, a.x, a.y);
  }
  Shape shape() const { return column_shape(a.rows, a.dim, fours()); }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_columns(block, a.rows, a.dim, fours(), [&]<int N>(int64_t r, int64_t c) {
      float* y = a.y + a.index[r] * a.y_row_stride + c;
      Floats<N> x = load<N>(a.x + r * a.x_row_stride + c), sum = load<N>(y);
      BANYAN_UNROLL
      for (int i = 0; i < N; ++i) sum.at[i] = x.at[i] == 0 ? sum.at[i] : sum.at[i] + x.at[i];
      store(y, sum);
    });
  }
};

// A block per part of a unit: it makes the copies of that part in their order.
struct CopyUnits {
  CopyUnitsArgs a;
  Shape shape() const { return {}; }

  template <class Word, class Block>
  BANYAN_DEVICE static void copy(Block& block, std::byte* to, const std::byte* from,
                                 int64_t bytes) {
    auto* words = reinterpret_cast<Word*>(to);
    const auto* source = reinterpret_cast<const Word*>(from);
    for_each(block, bytes / static_cast<int64_t>(sizeof(Word)),
             [&](int64_t i) { words[i] = source[i]; });
  }

  template <class Block>
  BANYAN_DEVICE void copy_part(Block& block, const UnitPool& pool, const UnitCopy& unit,
                               int64_t part) const {
    int64_t bytes = pool.tokens_per_row > 0 ? unit.tokens / pool.tokens_per_row * pool.row_bytes
                                            : pool.part_bytes;
    std::byte* to = pool.data + (unit.to * pool.parts + part) * pool.part_bytes;
    const std::byte* from = pool.data + (unit.from * pool.parts + part) * pool.part_bytes;
    if (bytes % 4 == 0 && pool.part_bytes % 4 == 0) {
      copy<uint32_t>(block, to, from, bytes);
    } else {
      copy<uint8_t>(block, to, from, bytes);
    }
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    int64_t item = 0;  // the pool's first part
    for (int64_t p = 0; p < a.pool_count; item += a.pools[p++].parts) {
      const UnitPool& pool = a.pools[p];
      for (int64_t part = 0; part < pool.parts; ++part) {
        if (remainder(item + part, block.count()) != block.index()) continue;
        for (int64_t i = 0; i < a.copy_count; ++i) {
          if (a.copies[i].unit_class == pool.unit_class) {
            copy_part(block, pool, a.copies[i], part);
          }
        }
      }
    }
  }
};

// A thread stores 16 bytes of a head's row, or a column; all of a row of codes, which depend on the
// whole row.
template <class S>
struct PageWrite {
  static constexpr int kColumns = 16 / sizeof(S);
  static constexpr int64_t kBlocks = 1024;  // at most: enough for prompts, and soon launched

  PageWriteArgs a;
  Shape shape() const {
    return {.blocks = kBlocks, .shared_bytes = SpanRows::shared_bytes(a.span_count)};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    SpanRows rows(block, a.spans, a.span_count);
    if constexpr (kIsCode<S>) {
      for_parts(block, rows, 1,
                [&](const float* x, S* to, int64_t) { store_row(x, shape_of_row(), to); });
    } else if (in_fours(a.x, a.x_row_stride, a.pool) && a.width % kColumns == 0) {
      for_parts(block, rows, a.width / kColumns, store_columns<kColumns>);
    } else {
      for_parts(block, rows, a.width, store_columns<1>);
    }
  }

  BANYAN_DEVICE RowShape shape_of_row() const { return {.width = a.width, .split = a.split}; }

  // Calls body(x, to, part) for so many parts of each head's row.
  template <class Block, class Body>
  BANYAN_DEVICE void for_parts(Block& block, const SpanRows& rows, int64_t parts,
                               const Body& body) const {
    for_all(block, rows.count() * a.heads * parts, [&](int64_t i) {
      int64_t item = quotient(i, parts), row = quotient(item, a.heads);
      int64_t head = item - row * a.heads;
      SpanRow at = rows.at(row);
      const SpanArgs& span = a.spans[at.span];
      const float* x = a.x + (span.row_begin + at.i) * a.x_row_stride + head * a.width;
      int64_t to = pool_offset(a.page_table, span, span.first_position + at.i, head, a.heads,
                               a.page_size, row_stride<S>(shape_of_row()));
      body(x, static_cast<S*>(a.pool) + to, i - item * parts);
    });
  }

  // Part `part` of N columns.
  template <int N>
  BANYAN_DEVICE static void store_columns(const float* x, S* to, int64_t part) {
    constexpr int kLoad = N < 4 ? N : 4;
    struct alignas(N * sizeof(S)) Columns {
      S at[N];
    } columns;
    BANYAN_UNROLL
    for (int c = 0; c < N; c += kLoad) {
      Floats<kLoad> values = load<kLoad>(x + part * N + c);
      BANYAN_UNROLL
      for (int i = 0; i < kLoad; ++i) columns.at[c + i] = from_float<S>(values.at[i]);
    }
    reinterpret_cast<Columns*>(to)[part] = columns;
  }
};

template <class S>
struct PageRead {
  PageReadArgs a;
  Shape shape() const { return {}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    RowShape shape = {.width = a.width, .split = a.split};
    for_span_heads(block, a.spans, a.span_count, a.heads,
                   [&](const SpanArgs& span, int64_t i, int64_t head) {
                     const S* from = static_cast<const S*>(a.pool) +
                                     pool_offset(a.page_table, span, span.first_position + i, head,
                                                 a.heads, a.page_size, row_stride<S>(shape));
                     RowValues<S> values(from, shape);
                     float* x = a.x + (span.row_begin + i) * a.x_row_stride + head * a.width;
                     for_each(block, a.width, [&](int64_t c) { x[c] = values[c]; });
                   });
  }
};

struct ResolveTokens {
  ResolveTokensArgs a;
  Shape shape() const { return {.blocks = blocks_for(a.rows)}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_all(block, a.rows, [&](int64_t r) {
      TokenId token = a.tokens[r];
      if (token < 0) token = a.drawn[-1 - token].token;
      a.out[r] = token < 0 ? 0 : token;
    });
  }
};

struct FollowDrafts {
  FollowDraftsArgs a;
  Shape shape() const { return {.blocks = blocks_for(a.spans)}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_all(block, a.spans, [&](int64_t number) { follow_span(a, number); });
  }
};

}  // namespace banyan::cuda
