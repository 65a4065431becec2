// How CPU kernels read and write the choice of keys of one row (kernels/sparse.h).
//
// Included by files of several instruction sets, so everything is static, a template or always
// inline (see x86/vec_avx512.h).
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace banyan {

// The selected keys of one row and head.
struct SelectedRow {
  const KeyRun* runs;
  int64_t run_count, key_count;

  // The run that contains the key of `rank`, which must be below key_count.
  [[gnu::always_inline]] constexpr int64_t run_of(int64_t rank) const {
    int64_t low = 0, high = run_count;
    while (high - low > 1) {
      int64_t middle = low + (high - low) / 2;
      (runs[middle].rank <= rank ? low : high) = middle;
    }
    return low;
  }
  [[gnu::always_inline]] constexpr int64_t end_rank(int64_t run) const {
    return run + 1 < run_count ? runs[run + 1].rank : key_count;
  }
  [[gnu::always_inline]] constexpr int64_t position(int64_t run, int64_t rank) const {
    return runs[run].position + rank - runs[run].rank;
  }
};

static constexpr SelectedRow selected_row(const SelectedKeys& keys, int64_t row, int64_t head) {
  int64_t i = row * keys.heads + (keys.heads > 1 ? head : 0);
  return {keys.runs + i * keys.runs_max, keys.run_counts[i], keys.key_counts[i]};
}

// Calls body(position) for the keys of a row in ascending order: the selected ones, or those of
// [begin, end) if nothing is selected.
template <class Body>
static constexpr void for_keys(const SelectedKeys& keys, int64_t row, int64_t head, int64_t begin,
                               int64_t end, const Body& body) {
  if (keys.runs == nullptr) {
    for (int64_t j = begin; j < end; ++j) body(j);
    return;
  }
  SelectedRow selected = selected_row(keys, row, head);
  for (int64_t run = 0; run < selected.run_count; ++run) {
    for (int64_t rank = selected.runs[run].rank; rank < selected.end_rank(run); ++rank) {
      body(selected.position(run, rank));
    }
  }
}

// Writes the runs of one row and head from its entries, given in ascending order.
class RunWriter {
 public:
  [[gnu::always_inline]] constexpr RunWriter(const SelectKeysArgs& a, int64_t row, int64_t head,
                                             int64_t position)
      : runs_(a.runs + (row * a.heads + head) * a.runs_max),
        run_count_(a.run_counts + row * a.heads + head),
        key_count_(a.key_counts + row * a.heads + head),
        entry_tokens_(a.rule.entry_tokens),
        end_position_(position + 1) {
    *run_count_ = *key_count_ = 0;
  }

  [[gnu::always_inline]] constexpr void add(int64_t begin, int64_t end) {  // entries
    if (begin >= end) return;
    int64_t first = begin * entry_tokens_, last = end * entry_tokens_;
    if (last > end_position_) last = end_position_;
    if (first != next_) {
      runs_[*run_count_] = {static_cast<int32_t>(first), *key_count_};
      ++*run_count_;
    }
    next_ = last;
    *key_count_ += static_cast<int32_t>(last - first);
  }

 private:
  KeyRun* runs_;
  int32_t *run_count_, *key_count_;
  int64_t entry_tokens_, end_position_;
  int64_t next_ = -1;  // the position after the last run
};

// The entries that a row at `position` chooses from: `count` of [first, end) by their scores; all
// others are taken. If count is end - first, scores do not matter.
struct Candidates {
  int64_t first, end, count, all;
};
static constexpr Candidates candidates_at(const SelectionRule& rule, int64_t position) {
  int64_t all = static_cast<uint32_t>(position) / static_cast<uint32_t>(rule.entry_tokens) + 1;
  if (all <= rule.top_k) return {0, all, all, all};
  return {rule.forced_first, all - rule.forced_last,
          rule.top_k - rule.forced_first - rule.forced_last, all};
}

// Orders scores as unsigned numbers: NaN lowest, with -infinity; -0 as 0.
static constexpr uint32_t score_order(float score) {
  if (score == 0) score = 0;
  uint32_t bits = __builtin_bit_cast(uint32_t, score);
  uint32_t order = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  constexpr uint32_t kLowest = 0x007fffffu;  // of -infinity
  return score != score ? kLowest : order;
}

// The row of the pool of sums that has entry `block` of a sequence, [pages, heads, rows of a page].
static constexpr int64_t sums_row(const int32_t* page_table, const SpanArgs& span, int64_t block,
                                  int64_t head, int64_t heads, int64_t page_size,
                                  int64_t block_tokens) {
  int64_t in_row = block_tokens < page_size ? block_tokens : page_size;
  auto last = static_cast<uint32_t>((block + 1) * block_tokens - 1);
  auto size = static_cast<uint32_t>(page_size), rows_of = static_cast<uint32_t>(in_row);
  int64_t page = page_table[span.page_begin + last / size];
  return (page * heads + head) * (size / rows_of) + last % size / rows_of;
}

}  // namespace banyan
