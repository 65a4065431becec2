// The part of a tile that does not depend on the state (state_tiles.h): one block per tile and
// head.
//
// A_ij and P_ij need the decay between rows j and i in every channel. It is split at a row r
// between the two, d(i, j) = d(i, r) d(r, j), so that both factors are products of decays and the
// sum over channels is a matrix product: rows 32 to 63 with rows 0 to 31 (r = 31), and within each
// half the second sixteen rows with the first (r = 15 or 47). Within sixteen rows, scalar code
// decays each key from row to row.
//
// The floor of a tile and head: 3 key_dim + value_dim floats of 64 rows read, and about as many
// bytes written.
#pragma once

#include "kernels/cuda/state_tiles.h"

namespace banyan::cuda {

// Memory of a block. Products take the place of their operands.
struct TileMemory {
  static constexpr int kPitch = kRegisterDim + 8;  // floats: fragments do not share banks
  static constexpr int kScorePitch = kStateTile + 8;
  static constexpr int kInversePitch = kStateTile / 2 + 4;
  using Rows = float[kStateTile][kPitch];
  using Scores = float[kStateTile][kScorePitch];
  struct Inverse {
    Scores of;  // T
    float products[kStateTile / 2][kInversePitch];
  };

  union {
    alignas(kTileAlignment) Rows keys;  // k, then d(i, first of the sixteen - 1) k_i
    Rows reads;                         // T d k
  };
  union {
    alignas(kTileAlignment) Rows queries;  // likewise
    Inverse inverse;
  };
  union {
    alignas(kTileAlignment) Rows decays;
    Rows decayed_keys;                             // d(last of the sixteen, j) key_j
    std::byte split_keys[PreparedTile::kOperand];  // d(i, -1) k_i
  };
  union {
    alignas(kTileAlignment) std::byte earlier[PreparedTile::kOperand];  // see store_scaled
    std::byte split_inverse[SplitTiles::bytes(kStateTile, kStateTile)];
  };
  Scores links, scores;           // A, P
  float totals[4][kRegisterDim];  // products of the decays of sixteen rows
  float key_factors[kStateTile];
  TileFinder finder;
};
static_assert(sizeof(TileMemory) + kStaticBytes <= kSharedBytes);

template <class Block, class Kernel, class Head>
class TilePreparation {
 public:
  BANYAN_DEVICE TilePreparation(Block& block, const Kernel& kernel, const Head& head, int64_t first,
                                int64_t rows, PreparedTile to)
      : block_(block),
        kernel_(kernel),
        head_(head),
        first_(first),
        rows_(rows),
        to_(to),
        m_(*block.template shared<TileMemory>()) {}

  BANYAN_DEVICE void run() {
    load_rows();
    follow_keys(0);
    follow_keys(1);
    block_.each([&](int thread) { scale(thread); });
    block_.each([&](int thread) { store_scaled(thread); });
    multiply_sixteens<kQuarters>();
    block_.each([&](int thread) { begin_halves(thread); });
    multiply_sixteens<kHalves>();
    block_.each([&](int thread) { store_scores(thread); });
    if constexpr (Kernel::kCorrects) {
      invert();
      block_.each([&](int thread) { split_inverse(thread); });
      store_reads();
      for (int64_t piece = 0; piece < kernel_.a.value_dim / kValueColumns; ++piece) {
        store_values(piece);
      }
    }
  }

 private:
  static constexpr int kSixteen = 16, kPairs = kRegisterDim / 2;
  enum Level : int { kHalves, kQuarters };

