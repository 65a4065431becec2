#include "ops/latent_attention.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.h"
#include "base/divide.h"
#include "base/signed.h"
#include "ops/linear.h"

namespace banyan {
namespace {

// Writes the heads of x, `dim` columns at every `x_stride`, to y, rotated.
void rotate_into(Step& s, Tensor x, int64_t x_stride, Tensor y, int64_t y_stride, int64_t heads,
                 int64_t dim, const Rotation& rotation, RopeLayout layout) {
  if (dim == 0) return;
  bool rotates = !rotation.cos.empty();
  CHECK(!rotates || rotation.cos.dim(1) * 2 <= dim, "{} pairs of {}", rotation.cos.dim(1), dim);
  s.kernels.rope({.launch = s.launch,
                  .x = x.f32(),
                  .x_row_stride = x.stride(0),
                  .x_head_stride = x_stride,
                  .cos = rotates ? rotation.cos.f32() : nullptr,
                  .sin = rotates ? rotation.sin.f32() : nullptr,
                  .y = y.f32(),
                  .y_row_stride = y.stride(0),
                  .y_head_stride = y_stride,
                  .rows = x.dim(0),
                  .heads = heads,
                  .head_dim = dim,
                  .pairs = rotates ? rotation.cos.dim(1) : 0,
                  .layout = layout});
}

// Calls body(first, count) for the rows of the spans, merged into as few runs as possible.
template <class Body>
void for_runs(std::span<const SpanArgs> spans, const Body& body) {
  for (size_t i = 0; i < spans.size();) {
    int64_t first = spans[i].row_begin, end = first;
    for (; i < spans.size() && spans[i].row_begin == end; ++i) end += spans[i].row_count;
    body(first, end - first);
  }
}

Rotation rows_of(const Rotation& rotation, int64_t first, int64_t count) {
  if (rotation.cos.empty()) return {};
  return {rotation.cos.rows(first, count), rotation.sin.rows(first, count)};
}

// Multiplies segment h of x (the only one if x_stride is 0) with matrix h of `weights`, into
// columns of y that are `y_stride` apart.
void multiply_heads(Step& s, Tensor x, int64_t x_stride, const PackedMatrix& weights, Tensor y,
                    int64_t y_stride) {
  multiply_group(s, x, weights,
                 {.segments = x_stride == 0 ? 1 : weights.count,
                  .segment_stride = x_stride,
                  .y_column_stride = y_stride},
                 y);
}

// Page size of the expanded keys and values that exist at a time.
constexpr int64_t kExpandedPage = 64;
constexpr int64_t kExpandedPages = kAttentionBlock / kExpandedPage;

// The next block of keys of one or several spans, as many as fit.
struct ExpansionRound {
  int64_t count = 0;  // number of spans
  int64_t keys = 0, pages = 0;
  SpanArgs latents[kExpandedPages];   // key rows, consecutive, in the state's pages
  SpanArgs pages_of[kExpandedPages];  // the same rows, in the expanded pages
  SpanArgs queries[kExpandedPages];   // query rows that attend to them, in the expanded pages
  KeyBlock blocks[kExpandedPages];
};

// Iterates over the blocks of keys that spans attend to, in ascending order per span.
class ExpansionRounds {
 public:
  explicit ExpansionRounds(std::span<const SpanArgs> spans) : left_(spans) {}

  bool next(ExpansionRound& round) {
    round.count = round.keys = round.pages = 0;
    while (!left_.empty()) {
      int64_t end = left_[0].first_position + left_[0].row_count;
      int64_t keys = std::min(end - begin_, kAttentionBlock);
      int64_t pages = divide_up(keys, kExpandedPage);
      if (round.pages + pages > kExpandedPages) break;
      add(left_[0], keys, round);
      round.pages += pages;
      begin_ += keys;
      if (begin_ < end) continue;
      left_ = left_.subspan(1);
      begin_ = 0;
    }
    return round.count > 0;
  }

