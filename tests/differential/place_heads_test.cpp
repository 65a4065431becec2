// place_heads in every table: the bits of its norms, rotation and page writes one after another.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "differential/emulated_table.h"
#include "differential/kernels.h"

namespace banyan::test::place_heads_test {
namespace {

enum class Norms : uint8_t { kNone, kBefore, kAfter };

struct Case {
  int64_t head_dim = 128, pairs = 64;
  Norms norms = Norms::kBefore;
  RopeLayout layout = RopeLayout::kHalves;
  bool value_norm = false, value_is_key = false;
  bool queries = true, keys = true;
  DType dtype = DType::kBF16;
  int64_t shift = 0;  // columns by which rows begin later than fours do
  int64_t split = 0;  // not 0: latents, which are one head of keys

  std::string text() const {
    return fmt::format(
        "{} columns, {} pairs {}, norms {}, values {} {}, {} {}, {}, shift {}, split {}", head_dim,
        pairs, int(layout), int(norms), value_norm, value_is_key, queries, keys, dtype_name(dtype),
        shift, split);
  }
  int64_t kv_heads() const { return split > 0 ? 1 : 2; }
};

constexpr int64_t kQHeads = 6, kPageSize = 4, kPages = 8;

// Two sequences, one of them in two spans; the last row is stored twice.
const std::vector<SpanArgs> kSpans = {
    {.row_begin = 0, .row_count = 5, .first_position = 2, .page_begin = 0},
    {.row_begin = 5, .row_count = 1, .first_position = 7, .page_begin = 0},
    {.row_begin = 6, .row_count = 3, .first_position = 0, .page_begin = 2},
    {.row_begin = 8, .row_count = 1, .first_position = 2, .page_begin = 3}};
const std::vector<int32_t> kTable = {5, 0, 7, 3};
constexpr int64_t kRows = 9;

// The inputs of a case, and what a table makes of them.
struct Placed {
  Placed(const Case& c, uint64_t seed) : c(c), stride((kQHeads + 2 * c.kv_heads()) * c.head_dim) {
    Random random(seed);
    qkv = random.normals(kRows * (stride + c.shift) + c.shift, 3);
    cos = random.normals(kRows * c.pairs);
    sin = random.normals(kRows * c.pairs);
    for (std::vector<float>* weight : {&q_weight, &k_weight, &v_weight}) {
      *weight = random.normals(c.head_dim + c.shift);
    }
    RowShape shape = {.width = c.head_dim, .split = c.split};
    auto pool =
        static_cast<size_t>(kPages * c.kv_heads() * kPageSize * state_row_bytes(c.dtype, shape));
    q.assign(kRows * kQHeads * c.head_dim, -7);
    room.assign(kRows * c.kv_heads() * c.head_dim, NAN);
    for (std::vector<float>* x : {&k_pool, &v_pool}) x->assign(pool / sizeof(float) + 1, 0.0f);
  }

  PlaceHeadsArgs args() {
    int64_t row = stride + c.shift, q_width = kQHeads * c.head_dim,
            width = c.kv_heads() * c.head_dim;
    const float* x = qkv.data() + c.shift;
    bool norms = c.norms != Norms::kNone;
    PlaceHeadsArgs a = {.rows = kRows,
                        .q_heads = kQHeads,
                        .kv_heads = c.kv_heads(),
                        .head_dim = c.head_dim,
                        .split = c.split,
                        .q_weight = norms ? q_weight.data() + c.shift : nullptr,
                        .k_weight = norms ? k_weight.data() + c.shift : nullptr,
                        .v_weight = c.value_norm ? v_weight.data() + c.shift : nullptr,
                        .cos = cos.data(),
                        .sin = sin.data(),
                        .pairs = c.pairs,
                        .eps = 1e-5f,
                        .layout = c.layout,
                        .norm_after_rope = c.norms == Norms::kAfter,
                        .q_out = q.data(),
                        .kv_room = room.data(),
                        .k_pool = k_pool.data(),
                        .v_pool = v_pool.data(),
                        .pool_dtype = c.dtype,
                        .page_size = kPageSize,
                        .spans = kSpans.data(),
                        .span_count = std::ssize(kSpans),
                        .page_table = kTable.data()};
    if (c.queries && c.split == 0) a.q = x;
    if (c.keys) a.k = x + q_width;
    if (c.keys && c.split == 0) a.v = c.value_is_key ? a.k : x + q_width + width;
    a.q_row_stride = a.k_row_stride = a.v_row_stride = row;
    return a;
  }

  bool operator==(const Placed& other) const {
    return same_bits(q, other.q) && same_bits(k_pool, other.k_pool) &&
           same_bits(v_pool, other.v_pool);
  }

