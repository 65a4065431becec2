// GEMM for every weight format, with weights interleaved by sixteen outputs.
//
// Packed layout: blocks of 16 outputs, each a sequence of units. A unit is a header (scales and
// zeros of some groups, see gemm_formats.h), then lines of 64 bytes. A line holds the next few
// columns of all sixteen outputs, one dword each: one register of AVX-512, two of AVX2, or one row
// of an AMX tile.
//
// Rows of x are first converted to the format's operands (prepare), one dword per part of a line,
// then broadcast dword by dword. A sum over k stays in one lane from start to end, so it depends
// neither on other rows nor on other outputs.
#pragma once

#include <cstring>

#include "kernels/launch.h"
#include "kernels/vector/gemm_formats.h"

namespace banyan::simd {

// Fewer multiplications than this finish sooner than a worker wakes up.
constexpr int64_t kInlineProducts = 1 << 17;
// How far ahead one tile of rows prefetches, into the level-2 cache; parallel streams would evict
// each other from level 1. A few tiles share the prefetch of the next blocks, unless those are too
// large for the cache. With many tiles, prefetching no longer matters. One row computes little
// between its loads: from 4 kB ahead, Zen 4 reads a quarter less, whose own prefetcher is put off.
constexpr int64_t kPrefetchBytes = 4096, kPrefetchBytesOfOneRow = 1024;
constexpr int64_t kPrefetchBlockMax = 128 << 10;
constexpr int64_t kPrefetchTilesMax = 16;
constexpr int kPrefetchLevel = 2;
// From kManyRows rows on, blocks of kKeptBytes stay in the level-2 cache while x streams past.
constexpr int64_t kManyRows = 256;
constexpr int64_t kKeptBytes = 256 << 10;
// The minimum cost of a part, in rows: reading its weights.
constexpr int64_t kRowsOfRead = 4;

// The rows and blocks of one register tile. If fewer than R rows or N blocks are left, the first
// one fills the other places.
template <class F, int R, int N>
struct Tile {
  const std::byte* x[R];
  const std::byte* block[N];
  // Prefetches start `ahead` bytes after each block's first line and advance by ahead_bytes per
  // line; headers are prefetched header_ahead bytes after the current one.
  int64_t ahead, ahead_bytes, header_ahead;
  float y[R][N][kBlockOutputs];
};

// Runs the statement that follows for every sum (r, n, v) of a tile, unrolled. Also for
// gemm_blocks.h.
#define BANYAN_FOR_EACH_SUM                               \
  _Pragma("GCC unroll 8") for (int r = 0; r < R; ++r)     \
      _Pragma("GCC unroll 8") for (int n = 0; n < N; ++n) \
          _Pragma("GCC unroll 2") for (int v = 0; v < F::kVectors; ++v)

// The lines of a group, for one tile.
template <class F, int R, int N>
struct GroupLines {
  const std::byte* line[N];
  const std::byte* x[R];
  int64_t ahead, ahead_step;  // of the prefetches

  GroupLines(const Tile<F, R, N>& t, const GemmShape& s, int64_t g) {
    int64_t first = g * s.group_lines;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) line[n] = t.block[n] + lines_at<F>(s, g);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) x[r] = t.x[r] + first * F::kParts * 4;
    ahead_step = t.ahead_bytes;
    ahead = t.ahead + first * (ahead_step - kLineBytes);
  }

  // Calls add(r, n, v, operand, x) for all products of part p of line l, unrolled.
  template <class Add>
  [[gnu::always_inline]] void multiply_part(const typename F::Line (&weights)[N][F::kVectors],
                                            int64_t l, int p, const Add& add) const {
    typename F::Operand parts[N][F::kVectors];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
      for (int v = 0; v < F::kVectors; ++v) parts[n][v] = F::part(weights[n][v], p);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      auto operand = F::broadcast(x[r] + (l * F::kParts + p) * 4);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
        for (int v = 0; v < F::kVectors; ++v) add(r, n, v, parts[n][v], operand);
      }
    }
  }

  [[gnu::always_inline]] void load(int64_t l, typename F::Line (&weights)[N][F::kVectors]) const {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      __builtin_prefetch(line[n] + ahead + l * ahead_step, 0, kPrefetchLevel);
#pragma GCC unroll 2
      for (int v = 0; v < F::kVectors; ++v) {
        weights[n][v] = F::load_line(line[n] + l * kLineBytes, v);
      }
    }
  }
};

