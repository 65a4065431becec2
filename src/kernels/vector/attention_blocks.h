// Attention of many rows to selected keys that come in whole parts: blocks of a multiple of kPart
// positions. Rows that selected the same part of the keys are gathered, as rows of one expert are,
// so that the part is read once for all of them.
//
// A part of a row's ranks is a part of positions here. Rows process their parts in ascending order,
// and sums of parts are merged as in split_keys.h, so the bits are the same as row by row.
#pragma once

#include "kernels/vector/attention.h"

namespace banyan::simd {

constexpr int64_t kGatheredQueries = 512;  // of an item
constexpr int64_t kGatheredRows = 128;

// Rows of a span with the queries of one head; one worker processes all of them.
struct GatheredItem : AttentionItem {
  int64_t first_row, rows;
  static int64_t first_part() { return 0; }
  static int64_t end_part() { return 1; }
  int64_t start_of(int64_t) const { return start; }
};

// A row's progress through the parts of its keys.
struct GatheredRow {
  SelectedRow selected;
  int64_t run = 0, rank = 0;
  bool ended() const { return rank >= selected.key_count; }
  int64_t part() const { return selected.position(run, rank) / kPart; }
  void advance() {
    rank += kPart;
    if (!ended() && rank >= selected.end_rank(run)) ++run;
  }
};

// The arguments without the selection, since gathered rows have their positions.
struct PositionArgs {
  explicit PositionArgs(const AttentionArgs& a) : by_position(a) { by_position.selected = {}; }
  AttentionArgs by_position;
};

template <class V, class Form>
class GatheredWorker : PositionArgs, public AttentionWorker<V, Form> {
  using Base = AttentionWorker<V, Form>;

 public:
  using Item = GatheredItem;
  static constexpr int64_t kLanesMax = kGatheredQueries;

  static int64_t scratch_floats(const AttentionArgs& a) {
    return Base::scratch_floats(a) + PartialSums::floats(kGatheredQueries, Base::sums_width(a)) +
           PartialSums::floats(Form::kQueries, Base::sums_width(a));
  }
  template <class Body>
  static int64_t for_items(const AttentionArgs& a, const KeyShares&, const Body& body) {
    return for_gathered_items(a, body);
  }
  template <class Body>
  static int64_t for_gathered_items(const AttentionArgs& a, const Body& body);

  GatheredWorker(const AttentionArgs& args, float* memory)
      : PositionArgs(args),
        Base(by_position, memory),
        a_(args),
        totals_(memory + Base::scratch_floats(args)),
        sums_(totals_ + PartialSums::floats(kGatheredQueries, Base::sums_width(args))) {}

  void attend_whole(const GatheredItem& item);

 private:
  // Attends to `part` for the listed rows of the item, and merges.
  void attend_rows(const GatheredItem& item, int64_t part, const int16_t* rows, int64_t count,
                   const PartialSums& totals);

