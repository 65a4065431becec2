#include "ops/attention.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

// Launches attention over pieces of the step's spans, a batch of pieces at a time.
class PieceLaunches {
 public:
  PieceLaunches(Step& s, const AttentionArgs& args)
      : step_(s), args_(args), device_(s.arena.allocate_array<SpanArgs>(kPiecesMax)) {}

  void add(const SpanArgs& piece, int64_t window) {
    if (count_ == kPiecesMax || window != args_.window) launch();
    args_.window = window;
    pieces_[count_++] = piece;
  }
  void launch() {
    if (count_ == 0) return;
    step_.kernels.device->upload(step_.launch.queue, device_, pieces_.data(),
                                 count_ * sizeof(SpanArgs));
    SpanList pieces = {std::span(pieces_.data(), count_), device_};
    args_.spans = pieces.device;
    args_.span_count = pieces.count();
    args_.rows = pieces.rows();
    step_.kernels.attention(args_);
    count_ = 0;
  }

 private:
  static constexpr size_t kPiecesMax = 64;

  Step& step_;
  AttentionArgs args_;
  SpanArgs* device_;
  std::array<SpanArgs, kPiecesMax> pieces_ = {};
  size_t count_ = 0;
};

// Attention within chunks of `chunk_tokens` positions. A chunk that starts on a page boundary is
// treated as a sequence of its own. If chunks start inside pages, each row gets a window that ends
// at the start of its chunk.
void attend_in_chunks(Step& s, const AttentionArgs& args, int64_t chunk_tokens) {
  auto chunk = narrow<int32_t>(chunk_tokens), page = narrow<int32_t>(args.page_size);
  bool whole_pages = chunk % page == 0;
  PieceLaunches launches(s, args);
  for (SpanArgs rest : s.inputs.spans.host) {
    while (rest.row_count > 0) {
      int32_t inside = rest.first_position % chunk;
      SpanArgs piece = rest;
      piece.row_count = whole_pages ? std::min(rest.row_count, chunk - inside) : 1;
      if (whole_pages) {
        piece.first_position = inside;
        piece.page_begin += (rest.first_position - inside) / page;
      }
      launches.add(piece, whole_pages ? 0 : inside + 1);
      rest.row_begin += piece.row_count;
      rest.first_position += piece.row_count;
      rest.row_count -= piece.row_count;
    }
  }
  launches.launch();
}

// Adds keys and values, and the states that take them.
void store_heads(Step& s, const Heads& heads, StateId keys, StateId values, PlaceHeadsArgs& args) {
  const StateSpec &k = s.pools.spec(keys), &v = s.pools.spec(values);
  for (const StateSpec* spec : {&k, &v}) {
    CHECK(spec->heads == k.heads && spec->width == args.head_dim && spec->dtype == k.dtype &&
              spec->split == 0 && spec->tokens_per_row == 1,
          "{}: {} heads of {}", spec->name, spec->heads, spec->width);
  }
  CHECK(s.pools.class_of(keys) == s.pools.class_of(values), "{}, {}", k.name, v.name);
  heads.k.check_matrix(k.heads * k.width);
  heads.v.check_matrix(k.heads * k.width);
  args.k = heads.k.f32();
  args.v = heads.v.f32();
  args.k_row_stride = heads.k.stride(0);
  args.v_row_stride = heads.v.stride(0);
  args.kv_heads = k.heads;
  args.kv_room = s.allocate({args.rows, k.heads * k.width}).f32();
  args.k_pool = s.pools.pool(keys);
  args.v_pool = s.pools.pool(values);
  args.pool_dtype = k.dtype;
  args.page_size = s.pools.page_size_tokens();
  args.spans = s.inputs.stored.device;
  args.span_count = s.inputs.stored.count();
  args.page_table = s.table_inputs(keys).units;
}

}  // namespace

