// Matrix products of every weight format, over weights that are interleaved by sixteen outputs.
//
// Packed layout: blocks of 16 outputs, each a header (scales and zeros, formats.h) and then lines
// of 64 bytes. A line holds the next few columns of all sixteen outputs, a dword for each, so that
// it is one register of AVX-512, two of AVX2 or one row of an AMX tile. Rows of x are first brought
// into the operands that the format multiplies with (prepare), a dword for each part of a line, and
// then broadcast dword by dword: a sum over k runs in one lane from beginning to end and depends
// neither on the rows nor on the outputs beside it.
#pragma once

#include <cstring>

#include "kernels/launch.h"
#include "kernels/x86/gemm_formats.h"

namespace banyan::x86 {

// Fewer multiplications than this are done sooner than a worker wakes.
constexpr int64_t kInlineProducts = 1 << 17;
// Ahead of what is read: far enough for memory, near enough for the level-1 cache.
constexpr int64_t kPrefetchBytes = 4096;
// A part costs at least as much as so many rows: that of reading its weights.
constexpr int64_t kRowsOfRead = 4;

// The rows and blocks of one register tile. Where fewer rows or blocks than R and N are left, the
// first one stands in for the others.
template <class F, int R, int N>
struct Tile {
  const std::byte* x[R];
  const std::byte* block[N];
  float y[R][N][kBlockOutputs];
};

// Calls body(integral_constant<i>) for i in [0, N): loops that must be unrolled, since their
// variables are registers.
template <int N, class Body, int I = 0>
[[gnu::always_inline]] static inline void unroll(const Body& body) {
  if constexpr (I < N) {
    body(I);
    unroll<N, Body, I + 1>(body);
  }
}

// Adds the lines of group g to the sums.
template <class F, int R, int N>
[[gnu::always_inline]] inline void add_lines(const Tile<F, R, N>& t, const GemmShape& s, int64_t g,
                                             typename F::Sum (&sums)[R][N][F::kVectors]) {
  int64_t first = g * s.group_lines;
  const std::byte* line[N];
  for (int n = 0; n < N; ++n) line[n] = t.block[n] + s.header_bytes + first * kLineBytes;
  int64_t x_offset = first * F::kParts * 4;
  for (int64_t l = 0; l < s.group_lines; ++l) {
    typename F::Line weights[N][F::kVectors];
    unroll<N>([&](int n) {
      __builtin_prefetch(line[n] + kPrefetchBytes);
      for (int v = 0; v < F::kVectors; ++v) weights[n][v] = F::load_line(line[n], v);
      line[n] += kLineBytes;
    });
    unroll<F::kParts>([&](int p) {
      typename F::Operand parts[N][F::kVectors];
      unroll<N>([&](int n) {
        for (int v = 0; v < F::kVectors; ++v) parts[n][v] = F::part(weights[n][v], p);
      });
      unroll<R>([&](int r) {
        auto x = F::broadcast(t.x[r] + x_offset + p * 4);
        unroll<N>([&](int n) {
          for (int v = 0; v < F::kVectors; ++v) {
            sums[r][n][v] = F::multiply_add(sums[r][n][v], parts[n][v], x);
          }
        });
      });
    });
    x_offset += F::kParts * 4;
  }
}

template <class F, int R, int N>
[[gnu::noinline]] void multiply(Tile<F, R, N>& t, const GemmShape& s) {
  using V = typename F::V;
  typename F::Sum sums[R][N][F::kVectors];
  if constexpr (!F::kScaled) {
    unroll<R>([&](int r) {
      unroll<N>([&](int n) {
        for (int v = 0; v < F::kVectors; ++v) sums[r][n][v] = F::zero();
      });
    });
    add_lines<F, R, N>(t, s, 0, sums);
    unroll<R>([&](int r) {
      unroll<N>([&](int n) {
        for (int v = 0; v < F::kVectors; ++v) V::store(t.y[r][n] + v * V::kLanes, sums[r][n][v]);
      });
    });
  } else {
    std::memset(t.y, 0, sizeof(t.y));
    for (int64_t g = 0; g < s.groups; ++g) {
      unroll<R>([&](int r) {
        unroll<N>([&](int n) {
          for (int v = 0; v < F::kVectors; ++v) {
            sums[r][n][v] = F::start(t.x[r], t.block[n], s, g, v);
          }
        });
      });
      add_lines<F, R, N>(t, s, g, sums);
      unroll<N>([&](int n) {
        for (int v = 0; v < F::kVectors; ++v) {
          auto scale = F::scale(t.block[n], s, g, v);
          unroll<R>([&](int r) {
            float* y = t.y[r][n] + v * V::kLanes;
            auto factor = V::mul(F::step(t.x[r], s, g), scale);
            V::store(y, V::fma(F::to_float(sums[r][n][v]), factor, V::load(y)));
          });
        }
      });
    }
  }
}

// Rows [row, row + rows) of a part with the blocks first, first + stride, ... below end.
template <class F, int R, int N>
void multiply_rows(const GemmArgs& a, const GemmShape& s, const GemmPart& part, int64_t row,
                   int64_t rows, int64_t first, int64_t stride, int64_t end) {
  Tile<F, R, N> t;
  for (int64_t r = 0; r < R; ++r) {
    int64_t place = row + (r < rows ? r : 0);
    int64_t source = a.x_index ? a.x_index[place] : place;
    t.x[r] = static_cast<const std::byte*>(a.workspace) +
             (source * a.segments + part.segment) * s.prepared_bytes;
  }
  for (int64_t n = 0; n < N; ++n) {
    int64_t block = first + n * stride < end ? first + n * stride : first;
    t.block[n] = static_cast<const std::byte*>(part.weight) + block * s.block_bytes;
  }
  multiply<F, R, N>(t, s);
  for (int64_t n = 0; n < N && first + n * stride < end; ++n) {
    int64_t j = (first + n * stride) * kBlockOutputs;
    int64_t count = a.n - j < kBlockOutputs ? a.n - j : kBlockOutputs;
    for (int64_t r = 0; r < rows; ++r) {
      float* y = a.y + (row + r) * a.y_stride + part.y_column + j;
      for (int64_t i = 0; i < count; ++i) y[i] = t.y[r][n][i] + (a.bias ? a.bias[j + i] : 0.0f);
    }
  }
}

// The same with the smallest tile that holds the rows.
template <class F, int R = F::kTileRows>
void multiply_rows_of(const GemmArgs& a, const GemmShape& s, const GemmPart& part, int64_t row,
                      int64_t rows, int64_t first, int64_t stride, int64_t end) {
  constexpr int kSmaller = R > 4 ? 4 : R / 2;
  if constexpr (R > 1) {
    if (rows <= kSmaller) {
      return multiply_rows_of<F, kSmaller>(a, s, part, row, rows, first, stride, end);
    }
  }
  multiply_rows<F, R, F::kTileBlocks>(a, s, part, row, rows, first, stride, end);
}

// Blocks [begin, end) of a part, read as kTileBlocks streams side by side, each sequential from one
// end to the other: several times faster from memory than neighbouring blocks together, whose short
// runs the processor's prefetcher does not recognise. The streams' blocks stay in the level-2 cache
// while all rows pass by.
template <class F>
void multiply_blocks(const GemmArgs& a, const GemmShape& s, const GemmPart& part, int64_t begin,
                     int64_t end) {
  int64_t stride = (end - begin + F::kTileBlocks - 1) / F::kTileBlocks;
  int64_t tiles = (part.row_count + F::kTileRows - 1) / F::kTileRows;
  for (int64_t first = begin; first < begin + stride; ++first) {
    for (int64_t t = 0; t < tiles; ++t) {
      int64_t row = part.row_count * t / tiles;
      int64_t rows = part.row_count * (t + 1) / tiles - row;
      multiply_rows_of<F>(a, s, part, part.row_begin + row, rows, first, stride, end);
    }
  }
}

static inline int64_t cost_of_block(const GemmPart& part) {
  if (part.row_count == 0) return 0;
  return part.row_count < kRowsOfRead ? kRowsOfRead : part.row_count;
}

// The share [begin, end) of the cost of all parts' blocks.
template <class F>
void multiply_share(const GemmArgs& a, const GemmShape& s, int64_t begin, int64_t end) {
  int64_t blocks = blocks_of(a.n), first = 0;
  for (const GemmPart* part = a.parts; part != a.parts + a.part_count && first < end; ++part) {
    int64_t cost = cost_of_block(*part);
    if (cost == 0) continue;
    auto block_at = [&](int64_t at) {  // the first block that does not start before `at`
      int64_t block = at <= first ? 0 : (at - first + cost - 1) / cost;
      return block < blocks ? block : blocks;
    };
    int64_t from = block_at(begin), to = block_at(end);
    if (from < to) multiply_blocks<F>(a, s, *part, from, to);
    first += cost * blocks;
  }
}

template <class F>
void gemm_run(const GemmArgs& a) {
  GemmShape s = shape_of<F>(a.k, a.group);
  int64_t x_parts = a.x_rows * a.segments;
  parallel_for(a.launch, x_parts, rows_per_job(a.k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      F::prepare(a.x + i / a.segments * a.x_stride + i % a.segments * a.k, s,
                 static_cast<std::byte*>(a.workspace) + i * s.prepared_bytes);
    }
  });
  int64_t cost = 0;
  for (int64_t p = 0; p < a.part_count; ++p) cost += cost_of_block(a.parts[p]) * blocks_of(a.n);
  bool together = cost * kBlockOutputs * a.k > kInlineProducts;
  if (!together || a.launch.threads == nullptr) return multiply_share<F>(a, s, 0, cost);
  int64_t workers = a.launch.threads->size();
  a.launch.threads->run([&](int worker) {
    multiply_share<F>(a, s, cost * worker / workers, cost * (worker + 1) / workers);
  });
}

