// Rows of x as integers, for products with weights of integers (kernels/gemm.h).
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/fours.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/memory_range.h"
#include "kernels/cuda/rounded_rows.h"
#include "kernels/cuda/weights.h"
#include "kernels/gemm.h"

namespace banyan::cuda {

// Codes, and an f32 step for each group of a row.
//
// Where weights lie in fragments, codes lie as RoundedRows do: [segments, chunks, rows] of 128
// bytes, each swizzled by its row and filled up with zeros. The steps of the groups that end in a
// chunk are [segments, chunks, rows / 8, groups, 8]. So one bulk copy each fetches a chunk of rows
// from a multiple of eight on. Elsewhere they are [rows, segments, k] codes and [rows, segments,
// groups] steps.
struct QuantisedRows {
  std::byte* workspace = nullptr;
  int64_t rows = 0, segments = 0, k = 0, group = 0;

  static constexpr size_t bytes(int64_t rows, int64_t segments, int64_t k, int64_t group) {
    QuantisedRows all{nullptr, rows, segments, k, group};
    int64_t steps = all.in_chunks() ? all.chunks() * all.chunk_steps() : rows * (k / group);
    return (all.code_bytes() + segments * steps * 4 + 63) / 64 * 64;
  }
  MemoryRange range() const { return {workspace, bytes(rows, segments, k, group)}; }
  BANYAN_HOST_DEVICE constexpr int64_t columns() const {  // with those that are filled up
    return in_chunks() ? chunks() * kChunkColumns : k;
  }
  BANYAN_HOST_DEVICE int8_t* code(int64_t row, int64_t segment, int64_t c) const {
    if (in_chunks()) return code_in_chunk(row, segment, c);
    return reinterpret_cast<int8_t*>(workspace) + (row * segments + segment) * k + c;
  }
  BANYAN_HOST_DEVICE int8_t* code_in_chunk(int64_t row, int64_t segment, int64_t c) const {
    int64_t byte = c % kChunkColumns;
    std::byte* at = codes_of(segment, c / kChunkColumns) + row * kTileRowBytes + byte % 16 +
                    swizzled_chunk(static_cast<uint32_t>(row), static_cast<uint32_t>(byte / 16));
    return reinterpret_cast<int8_t*>(at);
  }
  template <class Codes>
  BANYAN_HOST_DEVICE void store_in_chunk(int64_t row, int64_t segment, int64_t c,
                                         const Codes& codes) const {
    *reinterpret_cast<Codes*>(code_in_chunk(row, segment, c)) = codes;
  }
  BANYAN_HOST_DEVICE float* step(int64_t row, int64_t segment, int64_t g) const {
    if (in_chunks()) return step_in_chunk(row, segment, g);
    return steps() + (row * segments + segment) * quotient(k, group) + g;
  }
  BANYAN_HOST_DEVICE float* step_in_chunk(int64_t row, int64_t segment, int64_t g) const {
    int64_t chunk = ((g + 1) * group - 1) / kChunkColumns, place = g - chunk * chunk_groups();
    if (chunk_groups() == 1) place = 0;
    return steps_of(segment, chunk) + (row / 8 * chunk_groups() + place) * 8 + row % 8;
  }

  BANYAN_HOST_DEVICE constexpr bool in_chunks() const {
    return in_fragments(Format::kInt8, k, group);
  }
  // The rest where they are.
  BANYAN_HOST_DEVICE constexpr int64_t chunk_groups() const {
    return Fragments(Format::kInt8, k, group).chunk_groups();
  }
  BANYAN_HOST_DEVICE constexpr int64_t chunk_steps() const {
    return (rows + 7) / 8 * 8 * chunk_groups();
  }
  BANYAN_HOST_DEVICE std::byte* codes_of(int64_t segment, int64_t chunk) const {
    return workspace + (segment * chunks() + chunk) * rows * kTileRowBytes;
  }
  BANYAN_HOST_DEVICE float* steps_of(int64_t segment, int64_t chunk) const {
    return steps() + (segment * chunks() + chunk) * chunk_steps();
  }

 private:
  BANYAN_HOST_DEVICE constexpr int64_t chunks() const {
    return (k + kChunkColumns - 1) / kChunkColumns;
  }
  BANYAN_HOST_DEVICE constexpr int64_t code_bytes() const {
    if (in_chunks()) return rows * segments * chunks() * kTileRowBytes;
    return (rows * segments * k + 3) / 4 * 4;
  }
  BANYAN_HOST_DEVICE float* steps() const {
    return reinterpret_cast<float*>(workspace + code_bytes());
  }
};

BANYAN_HOST_DEVICE inline QuantisedRows quantised_rows(const GemmArgs& a) {
  return {static_cast<std::byte*>(a.workspace), a.x_rows, a.segments, a.k, a.group};
}

// The magnitude of a group's columns, and NaN if one of them is not finite, or 0.
struct GroupSize {
  float largest = 0, poison = 0;

