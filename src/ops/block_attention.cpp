#include "ops/block_attention.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace banyan {
namespace {

// Attention of some rows to all keys and of the others to selected ones, a few pieces of spans at a
// time.
class BlockLaunches {
 public:
  BlockLaunches(Step& s, const AttentionArgs& args, const SelectionRule& rule, ScoreBlocks score)
      : step_(s), args_(args), rule_(rule), score_(score) {
    // A launch always reserves this much memory, even if the step needs less, so that it is part of
    // the memory plan.
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
    args_.rows = spans.rows();
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
    return select_keys(step_, spans, args_.kv_heads, rule_,
                       [&](const ScoreBlock& block) { score_(spans, block); });
  }

  Step& step_;
  AttentionArgs args_;
  SelectionRule rule_;
  ScoreBlocks score_;
  std::array<Pieces, 2> pieces_;  // dense and sparse
};

}  // namespace

// Positions below dense_tokens() select everything, so they use dense attention, which has the same
// bits.
Tensor block_attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape,
                       const BlockChoice& choice, ScoreBlocks score) {
  CHECK(shape.window_tokens == 0 && shape.chunk_tokens == 0, "a window of blocks");
  Tensor out = s.allocate({q.dim(0), q.dim(1)});
  BlockLaunches launches(s, attention_args(s, q, k, v, shape, out), choice.rule, score);
  int64_t dense = choice.dense_tokens();
  const SpanList& all = s.inputs.spans;
  bool none = std::ranges::all_of(all.host, [&](const SpanArgs& span) {
    return span.first_position + span.row_count <= dense;
  });
  bool every = choice.decode && std::ranges::all_of(all.host, [&](const SpanArgs& span) {
                 return span.first_position >= dense;
               });
  if (none || every) {
    launches.attend(all, every && !none);
    return out;
  }
  for (const SpanArgs& span : choice.decode ? all.host : s.inputs.prompt.host) {
    auto below =
        static_cast<int32_t>(std::clamp<int64_t>(dense - span.first_position, 0, span.row_count));
    launches.add(span, 0, below, false);
    launches.add(span, below, span.row_count - below, true);
  }
  if (!choice.decode) {
    for (const SpanArgs& span : s.inputs.decode.host) launches.add(span, 0, span.row_count, false);
  }
  launches.finish();
  return out;
}

}  // namespace banyan