  // Threads have a channel each, or 32 channels of a key, or two channels of half of the rows.
  BANYAN_DEVICE void load_rows() {
    block_.each([&](int c) {
      BANYAN_NO_UNROLL
      for (int first = 0; first < kStateTile; first += kSixteen) load_sixteen(first, c);
      if (c < kStateTile) {
        m_.key_factors[c] = c < rows_ ? kernel_.key_factor(head_, first_ + c) : 0.0f;
      }
    });
  }
  // All loads first, of rows that exist, so that they are under way at the same time.
  BANYAN_DEVICE void load_sixteen(int first, int c) const {
    float k[kSixteen], q[kSixteen], decay[kSixteen];
    BANYAN_UNROLL
    for (int r = 0; r < kSixteen; ++r) {
      int64_t row = first_ + least(first + r, rows_ - 1);
      k[r] = head_.k(row)[c];
      q[r] = head_.q(row)[c];
      decay[r] = kernel_.decay_at(head_, row, c);
    }
    BANYAN_UNROLL
    for (int r = 0; r < kSixteen; ++r) {
      int i = first + r;
      bool exists = i < rows_;
      m_.keys[i][c] = exists ? k[r] : 0.0f;
      m_.queries[i][c] = exists ? kernel_.query_factor() * q[r] : 0.0f;
      m_.decays[i][c] = exists ? decay[r] : 1.0f;
      if (c < kStateTile) m_.links[i][c] = m_.scores[i][c] = 0;
    }
  }

  // Channels 4 quarter + 16 x + y of a key, decayed from row to row.
  struct Channels {
    float at[8][4];
  };
  BANYAN_DEVICE static int first_channel(int thread, int x) { return thread % 4 * 4 + 16 * x; }

  // A and P of pairs of rows in the same sixteen: of keys in one half of the tile.
  BANYAN_DEVICE void follow_keys(int half) {
    typename Block::template PerThread<Channels> keys;
    typename Block::template PerThread<float> link;
    auto key_of = [half](int thread) { return half * 32 + thread / 4; };
    block_.alone([&](int thread) {
      int j = key_of(thread);
      BANYAN_UNROLL
      for (int x = 0; x < 8; ++x) {
        Four four = load<4>(&m_.keys[j][first_channel(thread, x)]);
        BANYAN_UNROLL
        for (int y = 0; y < 4; ++y) keys[thread].at[x][y] = m_.key_factors[j] * four.at[y];
      }
    });
    BANYAN_NO_UNROLL
    for (int r = 0; r < kSixteen; ++r) {
      auto row_of = [&](int thread) { return key_of(thread) / kSixteen * kSixteen + r; };
      auto score = block_.sum_quads([&](int thread) {
        return follow_key(keys[thread], key_of(thread), row_of(thread), thread, link[thread]);
      });
      block_.alone([&](int thread) {
        int i = row_of(thread), j = key_of(thread);
        if (thread % 4 == 0 && i >= j) m_.scores[i][j] = score[thread];
      });
      if constexpr (Kernel::kCorrects) {
        auto sum = block_.sum_quads([&](int thread) { return link[thread]; });
        block_.alone([&](int thread) {
          int i = row_of(thread), j = key_of(thread);
          if (thread % 4 == 0 && i > j) m_.links[i][j] = sum[thread];
        });
      }
    }
  }
  // Decays key j to row i. Returns the thread's part of what row i's query reads of it; `link` is
  // that of row i's key.
  BANYAN_DEVICE float follow_key(Channels& key, int j, int i, int thread, float& link) const {
    float by_key[4] = {}, by_query[4] = {};
    if (i >= j) {
      BANYAN_UNROLL
      for (int x = 0; x < 8; ++x) {
        int c = first_channel(thread, x);
        Four decay = load<4>(&m_.decays[i][c]), q = load<4>(&m_.queries[i][c]), k = {};
        if constexpr (Kernel::kCorrects) k = load<4>(&m_.keys[i][c]);
        BANYAN_UNROLL
        for (int y = 0; y < 4; ++y) {
          float& value = key.at[x][y];
          if (i > j) value *= decay.at[y];
          by_query[y] = fused(q.at[y], value, by_query[y]);
          if constexpr (Kernel::kCorrects) by_key[y] = fused(k.at[y], value, by_key[y]);
        }
      }
    }
    link = (by_key[0] + by_key[1]) + (by_key[2] + by_key[3]);
    return (by_query[0] + by_query[1]) + (by_query[2] + by_query[3]);
  }

  // Calls body(block of sixteen) for those of the thread.
  template <class Body>
  BANYAN_DEVICE static void for_own_sixteens(int thread, const Body& body) {
    BANYAN_NO_UNROLL
    for (int b = thread / kPairs * 2; b < thread / kPairs * 2 + 2; ++b) body(b);
  }
  BANYAN_DEVICE static int own_channel(int thread) { return thread % kPairs * 2; }