// Adds the lines of group g to the sums in registers; all loops but the one over lines are
// unrolled.
template <class F, int R, int N>
[[gnu::always_inline]] inline void add_lines(const Tile<F, R, N>& t, const GemmShape& s, int64_t g,
                                             typename F::Sum (&sums)[R][N][F::kVectors]) {
  GroupLines<F, R, N> lines(t, s, g);
  for (int64_t l = 0; l < s.group_lines; ++l) {
    typename F::Line weights[N][F::kVectors];
    lines.load(l, weights);
#pragma GCC unroll 4
    for (int p = 0; p < F::kParts; ++p) {
      lines.multiply_part(weights, l, p, [&](int r, int n, int v, auto weight, auto x) {
        sums[r][n][v] = F::multiply_add(sums[r][n][v], weight, x);
      });
    }
  }
}

// The same in words: products of F::kWordLines lines fit them, so only their sums are widened.
template <class F, int R, int N>
  requires(F::kWordLines > 0)
[[gnu::always_inline]] inline void add_lines(const Tile<F, R, N>& t, const GemmShape& s, int64_t g,
                                             typename F::Sum (&sums)[R][N][F::kVectors]) {
  using V = typename F::V;
  GroupLines<F, R, N> lines(t, s, g);
  for (int64_t first = 0; first < s.group_lines; first += F::kWordLines) {
    typename V::I words[R][N][F::kVectors];
    BANYAN_FOR_EACH_SUM words[r][n][v] = V::set_dword(0);
    int64_t left = s.group_lines - first,
            end = first + (left < F::kWordLines ? left : F::kWordLines);
#pragma GCC unroll 1
    for (int64_t l = first; l < end; ++l) {
      typename F::Line weights[N][F::kVectors];
      lines.load(l, weights);
#pragma GCC unroll 2
      for (int p = 0; p < F::kParts; ++p) {
        lines.multiply_part(weights, l, p, [&](int r, int n, int v, auto weight, auto x) {
          auto sum = V::add_words(words[r][n][v], V::word_products(weight, x));
          words[r][n][v] = V::in_order(sum);
        });
      }
    }
    BANYAN_FOR_EACH_SUM sums[r][n][v] = V::add_word_pairs(sums[r][n][v], words[r][n][v]);
  }
}

// Prefetches headers of later units, at the start of the unit of group g.
template <class F, int R, int N>
[[gnu::always_inline]] inline void fetch_headers(const Tile<F, R, N>& t, const GemmShape& s,
                                                 int64_t g) {
  for (int64_t b = 0; b < s.header_bytes; b += kLineBytes) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      __builtin_prefetch(t.block[n] + unit_at<F>(s, g) + b + t.header_ahead, 0, kPrefetchLevel);
    }
  }
}

// Adds `F::kWordLines` lines from `first` on: their products fit words.
template <class F, int R, int N>
[[gnu::always_inline]] inline void multiply_words(const GroupLines<F, R, N>& lines, int first,
                                                  typename F::Sum (&words)[R][N][F::kVectors]) {
  using V = typename F::V;
#pragma GCC unroll 4
  for (int l = first; l < first + F::kWordLines; ++l) {
    typename F::Line weights[N][F::kVectors];
    lines.load(l, weights);
#pragma GCC unroll 2
    for (int p = 0; p < F::kParts; ++p) {
      lines.multiply_part(weights, l, p, [&](int r, int n, int v, auto weight, auto x) {
        auto products = V::word_products(weight, x);
        bool is_first = l == first && p == 0;
        words[r][n][v] = V::in_order(is_first ? products : V::add_words(words[r][n][v], products));
      });
    }
  }
}