  Case c;
  int64_t stride;
  std::vector<float> qkv, cos, sin, q_weight, k_weight, v_weight;
  std::vector<float> q, room, k_pool, v_pool;
};

// Heads, normed and rotated by the other kernels of a table.
std::vector<float> changed(const KernelTable& table, const PlaceHeadsArgs& a, const float* x,
                           int64_t heads, const float* weight, int64_t pairs) {
  int64_t width = heads * a.head_dim;
  std::vector<float> y(kRows * width);
  table.copy_rows({.x = x,
                   .x_row_stride = a.q_row_stride,
                   .y = y.data(),
                   .y_row_stride = width,
                   .rows = kRows,
                   .dim = width});
  auto norm = [&] {
    std::vector<float> from = y;
    table.rms_norm({.x = from.data(),
                    .x_row_stride = width,
                    .weight = weight,
                    .y = y.data(),
                    .y_row_stride = width,
                    .rows = kRows,
                    .groups = heads,
                    .dim = a.normed_columns(),
                    .eps = a.eps});
  };
  if (weight != nullptr && !a.norm_after_rope) norm();
  std::vector<float> from = y;
  table.rope({.x = from.data() + a.split,
              .x_row_stride = width,
              .x_head_stride = a.head_dim,
              .cos = a.cos,
              .sin = a.sin,
              .y = y.data() + a.split,
              .y_row_stride = width,
              .y_head_stride = a.head_dim,
              .rows = kRows,
              .heads = heads,
              .head_dim = a.head_dim - a.split,
              .pairs = pairs,
              .layout = a.layout});
  if (weight != nullptr && a.norm_after_rope) norm();
  return y;
}

void place_apart(const KernelTable& table, Placed& to) {
  PlaceHeadsArgs a = to.args();
  auto write = [&](const std::vector<float>& x, void* pool) {
    table.page_write({.x = x.data(),
                      .x_row_stride = a.kv_heads * a.head_dim,
                      .pool = pool,
                      .pool_dtype = a.pool_dtype,
                      .heads = a.kv_heads,
                      .width = a.head_dim,
                      .page_size = a.page_size,
                      .split = a.split,
                      .spans = a.spans,
                      .span_count = a.span_count,
                      .page_table = a.page_table});
  };
  if (a.q != nullptr) to.q = changed(table, a, a.q, kQHeads, a.q_weight, a.pairs);
  if (a.k == nullptr) return;
  write(changed(table, a, a.k, a.kv_heads, a.k_weight, a.pairs), a.k_pool);
  if (a.v != nullptr) write(changed(table, a, a.v, a.kv_heads, a.v_weight, 0), a.v_pool);
}

void expect_same(const Case& c, uint64_t seed) {
  for (const KernelTable* table : tables_and_emulated()) {
    Placed together(c, seed), apart(c, seed);
    ThreadPool threads(2);
    PlaceHeadsArgs args = together.args();
    args.launch.threads = &threads;
    table->place_heads(args);
    place_apart(*table, apart);
    EXPECT_TRUE(together == apart) << table->name << ": " << c.text();
  }
}

TEST(PlaceHeads, OfEveryKindOfLayer) {
  uint64_t seed = 1;
  for (DType dtype : kPageTypes) {
    expect_same({.dtype = dtype}, seed++);
    expect_same({.norms = Norms::kAfter, .dtype = dtype}, seed++);
    expect_same({.norms = Norms::kNone, .dtype = dtype}, seed++);
    expect_same({.head_dim = 64, .pairs = 8, .value_norm = true, .dtype = dtype}, seed++);
    expect_same({.layout = RopeLayout::kInterleaved, .value_is_key = true, .dtype = dtype}, seed++);
    expect_same({.pairs = 0, .value_norm = true, .dtype = dtype}, seed++);
    expect_same({.keys = false, .dtype = dtype}, seed++);
    expect_same({.pairs = 0, .norms = Norms::kNone, .queries = false, .dtype = dtype}, seed++);
  }
}

// Columns that no vector has, heads that a warp does not have, and rows that do not lie in fours.
TEST(PlaceHeads, OfEveryWidth) {
  uint64_t seed = 100;
  for (DType dtype : kPageTypes) {
    for (auto [head_dim, pairs] : {std::pair{7, 3}, {20, 10}, {80, 20}, {132, 1}, {512, 256}}) {
      expect_same({.head_dim = head_dim, .pairs = pairs, .dtype = dtype}, seed++);
      expect_same({.head_dim = head_dim, .pairs = pairs, .dtype = dtype, .shift = 1}, seed++);
    }
    expect_same({.head_dim = 520, .pairs = 260, .value_norm = true, .dtype = dtype}, seed++);
  }
}

// With what turns or without, in fours or not, and with norms that a warp does not have.
TEST(PlaceHeads, OfLatents) {
  uint64_t seed = 200;
  for (DType dtype : kPageTypes) {
    for (auto [split, rest] : {std::pair{512, 64}, {30, 10}, {5, 2}, {520, 64}}) {
      Case c = {.head_dim = split + rest, .pairs = rest / 2, .dtype = dtype, .split = split};
      expect_same(c, seed++);
      c.layout = RopeLayout::kInterleaved;
      c.shift = 1;
      expect_same(c, seed++);
      c.pairs = 0;
      expect_same(c, seed++);
    }
  }
}

// A row does not depend on what else is in the batch.
TEST(PlaceHeads, ARowHasTheSameBitsAlone) {
  for (const KernelTable* table : tables_and_emulated()) {
    Case c = {.norms = Norms::kAfter, .dtype = DType::kI8};
    Placed all(c, 7), alone(c, 7);
    table->place_heads(all.args());
    for (int32_t row = 0; row < kRows; ++row) {
      PlaceHeadsArgs a = alone.args();
      a.rows = 1;
      for (const float** x : {&a.q, &a.k, &a.v}) *x += row * a.q_row_stride;
      a.q_out += row * kQHeads * c.head_dim;
      a.cos += row * c.pairs;
      a.sin += row * c.pairs;
      std::vector<SpanArgs> spans;
      for (SpanArgs span : kSpans) {
        if (row < span.row_begin || row >= span.row_begin + span.row_count) continue;
        span.first_position += row - span.row_begin;
        span.row_begin = 0;
        span.row_count = 1;
        spans.push_back(span);
      }
      a.spans = spans.data();
      a.span_count = std::ssize(spans);
      table->place_heads(a);
    }
    EXPECT_TRUE(all == alone) << table->name;
  }
}

}  // namespace
}  // namespace banyan::test::place_heads_test