  // Decays keys and queries from the first row of their sixteen on, and keys with their factors to
  // the last one.
  BANYAN_DEVICE void scale(int thread) const {
    int c = own_channel(thread);
    for_own_sixteens(thread, [&](int b) {
      Pair decays[kSixteen], to_end = {{1, 1}}, total = {{1, 1}};
      BANYAN_UNROLL
      for (int r = 0; r < kSixteen; ++r) decays[r] = load<2>(&m_.decays[b * kSixteen + r][c]);
      BANYAN_UNROLL
      for (int r = kSixteen - 1; r >= 0; --r) {
        int i = b * kSixteen + r;
        store(&m_.decayed_keys[i][c], load<2>(&m_.keys[i][c]) * m_.key_factors[i] * to_end);
        to_end = to_end * decays[r];
      }
      BANYAN_UNROLL
      for (int r = 0; r < kSixteen; ++r) {
        int i = b * kSixteen + r;
        total = total * decays[r];
        store(&m_.keys[i][c], load<2>(&m_.keys[i][c]) * total);
        store(&m_.queries[i][c], load<2>(&m_.queries[i][c]) * total);
      }
      store(&m_.totals[b][c], total);
    });
  }

  // The decay from the first of the sixteens [first, end) to the last.
  BANYAN_DEVICE Pair total(int first, int end, int c) const {
    Pair product = {{1, 1}};
    for (int b = first; b < end; ++b) product = product * load<2>(&m_.totals[b][c]);
    return product;
  }

  // d(i, -1) query_i and d(63, j) key_j, which the scan reads, and the earlier rows of the products
  // to come: rows 0 to 31 decayed to row 31, then the first and the third sixteen decayed to their
  // own last row.
  BANYAN_DEVICE void store_scaled(int thread) const {
    int c = own_channel(thread);
    SplitTiles earlier(m_.earlier, kStateTile, kRegisterDim);
    for_own_sixteens(thread, [&](int b) {
      Pair before = total(0, b, c), after = total(b + 1, 4, c);
      Pair to_half = b == 0 ? total(1, 2, c) : Pair{{1, 1}};
      BANYAN_UNROLL
      for (int r = 0; r < kSixteen; ++r) {
        int i = b * kSixteen + r;
        Pair key = load<2>(&m_.decayed_keys[i][c]);
        to_.operand(PreparedTile::kQueries).store(i, c, load<2>(&m_.queries[i][c]) * before);
        to_.operand(PreparedTile::kKeys).store(i, c, key * after);
        if (b < 2) earlier.store(i, c, key * to_half);
        if (b % 2 == 0) earlier.store(kStateTile / 2 + b / 2 * kSixteen + r, c, key);
      }
    });
    if (thread < kPairs) store(to_.decay() + c, total(0, 4, c));
  }

  // d(i, -1) k_i as an operand; the rows of the last sixteen are decayed from row 32 on instead.
  BANYAN_DEVICE void begin_halves(int thread) const {
    int c = own_channel(thread);
    SplitTiles from_state(m_.split_keys, kStateTile, kRegisterDim);
    for_own_sixteens(thread, [&](int b) {
      Pair before = total(0, b, c), of_half = load<2>(&m_.totals[2][c]);
      BANYAN_UNROLL
      for (int r = 0; r < kSixteen; ++r) {
        int i = b * kSixteen + r;
        Pair key = load<2>(&m_.keys[i][c]);
        if (Kernel::kCorrects) from_state.store(i, c, key * before);
        if (b < 3) continue;
        store(&m_.keys[i][c], key * of_half);
        store(&m_.queries[i][c], load<2>(&m_.queries[i][c]) * of_half);
      }
    });
  }