  const AttentionArgs& a_;
  float *totals_, *sums_;
  GatheredRow rows_[kGatheredRows];
};

template <class V, class Form>
template <class Body>
int64_t GatheredWorker<V, Form>::for_gathered_items(const AttentionArgs& a, const Body& body) {
  int64_t group = a.q_heads / a.kv_heads, start = 0;
  int64_t rows_max = kGatheredQueries / group;
  if (rows_max > kGatheredRows) rows_max = kGatheredRows;
  for (const SpanArgs* span = a.spans; span < a.spans + a.span_count; ++span) {
    if (!gathers_rows(a, *span)) continue;
    for (int64_t row = 0; row < span->row_count; row += rows_max) {
      int64_t rows = span->row_count - row < rows_max ? span->row_count - row : rows_max;
      for (int64_t head = 0; head < a.kv_heads; ++head) {
        int64_t keys = 0;
        for (int64_t i = row; i < row + rows; ++i) {
          keys += selected_row(a.selected, span->row_begin + i, head).key_count;
        }
        GatheredItem item;
        item.span = span;
        item.kv_head = head;
        item.first = row * group;
        item.count = rows * group;
        item.block = {0, INT32_MAX};
        item.first_key = item.end_key = 0;
        item.tile_cost = 0;
        item.start = start;
        item.cost = keys;
        item.first_row = row;
        item.rows = rows;
        body(item);
        start += keys;
      }
    }
  }
  return start;
}

template <class V, class Form>
void GatheredWorker<V, Form>::attend_whole(const GatheredItem& item) {
  for (int64_t r = 0; r < item.rows; ++r) {
    int64_t row = item.span->row_begin + item.first_row + r;
    rows_[r] = {.selected = selected_row(a_.selected, row, item.kv_head)};
  }
  PartialSums totals(totals_, item.count, Base::sums_width(a_));
  while (true) {
    int64_t part = INT64_MAX, count = 0;
    int16_t chosen[kGatheredRows];
    for (int64_t r = 0; r < item.rows; ++r) {
      if (rows_[r].ended() || rows_[r].part() > part) continue;
      if (rows_[r].part() < part) count = 0;
      part = rows_[r].part();
      chosen[count++] = static_cast<int16_t>(r);
    }
    if (count == 0) break;
    int64_t group = a_.q_heads / a_.kv_heads, together = Form::kQueries / group;
    for (int64_t c = 0; c < count; c += together) {
      attend_rows(item, part, chosen + c, count - c < together ? count - c : together, totals);
    }
    for (int64_t c = 0; c < count; ++c) rows_[chosen[c]].advance();
  }
  this->finish(item, totals);
}

template <class V, class Form>
void GatheredWorker<V, Form>::attend_rows(const GatheredItem& item, int64_t part,
                                          const int16_t* rows, int64_t count,
                                          const PartialSums& totals) {
  int64_t group = a_.q_heads / a_.kv_heads, begin = part * kPart, end = 0;
  auto& queries = this->queries_;
  queries.count = count * group;
  for (int64_t n = 0; n < queries.count; ++n) {
    int64_t i = item.first_row + rows[n / group];
    int64_t head = item.kv_head * group + n % group;
    const float* q = a_.q + (item.span->row_begin + i) * a_.q_row_stride + head * a_.head_dim;
    Form::start_query(q, a_.head_dim, n, queries);
    int64_t seen = item.span->first_position + i + 1;
    queries.first_key[n] = begin;
    queries.end_key[n] = seen < begin + kPart ? seen : begin + kPart;
    if (queries.end_key[n] > end) end = queries.end_key[n];
  }
  AttentionItem keys = item;
  keys.count = queries.count;
  keys.first_key = begin;
  keys.end_key = end;
  PartialSums sums(sums_, queries.count, totals.width);
  this->attend(keys, part, sums);
  for (int64_t n = 0; n < queries.count; ++n) {
    int64_t r = rows[n / group];
    merge_sums<V>(rows_[r].rank == 0, sums, n, totals, r * group + n % group);
  }
}

template <class V, class Form>
void attend_gathered(const AttentionArgs& a) {
  using Worker = GatheredWorker<V, Form>;
  int64_t work = Worker::for_gathered_items(a, [](const GatheredItem&) {});
  if (work == 0) return;
  attend_split<Worker>(a, {work, a.launch.threads == nullptr ? 1 : a.launch.threads->size()});
}

template <class V, class Form>
void attend_all(const AttentionArgs& a) {
  if (a.selected.runs != nullptr) attend_gathered<V, Form>(a);
  int64_t work = for_items<Form>(a, [](const AttentionItem&) {});
  int64_t workers = a.launch.threads == nullptr ? 1 : a.launch.threads->size();
  // Smaller jobs, of some 4 us, finish before a worker wakes up.
  constexpr int64_t kWorkMin = 4096;
  if (work * a.head_dim < kWorkMin) workers = 1;
  attend_split<AttentionWorker<V, Form>>(a, {work, workers});
}

template <class V>
void attention(const AttentionArgs& a) {
  if (a.pool_dtype == DType::kBF16) return attend_all<V, PlainForm<V, BFloat16>>(a);
  if (a.pool_dtype == DType::kF16) return attend_all<V, PlainForm<V, Float16>>(a);
  if (a.pool_dtype == DType::kI8) return attend_all<V, PlainForm<V, int8_t>>(a);
  if (a.pool_dtype == DType::kF8E4M3) return attend_all<V, PlainForm<V, Float8E4M3>>(a);
  attend_all<V, PlainForm<V, float>>(a);
}

}  // namespace banyan::simd