  template <int N>
  BANYAN_HOST_DEVICE void add(const Floats<N>& x) {
    BANYAN_UNROLL
    for (int i = 0; i < N; ++i) {
      float size = magnitude(x.at[i]);
      largest = largest < size ? size : largest;
      poison += x.at[i] * 0.0f;
    }
  }
  BANYAN_HOST_DEVICE float step() const {
    return largest >= kQuantisedMin ? largest / 127.0f + poison : poison;
  }

  template <int N>
  struct alignas(N) Codes {
    int8_t at[N];
  };
  template <int N>
  BANYAN_HOST_DEVICE Codes<N> codes(const Floats<N>& x) const {
    constexpr float kToInteger = 0x1.8p23f;
    float inverse = largest >= kQuantisedMin ? 127.0f / largest : 0.0f;
    Codes<N> codes;
    BANYAN_UNROLL
    for (int i = 0; i < N; ++i) {
      float code = (x.at[i] * inverse + kToInteger) - kToInteger;
      codes.at[i] = poison == 0 ? static_cast<int8_t>(code) : int8_t{0};
    }
    return codes;
  }
};
struct LargestSize {
  BANYAN_HOST_DEVICE GroupSize operator()(const GroupSize& a, const GroupSize& b) const {
    return {a.largest < b.largest ? b.largest : a.largest, a.poison + b.poison};
  }
};

// Quantises columns of a row by a block: a group, eight columns a thread, or several short groups
// together, which are a slab. InChunks: how the rows lie.
template <bool InChunks>
struct RowQuantiser {
  static constexpr int64_t kColumns = 8, kSlab = kColumns * kBlockThreads;

  QuantisedRows to;

  struct Shared {
    GroupSize sizes[kBlockThreads];
  };

  BANYAN_HOST_DEVICE constexpr bool is_short() const {
    return kSlab % to.group == 0 && to.group < kSlab && to.group % kColumns == 0;
  }
  BANYAN_HOST_DEVICE int64_t slab_columns() const { return is_short() ? kSlab : to.group; }
  BANYAN_HOST_DEVICE int64_t slabs() const {  // of a row
    return quotient(to.k + slab_columns() - 1, slab_columns());
  }

  // x(c) has columns c to c + 7 of the row, zeros where it ends. It may be asked twice.
  template <class Block, class X>
  BANYAN_DEVICE void quantise(Block& block, int64_t row, int64_t segment, int64_t slab,
                              const X& x) const {
    int64_t first = slab * slab_columns();
    Slab of = {row, segment, first, least(slab_columns(), to.k - first)};
    is_short() ? quantise_groups(block, of, x) : quantise_group(block, of, x);
    if (slab > 0) return;
    for_each(block, to.columns() - to.k, [&](int64_t c) { *to.code(row, segment, to.k + c) = 0; });
  }
  // A slab of short groups that are whole chunks: columns of a row of the only segment from `first`
  // on.
  template <class Block, class X>
  BANYAN_DEVICE void quantise_slab(Block& block, int64_t row, int64_t first, const X& x) const {
    quantise_groups(block, {row, 0, first, least(kSlab, to.k - first)}, x);
  }

 private:
  struct Slab {
    int64_t row, segment, first, count;
  };

  template <class Block, class X>
  BANYAN_DEVICE void quantise_groups(Block& block, const Slab& s, const X& x) const {
    Shared& shared = *block.template shared<Shared>();
    typename Block::template PerThread<Eight> values;
    block.each([&](int thread) {
      GroupSize size;
      int64_t c = thread * kColumns;
      if (c < s.count) {
        values[thread] = x(s.first + c);
        size.add(values[thread]);
      }
      shared.sizes[thread] = size;
    });
    block.each([&](int thread) {
      int64_t c = thread * kColumns;
      if (c >= s.count) return;
      int threads = static_cast<int>(to.group) / int{kColumns}, first = thread / threads * threads;
      GroupSize size;
      BANYAN_NO_UNROLL
      for (int t = first; t < first + threads; ++t) size = LargestSize()(size, shared.sizes[t]);
      store(s, c, values[thread], size);
      if (thread == first) store_step(s, c, size);
    });
  }