  // The sixteen whose rows a warp multiplies: two warps have keys, two queries.
  template <Level level>
  BANYAN_DEVICE static int later_sixteen(int warp) {
    return level == kHalves ? 2 + warp % 2 : 1 + warp % 2 * 2;
  }
  template <Level level>
  BANYAN_DEVICE void multiply_sixteens() {
    typename Block::template PerThread<SplitFragments<kRegisterDim / 16>> later;
    typename Block::template PerThread<Sums<32>> sums;
    block_.alone([&](int thread) {
      int warp = thread / kWarp, b = later_sixteen<level>(warp);
      const auto& rows = warp < 2 ? m_.keys : m_.queries;
      later[thread].assign(
          thread, [&](int row, int c) { return load<2>(&rows[b * kSixteen + row % kSixteen][c]); });
    });
    SplitTiles earlier(m_.earlier, kStateTile, kRegisterDim);
    if (level == kQuarters) earlier = earlier.from_row(kStateTile / 2);
    block_.multiply(
        [&](auto& products) {
          add_split<32, kRegisterDim / 16>(products, sums, later, earlier, false);
        },
        sums, later);
    block_.alone([&](int thread) {
      int warp = thread / kWarp, b = later_sixteen<level>(warp);
      auto& to = warp < 2 ? m_.links : m_.scores;
      BANYAN_UNROLL
      for (int v = 0; v < 16; ++v) {
        int i = b * kSixteen + Sums<32>::row(thread, v) % kSixteen;
        int j = Sums<32>::column(thread, v);
        if (level == kQuarters) {
          if (j / kSixteen != b / 2) continue;  // another half's
          j += b / 2 * kSixteen;
        }
        to[i][j] = sums[thread].at[v];
      }
    });
  }

  BANYAN_DEVICE void store_scores(int thread) const {
    for (int item = thread; item < kStateTile * kStateTile / 2; item += Block::kThreads) {
      int i = item / (kStateTile / 2), j = item % (kStateTile / 2) * 2;
      to_.scores().store(i, j, load<2>(&m_.scores[i][j]));
    }
  }

  // T, first of sixteens.
  BANYAN_DEVICE void invert() {
    for_each(block_, kStateTile * kStateTile,
             [&](int64_t item) { m_.inverse.of[item / kStateTile][item % kStateTile] = 0; });
    block_.each([&](int thread) {
      if (thread < kStateTile) invert_column(thread / kSixteen * kSixteen, thread % kSixteen);
    });
    join_squares<kSixteen>();
    join_squares<2 * kSixteen>();
  }
  // A value of the squares [size, size] that T lacks: row `row` of all of them and column c of its
  // own, which is in row `below` and column first + c of T.
  struct SquarePlace {
    int row, c, first, below;
  };
  // T of blocks of 2 size rows, from that of their halves.
  template <int size>
  BANYAN_DEVICE void join_squares() {
    constexpr int kCount = kStateTile / 2 * size;  // of values, of all squares
    auto place_of = [](int64_t item) {
      int row = static_cast<int>(item) / size, first = row / size * 2 * size;
      return SquarePlace{row, static_cast<int>(item) % size, first, first + size + row % size};
    };
    for_each(block_, kCount, [&](int64_t item) {
      auto [row, c, first, below] = place_of(item);
      float sum = 0;
      BANYAN_UNROLL
      for (int m = 0; m < size; ++m) {
        sum = fused(m_.links[below][first + m], m_.inverse.of[first + m][first + c], sum);
      }
      m_.inverse.products[row][c] = sum;
    });
    for_each(block_, kCount, [&](int64_t item) {
      auto [row, c, first, below] = place_of(item);
      float sum = 0;
      BANYAN_UNROLL
      for (int m = 0; m < size; ++m) {
        sum = fused(m_.inverse.of[below][first + size + m],
                    m_.inverse.products[row / size * size + m][c], sum);
      }
      m_.inverse.of[below][first + c] = -sum;
    });
  }
  // Column j of the inverse of a sixteen.
  BANYAN_DEVICE void invert_column(int first, int j) const {
    float x[kSixteen];
    BANYAN_UNROLL
    for (int i = 0; i < kSixteen; ++i) {
      float sum = i == j ? 1.0f : 0.0f;
      BANYAN_UNROLL
      for (int m = 0; m < i; ++m) sum = fused(-m_.links[first + i][first + m], x[m], sum);
      x[i] = sum;
      m_.inverse.of[first + i][first + j] = sum;
    }
  }

