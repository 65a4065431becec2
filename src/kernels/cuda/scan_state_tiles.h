// Takes states through the tiles of prompts (state_tiles.h). A block has 64 value columns of a
// head, whose state it keeps in registers, transposed: [64 columns, 128 channels]. Bulk copies
// fetch the other operands into shared memory, one tile ahead.
//
// The floor of a tile and head: its operands read once for each 64 columns, and on tensor cores
// three times 128 (3 key_dim + 64) value_dim operations, for the three products of a split pair.
#pragma once

#include "kernels/cuda/state_tiles.h"

namespace banyan::cuda {

static_assert(2 * PreparedTile::staged_bytes(true) + kStaticBytes <= kSharedBytes);

// Tiles [first, end) of a span, whose first one is number `begin` of all.
struct TileRange {
  int64_t first, end, begin;
};

template <class Block, class Kernel, class Head>
class TileScan {
 public:
  BANYAN_DEVICE TileScan(Block& block, const Kernel& kernel, const StateTiles& tiles,
                         const Head& head, int64_t s, int64_t piece, const TileRange& range)
      : block_(block),
        kernel_(kernel),
        tiles_(tiles),
        head_(head),
        span_(kernel.a.spans.spans[s]),
        s_(s),
        piece_(piece),
        range_(range),
        rows_(prompt_rows(kernel.a.spans, s)) {}

  BANYAN_DEVICE void run() {
    block_.each([&](int thread) {
      load_state(thread);
      load_updates(range_.first, thread);
    });
    fetch(range_.first);
    for (int64_t tile = range_.first; tile < range_.end; ++tile) {
      block_.wait_for_fetched();
      if (tile + 1 < range_.end) fetch(tile + 1);
      run_tile(tile);
    }
    block_.alone([&](int thread) { store_state(thread, head_.state); });
  }

 private:
  static constexpr int kKeySteps = kRegisterDim / 16, kRowSteps = kStateTile / 16;
  using State = Sums<kRegisterDim>;  // [columns, channels]
  using Rows = Sums<kStateTile>;     // [columns, rows]
  template <class T>
  using PerThread = typename Block::template PerThread<T>;

  BANYAN_DEVICE PreparedTile prepared(int64_t tile) const {
    return tiles_.of(range_.begin + tile, head_.head);
  }
  BANYAN_DEVICE PreparedTile staged(int64_t tile) const {
    return {block_.template shared<std::byte>() +
            tile % 2 * PreparedTile::staged_bytes(Kernel::kCorrects)};
  }
  BANYAN_DEVICE void fetch(int64_t tile) const {
    block_.fetch(staged(tile).at, prepared(tile).at, PreparedTile::staged_bytes(Kernel::kCorrects));
  }

  BANYAN_DEVICE float* at(float* state, int thread, int i) const {
    return state + State::column(thread, i) * kernel_.a.value_dim + piece_ * kValueColumns +
           State::row(thread, i);
  }
  BANYAN_DEVICE void load_state(int thread) {
    bool begins = range_.first == 0 && span_.first_position == 0;
    BANYAN_UNROLL
    for (int i = 0; i < kRegisterDim / 2; ++i) {
      state_[thread].at[i] = begins ? 0.0f : *at(head_.state, thread, i);
    }
  }
  BANYAN_DEVICE void store_state(int thread, float* state) {
    BANYAN_UNROLL
    for (int i = 0; i < kRegisterDim / 2; ++i) *at(state, thread, i) = state_[thread].at[i];
  }

  // What rows add to the state before the tile's is known.
  BANYAN_DEVICE void load_updates(int64_t tile, int thread) {
    BANYAN_UNROLL
    for (int i = 0; i < kStateTile / 2; ++i) {
      if constexpr (Kernel::kCorrects) {
        updates_[thread].at[i] = *prepared(tile).value(piece_, i, thread);
      } else {
        int64_t row = tile * kStateTile + Rows::column(thread, i);
        updates_[thread].at[i] =
            row < rows_ ? head_.v(row)[piece_ * kValueColumns + Rows::row(thread, i)] : 0.0f;
      }
    }
  }

