#include "ops/ranks.h"

#include <vector>

#include "base/check.h"
#include "base/signed.h"
#include "ops/linear.h"

namespace banyan {
namespace {

// [ranks, T, columns of each]: the data of all ranks, concatenated. `sizes` in floats per rank.
float* gather_all(Step& s, Tensor x, std::span<const int64_t> sizes) {
  int64_t total = 0, begin = 0;
  for (size_t r = 0; r < sizes.size(); ++r) {
    if (narrow<int>(r) == s.comm.rank().index) begin = total;
    total += sizes[r];
  }
  auto* all = s.arena.allocate_array<float>(total);
  s.copy(x, Tensor(all + begin, DType::kF32, {x.dim(0), x.dim(1)}));
  s.comm.all_gather(sizes, all);
  return all;
}

// Rows by rank, in the order of their ids.
struct OwnedIds {
  int32_t* places = nullptr;  // place of each id's row
  int32_t* own = nullptr;     // rows of this rank's table
  int64_t own_begin = 0, own_count = 0;
  std::vector<int64_t> sizes = {};  // per rank
};

void divide_ids(std::span<const int32_t> ids, int64_t unit, int64_t units, Rank rank,
                OwnedIds& owned) {
  int64_t next = 0, own_count = 0;
  for (int r = 0; r < rank.count; ++r) {
    UnitRange range = units_of(units, {r, rank.count});
    int64_t begin = next;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (!range.has(ids[i] / unit)) continue;
      owned.places[i] = narrow<int32_t>(next++);
      if (r != rank.index) continue;
      owned.own[own_count++] = static_cast<int32_t>(ids[i] - range.begin * unit);
    }
    if (r == rank.index) owned.own_begin = begin;
    owned.sizes.push_back(next - begin);
  }
  owned.own_count = own_count;
  CHECK(next == std::ssize(ids), "{} of {} ids are rows of {} units", next, ids.size(), units);
}

}  // namespace

Tensor sum_over_ranks(Step& s, Tensor x) {
  Rank rank = s.comm.rank();
  if (rank.alone()) return x;
  std::vector<int64_t> sizes = filled(rank.count, x.count());
  float* all = gather_all(s, x, sizes);
  int64_t size = x.count();
  // A rank without a partner moves up to the next level of the tree.
  for (int64_t width = 1; width < rank.count; width *= 2) {
    for (int64_t r = 0; r + width < rank.count; r += 2 * width) {
      float* sum = all + r * size;
      s.kernels.add(
          {.launch = s.launch, .a = sum, .b = sum + width * size, .y = sum, .count = size});
    }
  }
  return Tensor(all, DType::kF32, {x.dim(0), x.dim(1)});
}

Tensor gather_columns(Step& s, Tensor x, int64_t units) {
  Rank rank = s.comm.rank();
  if (rank.alone()) return x;
  int64_t rows = x.dim(0), width = x.dim(1) / units_of(units, rank).count;
  std::vector<int64_t> sizes;
  for (int r = 0; r < rank.count; ++r) {
    sizes.push_back(rows * width * units_of(units, {r, rank.count}).count);
  }
  Tensor y = s.allocate({rows, width * units});
  float* from = gather_all(s, x, sizes);
  for (int r = 0; r < rank.count; ++r) {
    UnitRange own = units_of(units, {r, rank.count});
    int64_t columns = own.count * width;
    s.copy(Tensor(from, DType::kF32, {rows, columns}), y.columns(own.begin * width, columns));
    from += rows * columns;
  }
  return y;
}

Tensor gather_rows_of_ranks(Step& s, const PackedMatrix& table, std::span<const int32_t> ids,
                            int64_t rows, int64_t units) {
  auto count = std::ssize(ids);
  OwnedIds owned{.places = s.arena.allocate_array<int32_t>(count),
                 .own = s.arena.allocate_array<int32_t>(count),
                 .own_count = count};  // upper bound
  if (s.comm.exchanges()) divide_ids(ids, rows / units, units, s.comm.rank(), owned);
  Tensor all = s.allocate({count, table.columns});
  if (owned.own_count > 0) {
    s.copy(gather_rows(s, table, owned.own, owned.own_count),
           all.rows(owned.own_begin, owned.own_count));
  }
  for (int64_t& size : owned.sizes) size *= table.columns;
  s.comm.all_gather(owned.sizes, all.f32());
  return select_rows(s, all, owned.places, count);
}

}  // namespace banyan