// Lines of a group of 32 nibbles.
constexpr int kShortGroupLines = 4;

// Groups of 32 in words. These end so often that their ends cost as much as their products: here
// all of a group is unrolled, and its sums have no registers of their own.
template <class F, int R, int N>
[[gnu::noinline]] void multiply_short_groups(Tile<F, R, N>& t, const GemmShape& shape) {
  using V = typename F::V;
  constexpr bool kInHalves = 2 * F::kWordLines == kShortGroupLines;
  static_assert(kInHalves || F::kWordLines == kShortGroupLines);
  const GemmShape s = shape;  // which no store can change
  typename V::F totals[R][N][F::kVectors];
  BANYAN_FOR_EACH_SUM totals[r][n][v] = V::set(0);
  for (int64_t g = 0; g < s.groups; ++g) {
    if (F::kUnitGroups > 0 && place_in_unit<F>(g) == 0) fetch_headers<F, R, N>(t, s, g);
    GroupLines<F, R, N> lines(t, s, g);
    typename F::Sum words[R][N][F::kVectors], half[R][N][F::kVectors];
    multiply_words<F, R, N>(lines, 0, words);
    if constexpr (kInHalves) {
      BANYAN_FOR_EACH_SUM half[r][n][v] = V::add_word_pairs(V::set_dword(0), words[r][n][v]);
      multiply_words<F, R, N>(lines, F::kWordLines, words);
    }
    typename V::F scales[N][F::kVectors];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
      for (int v = 0; v < F::kVectors; ++v) scales[n][v] = F::scale(t.block[n], s, g, v);
    }
    BANYAN_FOR_EACH_SUM {
      auto sum = V::add_word_pairs(F::start(t.x[r], t.block[n], s, g, v), words[r][n][v]);
      if constexpr (kInHalves) sum = V::add_dwords(sum, half[r][n][v]);
      auto factor = V::mul(F::step(t.x[r], s, g), scales[n][v]);
      totals[r][n][v] = V::fma(F::to_float(sum), factor, totals[r][n][v]);
    }
  }
  BANYAN_FOR_EACH_SUM V::store(t.y[r][n] + v * V::kLanes, totals[r][n][v]);
}

template <class F, int R, int N>
[[gnu::noinline]] void multiply(Tile<F, R, N>& t, const GemmShape& shape) {
  using V = typename F::V;
  if constexpr (F::kWordLines > 0) {
    if (shape.group_lines == kShortGroupLines) return multiply_short_groups<F, R, N>(t, shape);
  }
  const GemmShape s = shape;  // which no store can change
  typename F::Sum sums[R][N][F::kVectors];
  if constexpr (!F::kScaled) {
    BANYAN_FOR_EACH_SUM sums[r][n][v] = F::zero();
    add_lines<F, R, N>(t, s, 0, sums);
    BANYAN_FOR_EACH_SUM V::store(t.y[r][n] + v * V::kLanes, sums[r][n][v]);
  } else {
    typename V::F totals[R][N][F::kVectors];
    BANYAN_FOR_EACH_SUM totals[r][n][v] = V::set(0);
    for (int64_t g = 0; g < s.groups; ++g) {
      if (F::kUnitGroups > 0 && place_in_unit<F>(g) == 0) fetch_headers<F, R, N>(t, s, g);
      BANYAN_FOR_EACH_SUM sums[r][n][v] = F::start(t.x[r], t.block[n], s, g, v);
      add_lines<F, R, N>(t, s, g, sums);
      typename V::F scales[N][F::kVectors];
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
        for (int v = 0; v < F::kVectors; ++v) scales[n][v] = F::scale(t.block[n], s, g, v);
      }
      BANYAN_FOR_EACH_SUM {
        auto factor = V::mul(F::step(t.x[r], s, g), scales[n][v]);
        totals[r][n][v] = V::fma(F::to_float(sums[r][n][v]), factor, totals[r][n][v]);
      }
    }
    BANYAN_FOR_EACH_SUM V::store(t.y[r][n] + v * V::kLanes, totals[r][n][v]);
  }
}

