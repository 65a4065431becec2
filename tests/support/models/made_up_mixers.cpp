#include "support/models/made_up_mixers.h"

#include <algorithm>

#include "base/check.h"
#include "ops/attention.h"
#include "ops/draw.h"

namespace banyan::test {
namespace {

constexpr int64_t kKeyWidth = 3;
constexpr int64_t kNoteWidth = 2;  // position + 1, token
constexpr int64_t kNotedTokens = 7;

// Of a page's state with one head.
float* row_of(const Step& s, StateId state, const SpanArgs& span, int64_t position) {
  const StateSpec& spec = s.pools.spec(state);
  int64_t page_size = s.pools.page_size_tokens();
  int64_t index = span.page_begin + position / page_size;
  int32_t page = s.table(state).units[static_cast<size_t>(index)];
  CHECK(page >= 0 && page <= s.pools.units(s.pools.class_of(state)), "page {}", page);
  int64_t row = position % page_size / spec.tokens_of_row(page_size);
  return static_cast<float*>(s.pools.pool(state)) +
         (page * spec.rows_per_page(page_size) + row) * spec.width;
}

int64_t end_of(const SpanArgs& span) {
  return int64_t{span.first_position} + span.row_count;
}

// Aborts if a position that `position` can still see has another position's notes.
void check_notes(const Step& s, const SpanArgs& span, int64_t position, StateId notes,
                 StateId truth) {
  for (int64_t p = std::max<int64_t>(0, position - kNotedTokens + 1); p <= position; ++p) {
    const float* note = row_of(s, notes, span, p);
    if (std::equal(note, note + kNoteWidth, row_of(s, truth, span, p))) continue;
    CHECK(note[0] == 0 && note[1] == 0, "position {} has a note of {}", p, note[0] - 1);
    ++Notes::missing_pages;
  }
}

float* unit_of(const Step& s, StateId state, int32_t unit) {
  CHECK(unit >= 0 && unit < s.pools.units(s.pools.class_of(state)), "slot {}", unit);
  auto floats = static_cast<int64_t>(s.pools.spec(state).unit_bytes(1) / sizeof(float));
  return static_cast<float*>(s.pools.pool(state)) + unit * floats;
}

// Keeps the last note in a slot, and those of draft rows in a log until they are accepted. Aborts
// if the slot or the log has a note other than that of the position before.
class LastNote {
 public:
  LastNote(const Step& s, size_t span, StateId slot, StateId log, StateId truth)
      : s_(s),
        slot_state_(slot),
        truth_(truth),
        index_(span),
        span_(s.batch.spans[span]),
        slot_(unit_of(s, slot, s.table(slot).units[span])),
        log_(unit_of(s, log, s.table(log).units[span])) {
    if (!s.batch.drafts.empty()) drafts_ = s.batch.drafts[span];
  }

  void run(const TokenId* tokens) {
    int64_t known_to = span_.first_position - drafts_.replayed - drafts_.held;
    CHECK(slot_[0] == 0 || (known_to > 0 && slot_[0] == static_cast<float>(known_to)),
          "noted to {}, not {}", slot_[0], known_to);
    if (slot_[0] == 0 && known_to > 0) ++Notes::missing_slots;
    for (int64_t j = 0; j < drafts_.replayed; ++j) {
      take(log_row(j), known_to + j);
      Notes::replayed += 1;
    }
    for (int64_t row = 0; row < span_.row_count; ++row) {
      int64_t position = span_.first_position + row;
      float note[] = {static_cast<float>(position + 1),
                      static_cast<float>(tokens[span_.row_begin + row])};
      int64_t draft = row - (span_.row_count - drafts_.count);
      if (draft < 0) {
        take(note, position);
      } else {
        std::copy_n(note, kNoteWidth, log_row(drafts_.held + draft));
      }
    }
  }

 private:
  float* log_row(int64_t j) const { return log_ + j * kNoteWidth; }

  void take(const float* note, int64_t position) const {
    CHECK(std::equal(note, note + kNoteWidth, row_of(s_, truth_, span_, position)),
          "position {} has a note of {}", position, note[0] - 1);
    std::copy_n(note, kNoteWidth, slot_);
    for (const Capture& capture : s_.table(slot_state_).captures) {
      if (capture.span != static_cast<int64_t>(index_) || capture.position != position) continue;
      std::copy_n(note, kNoteWidth, unit_of(s_, slot_state_, capture.slot));
    }
  }

