// Brings states through the tiles of prompts (state_tiles.h). A block has 64 columns of values of a
// head, and the state of these in registers, transposed: [64 columns, 128 channels]. What it
// multiplies with them comes to shared memory by copies that run one tile ahead.
//
// The floor of a tile and head: its operands read once for each 64 columns, and three times 64 (4
// key_dim + 64) value_dim operations of tensor cores.
#pragma once

#include "kernels/cuda/state_tiles.h"

namespace banyan::cuda {

template <class Block, class Kernel, class Head>
class TileScan {
 public:
  // Of tiles [first, end) of a span, of which the first is number `begin` of all.
  BANYAN_DEVICE TileScan(Block& block, const Kernel& kernel, const StateTiles& tiles,
                         const Head& head, int64_t s, int64_t piece, int64_t first, int64_t end,
                         int64_t begin)
      : block_(block),
        kernel_(kernel),
        tiles_(tiles),
        head_(head),
        span_(kernel.a.spans.spans[s]),
        s_(s),
        piece_(piece),
        first_(first),
        end_(end),
        begin_(begin),
        rows_(prompt_rows(kernel.a.spans, s)) {}

  BANYAN_DEVICE void run() {
    block_.each([&](int thread) { load_state(thread); });
    fetch(first_);
    for (int64_t tile = first_; tile < end_; ++tile) {
      block_.wait_for_fetched();
      if (tile + 1 < end_) fetch(tile + 1);
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
    return tiles_.of(begin_ + tile, head_.head);
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
    bool begins = first_ == 0 && span_.first_position == 0;
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
    read_state(tile, staged, out);
    PerThread<SplitFragments<kRowSteps>> updates;
    PerThread<State> added;
    block_.alone([&](int thread) { updates[thread].assign(updates_[thread]); });
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
      int64_t last = span_.first_position + least((tile + 1) * kStateTile, rows_) - 1;
      for_captures(kernel_.a.spans, s_, last,
                   [&](int64_t slot) { store_state(thread, head_.state_in(slot)); });
    });
  }
  // out = (d query) S, and the updates without what they read of it.
  BANYAN_DEVICE void read_state(int64_t tile, const PreparedTile& staged, PerThread<Rows>& out) {
    PerThread<SplitFragments<kKeySteps>> state;
    block_.alone([&](int thread) {
      load_updates(tile, thread);
      state[thread].assign(state_[thread]);
    });
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
    BANYAN_UNROLL
    for (int i = 0; i < kStateTile / 2; ++i) {
      int64_t row = tile * kStateTile + Rows::column(thread, i);
      int64_t d = piece_ * kValueColumns + Rows::row(thread, i);
      if (row < rows_) head_.out(row)[d] = kernel_.output(head_, row, d, out.at[i]);
    }
  }

  Block& block_;
  const Kernel& kernel_;
  const StateTiles& tiles_;
  const Head& head_;
  SpanArgs span_;
  int64_t s_, piece_, first_, end_, begin_, rows_;
  PerThread<State> state_;
  PerThread<Rows> updates_;
};

template <class Kernel>
struct ScanStateTiles {
  Kernel kernel;
  StateTiles tiles;
  Shape shape() const {
    int64_t pieces = kernel.a.value_dim / kValueColumns;
    return {.blocks = kernel.a.spans.count * tiles.heads * pieces,
            .shared_bytes = static_cast<size_t>(2 * PreparedTile::staged_bytes(Kernel::kCorrects))};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    using Head = HeadOf<std::decay_t<decltype(kernel.a)>>;
    const SlotSpans& spans = kernel.a.spans;
    int64_t pieces = quotient(kernel.a.value_dim, kValueColumns), of_span = tiles.heads * pieces;
    for (int64_t item = block.index(); item < spans.count * of_span; item += block.count()) {
      int64_t s = quotient(item, of_span), h = quotient(item - s * of_span, pieces);
      int64_t count = tiles_of_span(spans, s);
      if (count == 0) continue;
      int64_t begin = sum_over(block, s, [&](int64_t i) { return tiles_of_span(spans, i); });
      int64_t first = tiles.first > begin ? tiles.first - begin : 0;
      int64_t end = least(tiles.first + tiles.count - begin, count);
      if (first >= end) continue;
      Head head(kernel.a, s, h);
      int64_t piece = item - s * of_span - h * pieces;
      TileScan<Block, Kernel, Head>(block, kernel, tiles, head, s, piece, first, end, begin).run();
    }
  }
};

}  // namespace banyan::cuda