// Rows of one part: tile `index` of `count`.
struct RowTile {
  int64_t row, rows, index, count;
};

// The blocks first, first + stride, ... below end.
struct BlockStreams {
  int64_t first, stride, end;
};

template <class F, int R, int N>
void place_blocks(Tile<F, R, N>& t, const GemmShape& s, const GemmPart& part, const RowTile& rows,
                  const BlockStreams& streams) {
  bool shared =
      rows.count > 1 && rows.count <= kPrefetchTilesMax && s.block_bytes <= kPrefetchBlockMax;
  int64_t alone = R == 1 ? kPrefetchBytesOfOneRow : kPrefetchBytes;
  t.ahead = shared ? s.block_bytes + s.block_bytes * rows.index / rows.count : alone;
  t.ahead_bytes = shared ? kLineBytes / rows.count : kLineBytes;
  t.header_ahead = shared ? s.block_bytes : alone;
  for (int64_t n = 0; n < N; ++n) {
    int64_t block = streams.first + n * streams.stride;
    if (block >= streams.end) block = streams.first;
    t.block[n] = part.weight + block * s.block_bytes;
  }
}

template <class F, int R, int N>
void multiply_rows(const GemmArgs& a, const GemmShape& s, const GemmPart& part, const RowTile& tile,
                   const BlockStreams& streams) {
  using V = typename F::V;
  Tile<F, R, N> t;
  for (int64_t r = 0; r < R; ++r) {
    int64_t place = tile.row + (r < tile.rows ? r : 0);
    int64_t source = a.x_index ? a.x_index[place] : place;
    t.x[r] = static_cast<const std::byte*>(a.workspace) +
             (source * a.segments + part.segment) * s.prepared_bytes;
  }
  place_blocks(t, s, part, tile, streams);
  multiply<F, R, N>(t, s);
  for (int64_t n = 0; n < N && streams.first + n * streams.stride < streams.end; ++n) {
    int64_t j = (streams.first + n * streams.stride) * kBlockOutputs;
    int64_t count = a.n - j < kBlockOutputs ? a.n - j : kBlockOutputs;
    for (int64_t c = 0; c < count; c += V::kLanes) {
      int64_t lanes = count - c < V::kLanes ? count - c : V::kLanes;
      auto bias = part.bias ? load_up_to<V>(part.bias + j + c, lanes) : V::set(-0.0f);
      for (int64_t r = 0; r < tile.rows; ++r) {
        float* y = a.y + (tile.row + r) * a.y_stride + part.y_column + j + c;
        store_up_to<V>(y, lanes, V::add(V::load(t.y[r][n] + c), bias));
      }
    }
  }
}

// The same, with the smallest tile that fits the rows.
template <class F, int N, int R>
void multiply_rows_of(const GemmArgs& a, const GemmShape& s, const GemmPart& part,
                      const RowTile& tile, const BlockStreams& streams) {
  constexpr int kSmaller = R > 4 ? 4 : R / 2;
  if constexpr (R > 1 && R <= F::kTileRows) {
    if (tile.rows <= kSmaller) return multiply_rows_of<F, N, kSmaller>(a, s, part, tile, streams);
  }
  multiply_rows<F, R, N>(a, s, part, tile, streams);
}

static inline int64_t tiles_of(const GemmPart& part, int64_t rows) {
  return (part.row_count + rows - 1) / rows;
}

// Tile t of the part's rows, `rows` at a time; the last one may be smaller.
static inline RowTile row_tile(const GemmPart& part, int64_t t, int64_t rows) {
  int64_t row = t * rows, left = part.row_count - row;
  return {part.row_begin + row, left < rows ? left : rows, t, tiles_of(part, rows)};
}