 private:
  void add(const SpanArgs& span, int64_t keys, ExpansionRound& round) const {
    auto i = round.count++;
    auto begin = narrow<int32_t>(begin_), count = narrow<int32_t>(keys);
    // Position `begin` is at the start of an expanded page.
    auto page = narrow<int32_t>(round.pages - begin_ / kExpandedPage);
    round.latents[i] = {narrow<int32_t>(round.keys), count, begin, span.page_begin};
    round.pages_of[i] = {narrow<int32_t>(round.keys), count, begin, page};
    round.queries[i] = span;
    round.queries[i].page_begin = page;
    round.blocks[i] = {begin, begin + count};
    round.keys += keys;
  }

  std::span<const SpanArgs> left_;
  int64_t begin_ = 0;  // start of the next block of left_[0]
};

constexpr std::array<int32_t, kExpandedPages> kExpandedTable = [] {
  std::array<int32_t, kExpandedPages> table = {};
  std::iota(table.begin(), table.end(), 0);
  return table;
}();

// The arrays of a round in memory that kernels can read.
struct RoundInputs {
  RoundInputs(Step& s, const ExpansionRound& round)
      : latents(copy(s, round.latents, round.count)),
        pages_of(copy(s, round.pages_of, round.count)),
        queries(copy(s, round.queries, round.count)),
        blocks(copy(s, round.blocks, round.count)) {}

  template <class T>
  static const T* copy(Step& s, const T* array, int64_t count) {
    T* to = s.arena.allocate_array<T>(kExpandedPages);  // of any round, as memory is planned by one
    s.kernels.device->upload(s.launch.queue, to, array, as_size(count) * sizeof(T));
    return to;
  }

  const SpanArgs *latents, *pages_of, *queries;
  const KeyBlock* blocks;
};

// The keys and values of a round, in pages of the state's own type, or of the weights' that make
// them where that is quantised.
class ExpandedPages {
 public:
  ExpandedPages(Step& s, StateId latents, const LatentExpansion& expansion,
                const LatentShape& shape)
      : s_(s),
        state_(latents),
        expansion_(expansion),
        shape_(shape),
        spec_(s.pools.spec(latents)),
        dtype_(is_quantised_state(spec_.dtype) ? expansion.keys.format->element : spec_.dtype) {
    keys_ = allocate(shape.query_dim());
    values_ = allocate(shape.value_dim);
    table_ = s.upload(std::span<const int32_t>(kExpandedTable));
  }

  void fill(const ExpansionRound& round, const RoundInputs& inputs) {
    size_t mark = s_.arena.mark();
    Tensor x = s_.allocate({kAttentionBlock, shape_.width()}).rows(0, round.keys);
    s_.kernels.page_read({.launch = s_.launch,
                          .pool = s_.pools.pool(state_),
                          .pool_dtype = spec_.dtype,
                          .x = x.f32(),
                          .x_row_stride = x.stride(0),
                          .heads = 1,
                          .width = shape_.width(),
                          .page_size = s_.pools.page_size_tokens(),
                          .split = spec_.split,
                          .spans = inputs.latents,
                          .span_count = round.count,
                          .page_table = s_.table_inputs(state_).units});
    size_t mark_expanded = s_.arena.mark();
    int64_t width = shape_.query_dim();
    Tensor k = expand(x, expansion_.keys, width);
    // The rotated columns are the same for all heads.
    rotate_into(s_, x.columns(shape_.rank, shape_.rope_dim), 0,
                k.columns(shape_.nope_dim, k.dim(1) - shape_.nope_dim), width, shape_.heads,
                shape_.rope_dim, {}, shape_.layout);
    write(round, inputs, k, width, keys_);
    s_.arena.rewind(mark_expanded);
    Tensor v = expand(x, expansion_.values, shape_.value_dim);
    write(round, inputs, v, shape_.value_dim, values_);
    s_.arena.rewind(mark);
  }

  void attend(const ExpansionRound& round, const RoundInputs& inputs, Tensor q, Tensor max,
              Tensor weight, Tensor out) {
    s_.kernels.attention({.launch = s_.launch,
                          .q = q.f32(),
                          .q_row_stride = q.stride(0),
                          .k_pool = keys_,
                          .v_pool = values_,
                          .pool_dtype = dtype_,
                          .out = out.f32(),
                          .q_heads = shape_.heads,
                          .kv_heads = shape_.heads,
                          .head_dim = shape_.query_dim(),
                          .value_dim = shape_.value_dim,
                          .page_size = kExpandedPage,
                          .scale = shape_.scale,
                          .spans = inputs.queries,
                          .span_count = round.count,
                          .page_table = table_,
                          .blocks = inputs.blocks,
                          .max = max.f32(),
                          .weight = weight.f32()});
  }

