#include "ops/moba.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace banyan {
namespace {

// Attention of rows to all keys, and of rows to selected ones, some pieces of spans at a time.
class MobaLaunches {
 public:
  MobaLaunches(Step& s, StateId sums, const AttentionArgs& args, const MobaShape& moba)
      : step_(s), sums_(sums), args_(args), moba_(moba) {
    // The most memory that a launch takes, whatever this step needs: so it is planned.
    size_t mark = s.arena.mark();
    s.arena.allocate_array<SpanArgs>(kPiecesMax);
    select({});
    s.arena.rewind(mark);
  }

  void attend(const SpanList& spans, bool sparse) {
    if (spans.empty()) return;
    size_t mark = step_.arena.mark();
    args_.spans = spans.device;
    args_.span_count = spans.count();
    args_.selected = sparse ? select(spans) : SelectedKeys{};
    step_.kernels.attention(args_);
    step_.arena.rewind(mark);
  }

  // Rows [begin, begin + count) of a span.
  void add(const SpanArgs& span, int32_t begin, int32_t count, bool sparse) {
    if (count <= 0) return;
    Pieces& pieces = pieces_[sparse ? 1 : 0];
    if (pieces.count == kPiecesMax) launch(sparse);
    pieces.spans[pieces.count++] = {.row_begin = span.row_begin + begin,
                                    .row_count = count,
                                    .first_position = span.first_position + begin,
                                    .page_begin = span.page_begin};
  }
  void finish() {
    launch(false);
    launch(true);
  }

 private:
  static constexpr size_t kPiecesMax = 64;
  struct Pieces {
    std::array<SpanArgs, kPiecesMax> spans = {};
    size_t count = 0;
  };

  void launch(bool sparse) {
    Pieces& pieces = pieces_[sparse ? 1 : 0];
    size_t mark = step_.arena.mark();
    std::span<const SpanArgs> host(pieces.spans.data(), pieces.count);
    auto* device = step_.arena.allocate_array<SpanArgs>(kPiecesMax);
    step_.kernels.device->upload(step_.launch.queue, device, host.data(), host.size_bytes());
    attend({host, device}, sparse);
    pieces.count = 0;
    step_.arena.rewind(mark);
  }

  SelectedKeys select(const SpanList& spans) {
    return select_keys(step_, spans, args_.kv_heads, moba_.rule(), [&](const ScoreBlock& block) {
      step_.kernels.block_scores({.launch = step_.launch,
                                  .q = args_.q,
                                  .q_row_stride = args_.q_row_stride,
                                  .sums = static_cast<const float*>(step_.pools.pool(sums_)),
                                  .q_heads = args_.q_heads,
                                  .heads = args_.kv_heads,
                                  .width = args_.head_dim,
                                  .page_size = args_.page_size,
                                  .block_tokens = moba_.block_tokens,
                                  .scores = block.scores,
                                  .entries_max = block.entries_max,
                                  .spans = spans.device,
                                  .span_count = spans.count(),
                                  .part = block.part,
                                  .page_table = args_.page_table});
    });
  }

  Step& step_;
  StateId sums_;
  AttentionArgs args_;
  MobaShape moba_;
  std::array<Pieces, 2> pieces_;  // dense and sparse
};

}  // namespace

void write_key_sums(Step& s, StateId keys, StateId sums, const MobaShape& moba) {
  const StateSpec& spec = s.pools.spec(keys);
  s.kernels.key_sums({.launch = s.launch,
                      .keys = s.pools.pool(keys),
                      .key_dtype = spec.dtype,
                      .sums = static_cast<float*>(s.pools.pool(sums)),
                      .heads = spec.heads,
                      .width = spec.width,
                      .page_size = s.pools.page_size_tokens(),
                      .block_tokens = moba.block_tokens,
                      .spans = s.inputs.spans.device,
                      .span_count = s.inputs.spans.count(),
                      .page_table = s.table_inputs(keys).units});
}

// Rows at positions below block_tokens * top_k select everything, and take the way of attention to
// all keys, which has the same bits.
Tensor moba_attention(Step& s, Tensor q, StateId k, StateId v, StateId sums,
                      const AttentionShape& shape, const MobaShape& moba) {
  CHECK(shape.window_tokens == 0 && shape.chunk_tokens == 0, "a window of blocks");
  Tensor out = s.allocate({q.dim(0), q.dim(1)});
  MobaLaunches launches(s, sums, attention_args(s, q, k, v, shape, out), moba);
  int64_t dense = moba.dense_tokens();
  const SpanList& all = s.inputs.spans;
  bool none = std::ranges::all_of(all.host, [&](const SpanArgs& span) {
    return span.first_position + span.row_count <= dense;
  });
  bool every = moba.decode && std::ranges::all_of(all.host, [&](const SpanArgs& span) {
                 return span.first_position >= dense;
               });
  if (none || every) {
    launches.attend(all, every && !none);
    return out;
  }
  for (const SpanArgs& span : moba.decode ? all.host : s.inputs.prompt.host) {
    auto below =
        static_cast<int32_t>(std::clamp<int64_t>(dense - span.first_position, 0, span.row_count));
    launches.add(span, 0, below, false);
    launches.add(span, below, span.row_count - below, true);
  }
  if (!moba.decode) {
    for (const SpanArgs& span : s.inputs.decode.host) launches.add(span, 0, span.row_count, false);
  }
  launches.finish();
  return out;
}

}  // namespace banyan