// Reads blocks [begin, end) of a part as N parallel sequential streams. From memory this is several
// times faster than reading neighbouring blocks together, since the prefetcher does not recognise
// short runs. The current blocks stay in the level-2 cache while all rows pass.
template <class F, int N, int R>
void stream_blocks(const GemmArgs& a, const GemmShape& s, const GemmPart& part, int64_t begin,
                   int64_t end) {
  int64_t stride = (end - begin + N - 1) / N;
  int64_t tiles = tiles_of(part, R);
  for (int64_t first = begin; first < begin + stride; ++first) {
    for (int64_t t = 0; t < tiles; ++t) {
      multiply_rows_of<F, N, R>(a, s, part, row_tile(part, t, R), {first, stride, end});
    }
  }
}

// The same for many rows, which do not fit a cache together with the weights. Multiplies as many
// blocks as fit the level-2 cache with one tile of rows at a time, which stays in level 1.
template <class F, int N, int R>
void revisit_blocks(const GemmArgs& a, const GemmShape& s, const GemmPart& part, int64_t begin,
                    int64_t end) {
  int64_t groups = kKeptBytes / s.block_bytes / N;
  int64_t kept = groups > 0 ? groups * N : N;
  int64_t tiles = tiles_of(part, R);
  for (int64_t first = begin; first < end; first += kept) {
    int64_t last = first + kept < end ? first + kept : end;
    for (int64_t t = 0; t < tiles; ++t) {
      RowTile tile = row_tile(part, t, R);
      for (int64_t block = first; block < last; block += N) {
        multiply_rows_of<F, N, R>(a, s, part, tile, {block, 1, last});
      }
    }
  }
}

// Multiplies a format's blocks with vector instructions.
template <class F>
struct VectorMultiply {
  static void blocks(const GemmArgs& a, const GemmShape& s, const GemmPart& part, int64_t begin,
                     int64_t end) {
    if constexpr (F::kTallTileRows > 0) {
      if (part.row_count > F::kTileRows && part.row_count <= F::kTallTileRows) {
        return stream_blocks<F, 1, F::kTallTileRows>(a, s, part, begin, end);
      }
    }
    if (part.row_count == 1) {
      stream_blocks<F, F::kStreams, 1>(a, s, part, begin, end);
    } else if (part.row_count < kManyRows) {
      stream_blocks<F, F::V::kGemmBlocks, F::kTileRows>(a, s, part, begin, end);
    } else {
      revisit_blocks<F, F::V::kGemmBlocks, F::kTileRows>(a, s, part, begin, end);
    }
  }
  static size_t workspace_bytes(int64_t rows, int64_t segments, int64_t k, int64_t group) {
    return static_cast<size_t>(rows * segments) * shape_of<F>(k, group).prepared_bytes;
  }
};

static inline int64_t cost_of_block(const GemmPart& part) {
  if (part.row_count == 0) return 0;
  return part.row_count < kRowsOfRead ? kRowsOfRead : part.row_count;
}

// Processes the share [begin, end) of the total cost of all parts' blocks.
template <class Multiply>
void multiply_share(const GemmArgs& a, const GemmShape& s, int64_t begin, int64_t end) {
  int64_t blocks = blocks_of(a.n), first = 0;
  for (int64_t i = 0; i < a.weights.count && first < end; ++i) {
    GemmPart part = gemm_part(a, i);
    int64_t cost = cost_of_block(part);
    if (cost == 0) continue;
    auto block_at = [&](int64_t at) {  // the first block that starts at or after `at`
      int64_t block = at <= first ? 0 : (at - first + cost - 1) / cost;
      return block < blocks ? block : blocks;
    };
    int64_t from = block_at(begin), to = block_at(end);
    if (from < to) Multiply::blocks(a, s, part, from, to);
    first += cost * blocks;
  }
}