template <class F>
size_t gemm_packed_bytes(int64_t n, int64_t k, int64_t group) {
  return static_cast<size_t>(blocks_of(n)) * shape_of<F>(k, group).block_bytes;
}

template <class F>
size_t gemm_workspace_bytes(int64_t rows, int64_t segments, int64_t k, int64_t group) {
  return static_cast<size_t>(rows * segments) * shape_of<F>(k, group).prepared_bytes;
}

// Lanes of the same block together, so that whole lines are written.
template <class F>
void gemm_pack(const PackArgs& a) {
  GemmShape s = shape_of<F>(a.k, a.group);
  const auto* source = static_cast<const std::byte*>(a.source);
  int64_t end = a.row_begin + a.row_count;
  for (int64_t row = a.row_begin; row < end;) {
    int64_t lane = row % kBlockOutputs;
    int64_t lanes = kBlockOutputs - lane < end - row ? kBlockOutputs - lane : end - row;
    std::byte* block = static_cast<std::byte*>(a.packed) + row / kBlockOutputs * s.block_bytes;
    int64_t from = row - a.row_begin;
    for (int64_t i = 0; i < lanes; ++i) F::pack_header(a, s, from + i, block, lane + i);
    const std::byte* rows = source + from * a.k * F::kSourceBytes;
    for (int64_t line = 0; line < s.groups * s.group_lines; ++line) {
      for (int64_t i = 0; i < lanes; ++i) {
        F::pack_line(rows + i * a.k * F::kSourceBytes, a.k, line,
                     block + s.header_bytes + line * kLineBytes, lane + i);
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

template <class F>
constexpr GemmKernel gemm_kernel() {
  return {gemm_packed_bytes<F>, gemm_workspace_bytes<F>, gemm_pack<F>, gemm_gather<F>, gemm_run<F>};
}

}  // namespace banyan::x86
