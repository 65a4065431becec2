#include "nn/mla_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

LatentShape shape_of(Builder b, const MlaConfig& c) {
  CHECK(c.heads > 0 && c.rank > 0 && c.nope_dim > 0 && c.value_dim > 0 && c.rope_dim % 2 == 0,
        "{} heads, rank {}, {} + {} elements, values of {}", c.heads, c.rank, c.nope_dim,
        c.rope_dim, c.value_dim);
  double query_dim = c.nope_dim + c.rope_dim;
  return {.heads = b.part(c.heads).count,
          .rank = c.rank,
          .nope_dim = c.nope_dim,
          .rope_dim = c.rope_dim,
          .value_dim = c.value_dim,
          .scale = static_cast<float>(c.query_factor * c.score_factor / std::sqrt(query_dim)),
          .layout = c.layout};
}

Linear input_of(Builder b, const MlaConfig& c) {
  int64_t queries = c.query_rank > 0 ? c.query_rank : c.heads * (c.nope_dim + c.rope_dim);
  Shard shard = c.query_rank > 0 ? Shard() : Shard::rows(c.heads);
  return Linear(b,
                {{c.query_rank > 0 ? "q_a_proj" : "q_proj", queries, shard, c.query_rank > 0},
                 {"kv_a_proj_with_mqa", c.rank + c.rope_dim}},
                c.hidden, c.bias);
}

// The rotated columns have a scale of their own: they are not normalised, so their magnitude may
// differ greatly from that of the columns before them.
int64_t split_of(const MlaConfig& c) {
  return c.rope_dim > 0 ? c.rank : 0;
}

Tensor latent_norm_of(Builder b, const MlaConfig& c) {
  std::vector<float> weights = (b / "kv_a_layernorm").host_values("weight", {c.rank}, 1);
  for (float& weight : weights) weight = weight * c.latent_factor;
  return b.constant({c.rank}, weights);
}

}  // namespace

MlaAttention::MlaAttention(Builder b, const MlaConfig& c)
    : shape_(shape_of(b, c)),
      rotary_(c.rotary),
      eps_(c.eps),
      query_scale_(c.query_scale),
      input_(input_of(b, c)),
      latent_norm_(latent_norm_of(b, c)),
      output_(b, {{c.output_name, c.hidden, Shard::columns(c.heads)}}, c.heads * c.value_dim,
              c.bias),
      latents_(b.state({.name = "latents",
                        .dtype = b.page_dtype(),
                        .width = shape_.width(),
                        .split = split_of(c),
                        .two_forms = c.expanded_prefill})) {
  using Parts = std::initializer_list<MatrixPart>;
  Shard shard = Shard::rows(c.heads);
  if (c.query_rank > 0) {
    query_norm_.emplace(b / "q_a_layernorm", c.query_rank, c.eps);
    query_.emplace(b, Parts{{"q_b_proj", c.heads * shape_.query_dim(), shard}}, c.query_rank,
                   false);
  }
  if (c.gate != MlaGate::kNone) {
    int64_t gates = c.heads * (c.gate == MlaGate::kHeads ? 1 : c.value_dim);
    gate_.emplace(b, Parts{{"g_proj", gates, shard}}, c.hidden, false);
  }
  if (c.index) {
    CHECK(c.query_rank > 0, "an index needs queries of low rank");
    selected_max_ = c.index->top_k;
    if (!c.index->shared) {
      index_.emplace(b / "indexer", *c.index, c.hidden, c.query_rank, c.expanded_prefill);
    }
  }
  derive(b, c);
}

// kv_b_proj [heads, nope_dim + value_dim, rank] computes keys and values from a latent. Its
// transposed part for keys projects a query to the space of latents instead.
void MlaAttention::derive(Builder b, const MlaConfig& c) {
  const std::string_view format = format_of(b.dtype())->name;
  int64_t rows = shape_.nope_dim + shape_.value_dim;
  std::vector<float> both = b.floats("kv_b_proj", c.heads * rows, shape_.rank);
  std::vector<float> keys, transposed, values;
  if (!both.empty()) transposed.reserve(as_size(shape_.heads * shape_.nope_dim * shape_.rank));
  UnitRange own = b.part(c.heads);
  for (int64_t h = own.begin; h < own.end() && !both.empty(); ++h) {
    auto head = both.begin() + h * rows * shape_.rank;
    auto middle = head + shape_.nope_dim * shape_.rank;
    for (int64_t i = 0; i < shape_.rank * shape_.nope_dim; ++i) {
      transposed.push_back(head[i % shape_.nope_dim * shape_.rank + i / shape_.nope_dim]);
    }
    if (c.expanded_prefill) keys.insert(keys.end(), head, middle);
    values.insert(values.end(), middle, head + rows * shape_.rank);
  }
  keys_ = b.derived(format, shape_.heads, shape_.rank, shape_.nope_dim, transposed);
  if (c.expanded_prefill) {
    expanded_keys_ = b.derived(format, shape_.heads, shape_.nope_dim, shape_.rank, keys);
  }
  values_ = b.derived(format, shape_.heads, shape_.value_dim, shape_.rank, values);
}