  const Step& s_;
  StateId slot_state_, truth_;
  size_t index_;
  const SpanArgs& span_;
  float *slot_, *log_;
  DraftRows drafts_;
};

// Not in a pass that only measures.
bool has_memory(const Step& s) {
  return s.kernels.device->host_memory;
}

Tensor zeros(Step& s, Tensor x, int64_t hidden) {
  Tensor y = s.allocate({x.dim(0), hidden});
  if (has_memory(s)) std::fill_n(y.f32(), y.count(), 0.0f);
  return y;
}

}  // namespace

BlockMeans::BlockMeans(Builder b, int64_t hidden, int block_tokens)
    : hidden_(hidden),
      keys_(b.state({.name = "keys", .width = kKeyWidth})),
      sums_(b.state({.name = "sums", .width = kKeyWidth, .tokens_per_row = block_tokens})) {}

// The row that the span begins inside is recomputed from the keys, since it may include other
// tokens. If a block is longer than a page, each page's row continues from the one before.
void BlockMeans::sum_blocks(Step& s, const SpanArgs& span) const {
  const StateSpec& spec = s.pools.spec(sums_);
  int64_t step = spec.tokens_of_row(s.pools.page_size_tokens()), end = end_of(span);
  for (int64_t begin = span.first_position / step * step; begin < end; begin += step) {
    float* sum = row_of(s, sums_, span, begin);
    if (begin % spec.tokens_per_row == 0) {
      std::fill_n(sum, kKeyWidth, 0.0f);
    } else {
      std::copy_n(row_of(s, sums_, span, begin - 1), kKeyWidth, sum);
    }
    for (int64_t p = begin; p < std::min(begin + step, end); ++p) {
      const float* key = row_of(s, keys_, span, p);
      for (int64_t i = 0; i < kKeyWidth; ++i) sum[i] += key[i];
    }
  }
}

Tensor BlockMeans::operator()(Step& s, Tensor x) const {
  Tensor y = zeros(s, x, hidden_);
  write_pages(s, x.columns(0, kKeyWidth), keys_);
  if (!has_memory(s)) return y;
  int64_t block = s.pools.spec(sums_).tokens_per_row;
  for (const SpanArgs& span : s.batch.spans) {
    sum_blocks(s, span);
    for (int64_t position = span.first_position; position < end_of(span); ++position) {
      int64_t blocks = (position + 1) / block;
      float* out = y.f32() + (span.row_begin + position - span.first_position) * hidden_;
      for (int64_t b = 0; b < blocks; ++b) {
        const float* sum = row_of(s, sums_, span, (b + 1) * block - 1);
        for (int64_t i = 0; i < kKeyWidth; ++i) {
          out[i] += sum[i] / static_cast<float>(block * blocks);
        }
      }
    }
  }
  return y;
}

Notes::Notes(Builder b, int64_t hidden)
    : hidden_(hidden),
      truth_(b.state({.name = "truth", .width = kNoteWidth})),
      notes_(b.state({.name = "notes",
                      .reach = StateReach::kWindow,
                      .window_tokens = kNotedTokens,
                      .width = kNoteWidth,
                      .advisory = true})),
      slot_(b.state({.name = "slot",
                     .unit = StateUnit::kSlot,
                     .reach = StateReach::kPoint,
                     .width = kNoteWidth,
                     .advisory = true})),
      log_(b.state({.name = "log",
                    .unit = StateUnit::kSlot,
                    .reach = StateReach::kNone,
                    .width = kNoteWidth,
                    .draft_log = true})) {}

Tensor Notes::operator()(Step& s, Tensor x) const {
  Tensor y = zeros(s, x, hidden_);
  Tensor notes = s.allocate({x.dim(0), kNoteWidth});
  const TokenId* tokens = known_tokens(s);
  if (!has_memory(s)) return y;
  for (const SpanArgs& span : s.batch.spans) {
    for (int64_t row = span.row_begin; row < span.row_begin + span.row_count; ++row) {
      auto i = static_cast<size_t>(row);
      notes.f32()[row * kNoteWidth] = static_cast<float>(s.batch.positions[i] + 1);
      notes.f32()[row * kNoteWidth + 1] = static_cast<float>(tokens[i]);
    }
  }
  write_pages(s, notes, truth_);
  write_pages(s, notes, notes_);
  for (const SpanArgs& span : s.batch.spans) {
    for (int64_t position = span.first_position; position < end_of(span); ++position) {
      check_notes(s, span, position, notes_, truth_);
    }
  }
  for (size_t i = 0; i < s.batch.spans.size(); ++i) {
    LastNote(s, i, slot_, log_, truth_).run(tokens);
  }
  return y;
}

}  // namespace banyan::test