void write_pages(Step& s, Tensor x, StateId state) {
  const StateSpec& spec = s.pools.spec(state);
  x.check_matrix(spec.heads * spec.width);
  CHECK(spec.tokens_per_row == 1, "{}: {} tokens a row", spec.name, spec.tokens_per_row);
  s.kernels.page_write({.launch = s.launch,
                        .x = x.f32(),
                        .x_row_stride = x.stride(0),
                        .pool = s.pools.pool(state),
                        .pool_dtype = spec.dtype,
                        .heads = spec.heads,
                        .width = spec.width,
                        .page_size = s.pools.page_size_tokens(),
                        .split = spec.split,
                        .spans = s.inputs.stored.device,
                        .span_count = s.inputs.stored.count(),
                        .page_table = s.table_inputs(state).units});
}

Tensor place_heads(Step& s, const Heads& heads, const HeadForm& form, const Rotation& rotation,
                   StateId keys, StateId values) {
  int64_t rows = heads.q.dim(0), pairs = form.rotary ? rotation.cos.dim(1) : 0;
  CHECK(heads.q.dim(1) % form.head_dim == 0 && 2 * pairs <= form.head_dim,
        "{} columns in heads of {}", heads.q.dim(1), form.head_dim);
  auto weight = [&](const Tensor& w) {
    CHECK(w.empty() || w.count() == form.head_dim, "{} weights", w.count());
    return w.empty() ? nullptr : w.f32();
  };
  PlaceHeadsArgs args = {.launch = s.launch,
                         .rows = rows,
                         .q_heads = heads.q.dim(1) / form.head_dim,
                         .head_dim = form.head_dim,
                         .q_weight = weight(form.q_weight),
                         .k_weight = weight(form.k_weight),
                         .v_weight = weight(form.v_weight),
                         .pairs = pairs,
                         .eps = form.eps,
                         .layout = form.layout,
                         .norm_after_rope = form.norm_after_rope};
  if (pairs > 0) {
    args.cos = rotation.cos.f32();
    args.sin = rotation.sin.f32();
  }
  Tensor q = heads.q;
  if (args.q_weight != nullptr || pairs > 0) {
    q = s.allocate({rows, q.dim(1)});
    args.q = heads.q.f32();
    args.q_row_stride = heads.q.stride(0);
    args.q_out = q.f32();
  }
  if (!heads.k.empty()) store_heads(s, heads, keys, values, args);
  if (args.q != nullptr || args.k != nullptr) s.kernels.place_heads(args);
  return q;
}

AttentionArgs attention_args(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape,
                             Tensor out) {
  q.check_matrix(shape.q_heads * shape.head_dim);
  const StateSpec& spec = s.pools.spec(k);
  CHECK(spec.heads == shape.kv_heads && spec.width == shape.head_dim && spec.split == 0);
  int64_t kept = std::max(shape.window_tokens, shape.chunk_tokens);
  CHECK(spec.reach != StateReach::kWindow || kept == spec.window_tokens,
        "{} keeps {} tokens, {} are looked at", spec.name, spec.window_tokens, kept);
  return {.launch = s.launch,
          .q = q.f32(),
          .q_row_stride = q.stride(0),
          .rows = s.inputs.spans.rows(),
          .k_pool = s.pools.pool(k),
          .v_pool = s.pools.pool(v),
          .pool_dtype = spec.dtype,
          .out = out.f32(),
          .q_heads = shape.q_heads,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim,
          .value_dim = shape.head_dim,
          .page_size = s.pools.page_size_tokens(),
          .scale = shape.scale,
          .window = shape.window_tokens,
          .soft_cap = shape.soft_cap,
          .sinks = shape.sinks,
          .spans = s.inputs.spans.device,
          .span_count = s.inputs.spans.count(),
          .page_table = s.table_inputs(k).units};
}

Tensor attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape) {
  Tensor out = s.allocate({q.dim(0), q.dim(1)});
  AttentionArgs args = attention_args(s, q, k, v, shape, out);
  if (shape.chunk_tokens > 0) {
    attend_in_chunks(s, args, shape.chunk_tokens);
  } else {
    s.kernels.attention(args);
  }
  return out;
}

}  // namespace banyan