  BANYAN_DEVICE void run_tile(int64_t tile) {
    PreparedTile staged = this->staged(tile);
    PerThread<Rows> out;
    read_state(staged, out);
    PerThread<SplitFragments<kRowSteps>> updates;
    PerThread<State> added;
    block_.alone([&](int thread) {
      updates[thread].assign(updates_[thread]);
      if (tile + 1 < range_.end) load_updates(tile + 1, thread);
    });
    block_.multiply(
        [&](auto& products) {
          add_split<kStateTile, kRowSteps>(products, out, updates, staged.scores(), true);
          add_split<kRegisterDim, kRowSteps, true>(products, added, updates,
                                                   staged.operand(PreparedTile::kKeys), false);
        },
        out, added, updates);
    block_.alone([&](int thread) {
      BANYAN_UNROLL
      for (int i = 0; i < kRegisterDim / 2; ++i) {
        float& value = state_[thread].at[i];
        value = fused(value, staged.decay()[State::column(thread, i)], added[thread].at[i]);
      }
      store_rows(tile, thread, out[thread]);
      capture(tile, thread);
    });
  }
  // out = (d query) S, and the updates without what they read of it.
  BANYAN_DEVICE void read_state(const PreparedTile& staged, PerThread<Rows>& out) {
    PerThread<SplitFragments<kKeySteps>> state;
    block_.alone([&](int thread) { state[thread].assign(state_[thread]); });
    block_.multiply(
        [&](auto& products) {
          if constexpr (Kernel::kCorrects) {
            add_split<kStateTile, kKeySteps>(products, updates_, state,
                                             staged.operand(PreparedTile::kReads), true);
          }
          add_split<kStateTile, kKeySteps>(products, out, state,
                                           staged.operand(PreparedTile::kQueries), false);
        },
        updates_, out, state);
  }
  BANYAN_DEVICE void store_rows(int64_t tile, int thread, const Rows& out) const {
    int64_t first = tile * kStateTile, stride = kernel_.a.heads * kernel_.a.value_dim;
    int64_t left = rows_ - first;
    float* to = head_.out(first);
    BANYAN_UNROLL
    for (int i = 0; i < kStateTile / 2; ++i) {
      int row = Rows::column(thread, i);
      int64_t d = piece_ * kValueColumns + Rows::row(thread, i);
      if (row < left) to[row * stride + d] = kernel_.output(head_, first + row, d, out.at[i]);
    }
  }
  BANYAN_DEVICE void capture(int64_t tile, int thread) {
    if (kernel_.a.spans.capture_count == 0) return;
    int64_t last = span_.first_position + least((tile + 1) * kStateTile, rows_) - 1;
    for_captures(kernel_.a.spans, s_, last,
                 [&](int64_t slot) { store_state(thread, head_.state_in(slot)); });
  }

  Block& block_;
  const Kernel& kernel_;
  const StateTiles& tiles_;
  const Head& head_;
  SpanArgs span_;
  int64_t s_, piece_;
  TileRange range_;
  int64_t rows_;
  PerThread<State> state_;
  PerThread<Rows> updates_;
};

template <class Kernel>
struct ScanStateTiles {
  Kernel kernel;
  StateTiles tiles;
  Shape shape() const {
    int64_t pieces = kernel.a.value_dim / kValueColumns, spans = end() - begin();
    return {.blocks = spans * tiles.heads * pieces,
            .shared_bytes = static_cast<size_t>(2 * PreparedTile::staged_bytes(Kernel::kCorrects))};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    using Head = HeadOf<std::decay_t<decltype(kernel.a)>>;
    const SlotSpans& spans = kernel.a.spans;
    int64_t pieces = quotient(kernel.a.value_dim, kValueColumns), of_span = tiles.heads * pieces;
    block.begin_fetching();
    for (int64_t item = block.index(); item < (end() - begin()) * of_span; item += block.count()) {
      int64_t i = quotient(item, of_span), s = begin() + i;
      int64_t h = quotient(item - i * of_span, pieces), piece = item - i * of_span - h * pieces;
      int64_t count = tiles_of_span(spans, s);
      if (count == 0) continue;
      int64_t before =
          sum_over(block, i, [&](int64_t other) { return tiles_of_span(spans, begin() + other); });
      TileRange range = {.first = tiles.first > before ? tiles.first - before : 0,
                         .end = least(tiles.first + tiles.count - before, count),
                         .begin = before};
      if (range.first >= range.end) continue;
      Head head(kernel.a, s, h);
      TileScan<Block, Kernel, Head>(block, kernel, tiles, head, s, piece, range).run();
    }
  }

 private:
  BANYAN_HOST_DEVICE int64_t begin() const { return kernel.a.spans.rows.first_prompt; }
  BANYAN_HOST_DEVICE int64_t end() const { return kernel.a.spans.rows.prompts_end; }
};

}  // namespace banyan::cuda