  template <class Block, class X>
  BANYAN_DEVICE void quantise_group(Block& block, const Slab& s, const X& x) const {
    GroupSize size = block.reduce(
        [&](int thread) {
          GroupSize own;
          for (int64_t c = thread * kColumns; c < s.count; c += kSlab) own.add(x(s.first + c));
          return own;
        },
        LargestSize());
    block.each([&](int thread) {
      for (int64_t c = thread * kColumns; c < s.count; c += kSlab) {
        store(s, c, x(s.first + c), size);
      }
      if (thread == 0) store_step(s, 0, size);
    });
  }

  BANYAN_DEVICE void store(const Slab& s, int64_t c, const Eight& values,
                           const GroupSize& size) const {
    auto codes = size.codes(values);
    if constexpr (InChunks) {
      to.store_in_chunk(s.row, s.segment, s.first + c, codes);
    } else {
      int8_t* at = to.code(s.row, s.segment, s.first + c);
      for (int i = 0; i < kColumns && c + i < s.count; ++i) at[i] = codes.at[i];
    }
  }
  BANYAN_DEVICE void store_step(const Slab& s, int64_t c, const GroupSize& size) const {
    int64_t g = quotient(s.first + c, to.group);
    if constexpr (InChunks) {
      *to.step_in_chunk(s.row, s.segment, g) = size.step();
    } else {
      *to.step(s.row, s.segment, g) = size.step();
    }
  }
};

// What a kernel that computes rows writes for a product, if either has a workspace.
inline MemoryRange prepared_range(const RoundedRows& rounded, const QuantisedRows& quantised) {
  if (rounded.workspace != nullptr) return rounded.range();
  return quantised.workspace != nullptr ? quantised.range() : MemoryRange{};
}
// Whether the kernel that computes rows may quantise them: whole chunks of short groups.
inline bool may_quantise(const QuantisedRows& to) {
  return to.in_chunks() && to.columns() == to.k && RowQuantiser<true>{to}.is_short();
}
// Quantises rows that a kernel computes, a slab for each block at a time: fours_of(row)(c) has
// columns c to c + 3 of a row.
template <class Block, class FoursOf>
BANYAN_DEVICE void quantise_while(Block& block, const QuantisedRows& to, const FoursOf& fours_of) {
  constexpr int64_t kSlab = RowQuantiser<true>::kSlab;
  int64_t slabs = (to.k + kSlab - 1) / kSlab;
  for (int64_t i = block.index(); i < to.rows * slabs; i += block.count()) {
    int64_t row = quotient(i, slabs);
    auto four = fours_of(row);
    RowQuantiser<true>{to}.quantise_slab(block, row, (i - row * slabs) * kSlab,
                                         [&](int64_t c) { return eight_of(four(c), four(c + 4)); });
  }
}
// What launches that.
inline Shape quantising_shape(const QuantisedRows& to) {
  return {.blocks = to.rows * to.segments * RowQuantiser<true>{to}.slabs(),
          .shared_bytes = sizeof(RowQuantiser<true>::Shared)};
}

// A block has a slab at a time.
struct QuantiseRows {
  GemmArgs a;

  Shape shape() const { return quantising_shape(quantised_rows(a)); }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    QuantisedRows to = quantised_rows(a);
    to.in_chunks() ? run<true>(block, to) : run<false>(block, to);
  }

 private:
  template <bool InChunks, class Block>
  BANYAN_DEVICE void run(Block& block, const QuantisedRows& to) const {
    const GemmGroup& w = a.weights;
    RowQuantiser<InChunks> quantiser = {to};
    int64_t rows = w.begins != nullptr && a.x_index == nullptr ? w.begins[w.count] : a.x_rows;
    int64_t slabs = quantiser.slabs();
    for (int64_t i = block.index(); i < rows * a.segments * slabs; i += block.count()) {
      int64_t at = quotient(i, slabs), row = quotient(at, a.segments);
      int64_t segment = at - row * a.segments;
      const float* x = a.x + row * a.x_stride + segment * a.segment_stride;
      quantiser.quantise(block, row, segment, i - at * slabs,
                         [&](int64_t c) { return columns(x, c); });
    }
  }

  BANYAN_DEVICE Eight columns(const float* x, int64_t c) const {
    if (c + 8 <= a.k) return load_eight(x + c);
    Eight values;
    BANYAN_UNROLL
    for (int i = 0; i < 8; ++i) values.at[i] = c + i < a.k ? x[c + i] : 0.0f;
    return values;
  }
};

}  // namespace banyan::cuda
