// Kernels that only move data: sorting routed rows by expert, copying and adding rows, copying
// units. They are memory-bound, so every CPU table uses these.
#include <algorithm>
#include <cstring>

#include "kernels/launch.h"
#include "kernels/portable/portable.h"

namespace banyan::portable {
namespace {

void copy_unit(const UnitPool& pool, const UnitCopy& copy) {
  int64_t unit_bytes = pool.parts * pool.part_bytes;
  int64_t bytes = pool.tokens_per_row > 0 ? copy.tokens / pool.tokens_per_row * pool.row_bytes
                                          : pool.part_bytes;
  std::byte* to = pool.data + copy.to * unit_bytes;
  const std::byte* from = pool.data + copy.from * unit_bytes;
  for (int64_t part = 0; part < pool.parts; ++part) {
    std::memcpy(to + part * pool.part_bytes, from + part * pool.part_bytes, bytes);
  }
}

}  // namespace

// A counting sort: counts, prefix sums, and one pass that assigns places.
void sort_experts(const SortExpertsArgs& a) {
  int64_t choices = a.rows * a.top_k;
  std::fill_n(a.begins, a.experts + 1, 0);
  for (int64_t i = 0; i < choices; ++i) {
    if (a.ids[i] < a.experts) ++a.begins[a.ids[i] + 1];
  }
  for (int64_t e = 0; e < a.experts; ++e) a.begins[e + 1] += a.begins[e];
  // begins[e] advances to the end of expert e, where e + 1 begins, and is restored afterwards.
  for (int64_t i = 0; i < choices; ++i) {
    a.places[i] = a.ids[i] < a.experts ? a.begins[a.ids[i]]++ : -1;
    if (a.places[i] >= 0) a.sources[a.places[i]] = static_cast<int32_t>(i / a.top_k);
  }
  for (int64_t e = a.experts; e > 0; --e) a.begins[e] = a.begins[e - 1];
  a.begins[0] = 0;
  for (int64_t i = 0; i < choices && a.counts != nullptr; ++i) ++a.counts[a.ids[i]];
}

void copy_rows(const CopyRowsArgs& a) {
  parallel_for(a.launch, a.rows, rows_per_job(a.dim), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t source = a.index != nullptr ? a.index[r] : r;
      std::memcpy(a.y + r * a.y_row_stride, a.x + source * a.x_row_stride, a.dim * sizeof(float));
    }
  });
}

void add_rows(const AddRowsArgs& a) {
  parallel_for(a.launch, a.rows, rows_per_job(a.dim), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x = a.x + r * a.x_row_stride;
      float* y = a.y + a.index[r] * a.y_row_stride;
      for (int64_t c = 0; c < a.dim; ++c) y[c] = x[c] == 0 ? y[c] : y[c] + x[c];
    }
  });
}

void copy_units(const CopyUnitsArgs& a) {
  parallel_for(a.launch, a.pool_count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t pool = begin; pool < end; ++pool) {
      for (int64_t i = 0; i < a.copy_count; ++i) {
        if (a.copies[i].unit_class == a.pools[pool].unit_class) {
          copy_unit(a.pools[pool], a.copies[i]);
        }
      }
    }
  });
}

}  // namespace banyan::portable