 private:
  void* allocate(int64_t width) {
    int64_t elements = kAttentionBlock * shape_.heads * width;
    return s_.arena.allocate(as_size(elements) * dtype_bytes(dtype_));
  }
  // x (latents) times the weights of each head, `width` columns apart.
  Tensor expand(Tensor x, const PackedMatrix& weights, int64_t width) {
    Tensor y = s_.allocate({kAttentionBlock, shape_.heads * width}).rows(0, x.dim(0));
    multiply_heads(s_, x.columns(0, shape_.rank), 0, weights, y, width);
    return y;
  }
  void write(const ExpansionRound& round, const RoundInputs& inputs, Tensor x, int64_t width,
             void* pages) {
    s_.kernels.page_write({.launch = s_.launch,
                           .x = x.f32(),
                           .x_row_stride = x.stride(0),
                           .pool = pages,
                           .pool_dtype = dtype_,
                           .heads = shape_.heads,
                           .width = width,
                           .page_size = kExpandedPage,
                           .spans = inputs.pages_of,
                           .span_count = round.count,
                           .page_table = table_});
  }

  Step& s_;
  StateId state_;
  const LatentExpansion& expansion_;
  const LatentShape& shape_;
  const StateSpec& spec_;
  DType dtype_;
  void* keys_;    // [pages, heads, page_size, nope_dim + rope_dim]
  void* values_;  // [pages, heads, page_size, value_dim]
  const int32_t* table_;
};

void check_latents(const StateSpec& spec, const LatentShape& shape) {
  CHECK(spec.heads == 1 && spec.width == shape.width() && spec.reach == StateReach::kAll &&
            spec.tokens_per_row == 1,
        "{}: {} heads of {}", spec.name, spec.heads, spec.width);
  CHECK(spec.split == (shape.rope_dim > 0 ? shape.rank : 0), "{}: split at {}", spec.name,
        spec.split);
}

}  // namespace

void place_latents(Step& s, Tensor x, Tensor norm, float eps, const Rotation& rotation,
                   const LatentShape& shape, StateId latents) {
  const StateSpec& spec = s.pools.spec(latents);
  check_latents(spec, shape);
  x.check_matrix(shape.width());
  CHECK(norm.count() == shape.rank, "a norm of {} columns", norm.count());
  bool rotates = shape.rope_dim > 0 && !rotation.cos.empty();
  int64_t pairs = rotates ? rotation.cos.dim(1) : 0;
  CHECK(pairs * 2 <= shape.rope_dim, "{} pairs of {}", pairs, shape.rope_dim);
  s.kernels.place_heads({.launch = s.launch,
                         .k = x.f32(),
                         .k_row_stride = x.stride(0),
                         .rows = x.dim(0),
                         .kv_heads = 1,
                         .head_dim = shape.width(),
                         .split = spec.split,
                         .k_weight = norm.f32(),
                         .cos = rotates ? rotation.cos.f32() : nullptr,
                         .sin = rotates ? rotation.sin.f32() : nullptr,
                         .pairs = pairs,
                         .eps = eps,
                         .layout = shape.layout,
                         .kv_room = s.allocate({x.dim(0), shape.width()}).f32(),
                         .k_pool = s.pools.pool(latents),
                         .pool_dtype = spec.dtype,
                         .page_size = s.pools.page_size_tokens(),
                         .spans = s.inputs.stored.device,
                         .span_count = s.inputs.stored.count(),
                         .page_table = s.table_inputs(latents).units});
}

Tensor latent_queries(Step& s, Tensor q, const PackedMatrix& keys, const Rotation& rotation,
                      const LatentShape& shape, const SpanList& spans) {
  q.check_matrix(shape.heads * shape.query_dim());
  CHECK(keys.count == shape.heads && keys.rows == shape.rank && keys.columns == shape.nope_dim);
  Tensor y = s.allocate({q.dim(0), shape.heads * shape.width()});
  for_runs(spans.host, [&](int64_t first, int64_t count) {
    Tensor from = q.rows(first, count), to = y.rows(first, count);
    // First, so that a GPU may do it while it rounds what is multiplied.
    rotate_into(s, from.columns(shape.nope_dim, q.dim(1) - shape.nope_dim), shape.query_dim(),
                to.columns(shape.rank, y.dim(1) - shape.rank), shape.width(), shape.heads,
                shape.rope_dim, rows_of(rotation, first, count), shape.layout);
    multiply_heads(s, from, shape.query_dim(), keys, to, shape.width());
  });
  return y;
}

Tensor latent_attention(Step& s, Tensor q, StateId latents, const LatentShape& shape,
                        const SpanList& spans, const SelectedKeys& selected) {
  q.check_matrix(shape.heads * shape.width());
  const StateSpec& spec = s.pools.spec(latents);
  check_latents(spec, shape);
  Tensor out = s.allocate({q.dim(0), shape.heads * shape.rank});
  s.kernels.latent_attention({.launch = s.launch,
                              .q = q.f32(),
                              .q_row_stride = q.stride(0),
                              .rows = spans.rows(),
                              .pool = s.pools.pool(latents),
                              .pool_dtype = spec.dtype,
                              .out = out.f32(),
                              .heads = shape.heads,
                              .width = shape.width(),
                              .rank = shape.rank,
                              .page_size = s.pools.page_size_tokens(),
                              .scale = shape.scale,
                              .spans = spans.device,
                              .span_count = spans.count(),
                              .page_table = s.table_inputs(latents).units,
                              .selected = selected});
  return out;
}

void latent_values(Step& s, Tensor x, const PackedMatrix& values, const LatentShape& shape,
                   const SpanList& spans, Tensor out) {
  x.check_matrix(shape.heads * shape.rank);
  out.check_matrix(shape.heads * shape.value_dim);
  CHECK(values.count == shape.heads && values.rows == shape.value_dim &&
        values.columns == shape.rank);
  for_runs(spans.host, [&](int64_t first, int64_t count) {
    multiply_heads(s, x.rows(first, count), shape.rank, values, out.rows(first, count),
                   shape.value_dim);
  });
}

Tensor expanded_queries(Step& s, Tensor q, const Rotation& rotation, const LatentShape& shape,
                        const SpanList& spans) {
  int64_t width = shape.query_dim();
  q.check_matrix(shape.heads * width);
  Tensor y = s.allocate({q.dim(0), q.dim(1)});
  for_runs(spans.host, [&](int64_t first, int64_t count) {
    Tensor from = q.rows(first, count), to = y.rows(first, count);
    rotate_into(s, from, width, to, width, shape.heads, shape.nope_dim, {}, shape.layout);
    int64_t columns = q.dim(1) - shape.nope_dim;
    rotate_into(s, from.columns(shape.nope_dim, columns), width,
                to.columns(shape.nope_dim, columns), width, shape.heads, shape.rope_dim,
                rows_of(rotation, first, count), shape.layout);
  });
  return y;
}

void expanded_attention(Step& s, Tensor q, StateId latents, const LatentExpansion& expansion,
                        const LatentShape& shape, const SpanList& spans, Tensor out) {
  q.check_matrix(shape.heads * shape.query_dim());
  out.check_matrix(shape.heads * shape.value_dim);
  CHECK(expansion.keys.count == shape.heads && expansion.keys.rows == shape.nope_dim &&
        expansion.keys.columns == shape.rank && expansion.values.count == shape.heads &&
        expansion.values.rows == shape.value_dim && expansion.values.columns == shape.rank);
  check_latents(s.pools.spec(latents), shape);
  Tensor max = s.allocate({q.dim(0), shape.heads}), weight = s.allocate({q.dim(0), shape.heads});
  ExpandedPages pages(s, latents, expansion, shape);
  ExpansionRound round;
  for (ExpansionRounds rounds(spans.host); rounds.next(round);) {
    size_t mark = s.arena.mark();
    RoundInputs inputs(s, round);
    pages.fill(round, inputs);
    pages.attend(round, inputs, q, max, weight, out);
    s.arena.rewind(mark);
  }
}

}  // namespace banyan