void MlaAttention::absorbed(Step& s, Tensor q, const Rotation& rotation, const SpanList& spans,
                            const SelectedKeys& selected, Tensor out) const {
  size_t mark = s.arena.mark();
  Tensor queries = latent_queries(s, q, keys_, rotation, shape_, spans);
  Tensor mixed = latent_attention(s, queries, latents_, shape_, spans, selected);
  latent_values(s, mixed, values_, shape_, spans, out);
  s.arena.rewind(mark);
}

void MlaAttention::expanded(Step& s, Tensor q, const Rotation& rotation, const SpanList& spans,
                            Tensor out) const {
  size_t mark = s.arena.mark();
  Tensor queries = expanded_queries(s, q, rotation, shape_, spans);
  expanded_attention(s, queries, latents_, {expanded_keys_, values_}, shape_, spans, out);
  s.arena.rewind(mark);
}

void MlaAttention::attend_prompt(Step& s, Tensor q, const Rotation& rotation,
                                 const SelectedKeys& selected, Tensor out) const {
  if (selected_max_ == 0) return expanded(s, q, rotation, s.inputs.prompt, out);
  std::vector<SpanArgs> dense, sparse;
  for (SpanArgs span : s.inputs.prompt.host) {
    auto count = static_cast<int32_t>(
        std::clamp<int64_t>(selected_max_ - span.first_position, 0, span.row_count));
    SpanArgs rest = {.row_begin = span.row_begin + count,
                     .row_count = span.row_count - count,
                     .first_position = span.first_position + count,
                     .page_begin = span.page_begin};
    span.row_count = count;
    if (span.row_count > 0) dense.push_back(span);
    if (rest.row_count > 0) sparse.push_back(rest);
  }
  // Reserves room for as many spans as there are rows, since the memory plan depends on rows only.
  auto list_of = [&](const std::vector<SpanArgs>& spans) {
    SpanArgs* to = s.arena.allocate_array<SpanArgs>(s.batch.rows());
    s.kernels.device->upload(s.launch.queue, to, spans.data(), spans.size() * sizeof(SpanArgs));
    return SpanList{spans, to};
  };
  size_t mark = s.arena.mark();
  if (!dense.empty()) expanded(s, q, rotation, list_of(dense), out);
  s.arena.rewind(mark);
  if (!sparse.empty()) absorbed(s, q, rotation, list_of(sparse), selected, out);
  s.arena.rewind(mark);
}

void MlaAttention::attend(Step& s, Tensor q, const Rotation& rotation, Tensor out) const {
  bool chosen = selected_max_ > 0 && chooses_keys(s, selected_max_);
  SelectedKeys selected = chosen ? s.choice.selected() : SelectedKeys{};
  if (expanded_keys_.empty()) return absorbed(s, q, rotation, s.inputs.spans, selected, out);
  if (!s.inputs.prompt.empty()) attend_prompt(s, q, rotation, selected, out);
  if (!s.inputs.decode.empty()) absorbed(s, q, rotation, s.inputs.decode, selected, out);
}

Tensor MlaAttention::operator()(Step& s, Tensor x, const Rotation& rotation) const {
  const Rotation own = rotary_ ? rotation : Rotation{};
  Tensor in = input_(s, x);
  Tensor q = in.columns(0, in.dim(1) - shape_.width());
  Tensor low;  // input of the second query projection
  if (query_) {
    low = (*query_norm_)(s, q);
    q = (*query_)(s, low);
  }
  if (query_scale_.beta != 0) q = scale(s, q, 1, query_scale_);
  Tensor latent = in.columns(in.dim(1) - shape_.width(), shape_.width());
  place_latents(s, latent, latent_norm_, eps_, own, shape_, latents_);
  if (index_) (*index_)(s, x, low, rotation);
  Tensor out = s.allocate({x.dim(0), shape_.heads * shape_.value_dim});
  attend(s, q, own, out);
  if (gate_) out = gate_mul(s, GateFunction::kSigmoid, (*gate_)(s, x), out);
  return output_(s, out);
}

}  // namespace banyan