template <class F, class Multiply>
void gemm_run(const GemmArgs& a) {
  GemmShape s = shape_of<F>(a.k, a.group);
  int64_t x_parts = gemm_x_rows(a) * a.segments;
  parallel_for(a.launch, x_parts, rows_per_job(a.k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      F::prepare(a.x + i / a.segments * a.x_stride + i % a.segments * a.segment_stride, s,
                 static_cast<std::byte*>(a.workspace) + i * s.prepared_bytes);
    }
  });
  int64_t cost = 0;
  for (int64_t i = 0; i < a.weights.count; ++i) {
    cost += cost_of_block(gemm_part(a, i)) * blocks_of(a.n);
  }
  bool together = cost * kBlockOutputs * a.k > kInlineProducts;
  if (!together || a.launch.threads == nullptr) return multiply_share<Multiply>(a, s, 0, cost);
  int64_t workers = a.launch.threads->size();
  a.launch.threads->run([&](int worker) {
    multiply_share<Multiply>(a, s, cost * worker / workers, cost * (worker + 1) / workers);
  });
}

template <class F>
size_t gemm_packed_bytes(int64_t n, int64_t k, int64_t group) {
  return static_cast<size_t>(blocks_of(n)) * shape_of<F>(k, group).block_bytes;
}

// Line `line` of all that a block has, counted through its groups.
template <class F>
std::byte* line_at(std::byte* block, const GemmShape& s, int64_t line) {
  return block + lines_at<F>(s, line / s.group_lines) + line % s.group_lines * kLineBytes;
}

// One worker packs all lanes of a block, so that it writes whole cache lines, and of each lane what
// a cache line of its codes fills: rows whose length is a power of two evict each other.
template <class F>
void gemm_pack(const PackArgs& a) {
  constexpr int64_t kStep = kLineBytes / F::kSourceBytes, kLines = kStep / F::kColumns;
  GemmShape s = shape_of<F>(a.k, a.group);
  const auto* source = static_cast<const std::byte*>(a.source);
  int64_t end = a.row_begin + a.row_count, row_lines = s.groups * s.group_lines;
  for (int64_t row = a.row_begin; row < end;) {
    int64_t lane = row % kBlockOutputs;
    int64_t lanes = kBlockOutputs - lane < end - row ? kBlockOutputs - lane : end - row;
    std::byte* block = static_cast<std::byte*>(a.packed) + row / kBlockOutputs * s.block_bytes;
    int64_t from = row - a.row_begin;
    for (int64_t i = 0; i < lanes; ++i) F::pack_header(a, s, from + i, block, lane + i);
    for (int64_t line = 0; line < row_lines; line += kLines) {
      std::byte* to[kLines];
      int64_t count = kLines < row_lines - line ? kLines : row_lines - line;
      for (int64_t l = 0; l < count; ++l) to[l] = line_at<F>(block, s, line + l);
      int64_t column = line * F::kColumns, columns = a.k - column;
      const std::byte* codes = source + (from * a.k + column) * F::kSourceBytes;
      for (int64_t i = 0; i < lanes; ++i, codes += a.k * F::kSourceBytes) {
        if (columns >= kStep) {
#pragma GCC unroll 16
          for (int64_t l = 0; l < kLines; ++l) F::pack_line(codes, kStep, l, to[l], lane + i);
        } else {
          for (int64_t l = 0; l < count; ++l) F::pack_line(codes, columns, l, to[l], lane + i);
        }
      }
    }
    row += lanes;
  }
}

template <class F>
void gemm_gather(const GatherArgs& a) {
  GemmShape s = shape_of<F>(a.k, a.group);
  parallel_for(a.launch, a.rows, rows_per_job(a.k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t row = a.ids[i];
      const std::byte* block =
          static_cast<const std::byte*>(a.weight) + row / kBlockOutputs * s.block_bytes;
      for (int64_t c = 0; c < a.k; ++c) {
        a.y[i * a.k + c] = F::value(block, s, c, row % kBlockOutputs);
      }
    }
  });
}

template <class F, class Multiply = VectorMultiply<F>>
constexpr GemmKernel gemm_kernel() {
  return {gemm_packed_bytes<F>, Multiply::workspace_bytes, gemm_pack<F>, gemm_gather<F>,
          gemm_run<F, Multiply>};
}

}  // namespace banyan::simd