  BANYAN_DEVICE void split_inverse(int thread) const {
    SplitTiles inverse(m_.split_inverse, kStateTile, kStateTile);
    for (int item = thread; item < kStateTile * kStateTile / 2; item += Block::kThreads) {
      int i = item / (kStateTile / 2), j = item % (kStateTile / 2) * 2;
      inverse.store(i, j, load<2>(&m_.inverse.of[i][j]));
    }
  }
  BANYAN_DEVICE void store_reads() {
    constexpr int kSteps = kStateTile / 16;
    typename Block::template PerThread<SplitFragments<kSteps>> inverse;
    typename Block::template PerThread<Sums<kRegisterDim>> sums;
    block_.alone([&](int thread) {
      inverse[thread].assign(thread,
                             [&](int row, int c) { return load<2>(&m_.inverse.of[row][c]); });
    });
    SplitTiles from_state(m_.split_keys, kStateTile, kRegisterDim);
    block_.multiply(
        [&](auto& products) {
          add_split<kRegisterDim, kSteps, true>(products, sums, inverse, from_state, false);
        },
        sums, inverse);
    block_.each([&](int thread) {
      BANYAN_UNROLL
      for (int v = 0; v < kRegisterDim / 2; v += 2) {
        Pair negative = {{-sums[thread].at[v], -sums[thread].at[v + 1]}};
        store(&m_.reads[sums[thread].row(thread, v)][sums[thread].column(thread, v)], negative);
      }
    });
    block_.each([&](int thread) {
      int c = own_channel(thread);
      for_own_sixteens(thread, [&](int b) {
        for (int i = b * kSixteen; i < (b + 1) * kSixteen; ++i) {
          to_.operand(PreparedTile::kReads).store(i, c, load<2>(&m_.reads[i][c]));
        }
      });
    });
  }
  // (T v)^T of the columns of a scan.
  BANYAN_DEVICE void store_values(int64_t piece) {
    constexpr int kSteps = kStateTile / 16;
    typename Block::template PerThread<SplitFragments<kSteps>> values;
    typename Block::template PerThread<Sums<kStateTile>> sums;
    block_.alone([&](int thread) {
      values[thread].assign(thread, [&](int d, int j) {
        auto at = [&](int i) {
          return i < rows_ ? head_.v(first_ + i)[piece * kValueColumns + d] : 0.0f;
        };
        return Pair{{at(j), at(j + 1)}};
      });
    });
    SplitTiles inverse(m_.split_inverse, kStateTile, kStateTile);
    block_.multiply(
        [&](auto& products) {
          add_split<kStateTile, kSteps>(products, sums, values, inverse, false);
        },
        sums, values);
    block_.alone([&](int thread) {
      BANYAN_UNROLL
      for (int v = 0; v < kStateTile / 2; ++v) *to_.value(piece, v, thread) = sums[thread].at[v];
    });
  }

  Block& block_;
  const Kernel& kernel_;
  const Head& head_;
  int64_t first_, rows_;
  PreparedTile to_;
  TileMemory& m_;
};

template <class Kernel>
struct PrepareStateTiles {
  Kernel kernel;
  StateTiles tiles;
  Shape shape() const {
    return {.blocks = tiles.count * tiles.heads, .shared_bytes = sizeof(TileMemory)};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    using Head = HeadOf<std::decay_t<decltype(kernel.a)>>;
    const SlotSpans& spans = kernel.a.spans;
    TileFinder& finder = block.template shared<TileMemory>()->finder;
    for (int64_t item = block.index(); item < tiles.count * tiles.heads; item += block.count()) {
      int64_t number = quotient(item, tiles.heads), h = item - number * tiles.heads;
      StateTilePlace place = finder.find(block, spans, tiles.first + number);
      if (place.span < 0) return;
      Head head(kernel.a, place.span, h);
      int64_t first = place.tile * kStateTile;
      int64_t rows = least(prompt_rows(spans, place.span) - first, kStateTile);
      TilePreparation<Block, Kernel, Head>(block, kernel, head, first, rows,
                                           tiles.of(tiles.first + number, h))
          .run();
    }
  }
};

}  // namespace banyan::cuda
