// What kernels with states in slots share: blocks run heads of spans. Threads share the columns of
// a state.
//
// A row i makes S = D_i S + key_i^T u_i and reads query_i S, where u_i is v_i or, by the delta
// rule, v_i - k_i D_i S. A key is k_i and a query q_i times a factor. A kernel has decay_at(head,
// i, c), key_factor(head, i), query_factor(), kCorrects for the delta rule, output(head, i, d,
// sum), and decays(): how many decays of a row the log has.
//
// Where registers hold a state, which they do of nearly every model, rows go one by one, but for
// those of a prompt that tensor cores take in tiles (state_tiles.h). A block has 32 of the columns,
// or one after the other where drafts are logged, and four threads have a column. Elsewhere it goes
// chunk by chunk (kernels/slots.h is the same for CPUs).
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"
#include "kernels/slots.h"

namespace banyan::cuda {

struct OnDevice {};  // stands for the vector class in templates that take one

template <class Args>
using HeadOf = SlotHead<OnDevice, Args>;

// The product of two vectors, in ascending order.
BANYAN_HOST_DEVICE constexpr float dot(const float* x, const float* y, int64_t count) {
  float sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += x[c] * y[c];
  return sum;
}

template <class Block, class Head>
BANYAN_DEVICE void capture_state(Block& block, const SlotSpans& spans, int64_t span,
                                 int64_t position, const Head& head) {
  for_captures(spans, span, position, [&](int64_t slot) {
    float* to = head.state_in(slot);
    for_each(block, head.state_size(), [&](int64_t i) { to[i] = head.state[i]; });
  });
}

// A strand of a column has every fourth channel.
inline constexpr int kStrands = 4;
struct StrandChannel {
  int strand, i;  // i: in the strand
  BANYAN_HOST_DEVICE constexpr operator int64_t() const { return int64_t{i} * kStrands + strand; }
};

// A strand of a column of a head's state, which a thread holds in registers.
template <int KeyDim>
class ColumnStrand {
 public:
  // Replaces each value by body(c, value).
  template <class Body>
  BANYAN_DEVICE void each(int strand, const Body& body) {
    BANYAN_UNROLL
    for (int i = 0; i < kValues; ++i) values_[i] = body(StrandChannel{strand, i}, values_[i]);
  }
  // From the same column of a state [KeyDim, value_dim] in memory, or to one.
  BANYAN_DEVICE void load(int strand, const float* state, int64_t value_dim) {
    state += strand * value_dim;
    BANYAN_UNROLL
    for (int i = 0; i < kValues; ++i, state += kStrands * value_dim) values_[i] = *state;
  }
  BANYAN_DEVICE void store(int strand, float* state, int64_t value_dim) const {
    state += strand * value_dim;
    BANYAN_UNROLL
    for (int i = 0; i < kValues; ++i, state += kStrands * value_dim) *state = values_[i];
  }

 private:
  static constexpr int kValues = KeyDim / kStrands;
  float values_[kValues] = {};
};

// As a kernel sees it.
template <class Strand>
struct StrandOf {
  Strand& values;
  int strand;
  int64_t value_dim;

  template <class Body>
  BANYAN_DEVICE void each(const Body& body) {
    values.each(strand, body);
  }
  BANYAN_DEVICE void copy_to(float* state) { values.store(strand, state, value_dim); }
};

// A column of any height, in memory.
class MemoryColumn {
 public:
  template <class Head>
  BANYAN_DEVICE MemoryColumn(const Head& head, int64_t d)
      : from_(head.state + d),
        to_(head.state + d),
        d_(d),
        key_dim_(head.args.key_dim),
        stride_(head.args.value_dim) {}

  template <class Body>
  BANYAN_DEVICE void each(const Body& body) {
    for (int64_t first = 0; first < key_dim_; first += 4) {  // so that strands are known
      BANYAN_UNROLL
      for (int64_t c = first; c < first + 4; ++c) {
        if (c < key_dim_) to_[c * stride_] = body(c, from_[c * stride_]);
      }
    }
    from_ = to_;
  }
  BANYAN_DEVICE void copy_to(float* state) const {
    for (int64_t c = 0; c < key_dim_; ++c) state[c * stride_] = from_[c * stride_];
  }
  // What follows does not change the state: the column goes on in `scratch`.
  BANYAN_DEVICE void leave_state(float* scratch) { to_ = scratch + d_; }

 private:
  const float* from_;
  float* to_;
  int64_t d_, key_dim_, stride_;
};

// A sum of products over channels, in strands: one sum would wait for itself at every step.
struct StrandSums {
  float at[kStrands] = {};
  BANYAN_DEVICE void add(int64_t c, float x, float y) {
    at[c % kStrands] = fused(x, y, at[c % kStrands]);
  }
  BANYAN_DEVICE float sum() const { return (at[0] + at[1]) + (at[2] + at[3]); }
};
// That of one strand, likewise in four: Block::sum_quads adds those of four strands up.
struct StrandSum {
  float at[4] = {};
  BANYAN_DEVICE void add(StrandChannel c, float x, float y) {
    at[c.i % 4] = fused(x, y, at[c.i % 4]);
  }
  BANYAN_DEVICE float sum() const { return (at[0] + at[1]) + (at[2] + at[3]); }
};

// Whether registers hold a head's columns: of heads of nearly every model, and of Mamba 2 with a
// state of 128.
inline constexpr int kRegisterDim = 128;                      // key_dim
inline constexpr int kOwnColumns = kBlockThreads / kStrands;  // of a block
template <class Args>
BANYAN_HOST_DEVICE bool in_registers(const Args& a) {
  return a.key_dim == kRegisterDim && a.value_dim % kOwnColumns == 0;
}
// The blocks that share a head.
template <class Args>
BANYAN_HOST_DEVICE int64_t pieces_of(const Args& a) {
  return in_registers(a) ? a.value_dim / kOwnColumns : 1;
}

// Whether the rows of a prompt go through tiles. What they leave in a state depends on it, so only
// what is the same for all steps counts.
inline constexpr int kStateTile = 64;     // rows
inline constexpr int kValueColumns = 64;  // of a block that has a state on tensor cores
template <class Args>
BANYAN_HOST_DEVICE bool in_tiles(const Args& a) {
  return in_registers(a) && a.value_dim % kValueColumns == 0 && a.chunk % kStateTile == 0;
}

// The updates of the draft rows of one head of a span.
template <class Kernel, class Head>
struct HeadLog {
  BANYAN_DEVICE HeadLog(const Kernel& kernel, int64_t span, const Head& head)
      : decays(kernel.decays()),
        key_dim(head.args.key_dim),
        width(update_width(decays, key_dim, head.args.value_dim)),
        log(kernel.a.spans, span, width * head.args.heads),
        head(head.head) {}
  BANYAN_DEVICE const DraftRows& rows() const { return log.rows; }
  BANYAN_DEVICE Update update(int64_t j) const {
    float* of_head = log.row(j) + head * width;
    return {of_head, of_head + decays, of_head + decays + key_dim};
  }

  int64_t decays, key_dim, width;
  SpanLog<OnDevice> log;
  int64_t head;
};

template <class Kernel, class Head>
BANYAN_DEVICE float key_at(const Kernel& kernel, const Head& head, int64_t i, int64_t c) {
  return kernel.key_factor(head, i) * head.k(i)[c];
}

// What a row does to a state, where the arguments of the kernel have it.
template <class Kernel, class Head>
struct GivenRow {
  const Kernel& kernel;
  const Head& head;
  int64_t i;

  BANYAN_DEVICE float decay(int64_t c) const { return kernel.decay_at(head, i, c); }
  BANYAN_DEVICE float k(int64_t c) const { return head.k(i)[c]; }
  BANYAN_DEVICE float key(int64_t c) const { return key_at(kernel, head, i, c); }
  BANYAN_DEVICE float query(int64_t c) const { return kernel.query_factor() * head.q(i)[c]; }
};

// What a thread has loaded of a row before it is needed: of a channel, and of a value.
struct RowInputs {
  float decay = 0, k = 0, q = 0, key_factor = 0, value = 0;
};

// A row in shared memory, strand by strand, and values of the block's columns.
struct alignas(16) StagedRow {
  static constexpr int kLength = kRegisterDim / kStrands + 4;  // strands do not share banks
  using Channels = float[kStrands][kLength];
  Channels decays, ks, keys, queries;
  float values[kOwnColumns];

  // Channel c, and value c if the block has that column.
  BANYAN_DEVICE void stage(const RowInputs& row, float query_factor, int c) {
    int strand = c % kStrands, i = c / kStrands;
    decays[strand][i] = row.decay;
    ks[strand][i] = row.k;
    keys[strand][i] = row.key_factor * row.k;
    queries[strand][i] = query_factor * row.q;
    if (c < kOwnColumns) values[c] = row.value;
  }
  BANYAN_DEVICE float decay(StrandChannel c) const { return decays[c.strand][c.i]; }
  BANYAN_DEVICE float k(StrandChannel c) const { return ks[c.strand][c.i]; }
  BANYAN_DEVICE float key(StrandChannel c) const { return keys[c.strand][c.i]; }
  BANYAN_DEVICE float query(StrandChannel c) const { return queries[c.strand][c.i]; }
};
inline constexpr int kStagedRows = 4;

// By the delta rule: decays a column and returns what the row's key reads of it.
template <class Sum, class Column, class Row>
BANYAN_DEVICE Sum decay_and_read(Column& column, const Row& row) {
  Sum sum;
  column.each([&](auto c, float s) {
    float decayed = s * row.decay(c);
    sum.add(c, row.k(c), decayed);
    return decayed;
  });
  return sum;
}
// Adds the row's update to a column, which is decayed already by the delta rule, and returns what
// the row's query reads of it.
template <bool kCorrects, class Sum, class Column, class Row>
BANYAN_DEVICE Sum update_and_read(Column& column, const Row& row, float update) {
  Sum sum;
  column.each([&](auto c, float s) {
    float updated = fused(row.key(c), update, kCorrects ? s : s * row.decay(c));
    sum.add(c, row.query(c), updated);
    return updated;
  });
  return sum;
}

// The same update, from the log.
template <class Kernel, class Column, class Head>
BANYAN_DEVICE void replay(const Kernel& kernel, Column& column, const Head& head,
                          const Update& update, int64_t d) {
  float u = update.value[d];
  if (kernel.decays() == 1) {
    float all = update.decay[0];
    column.each([&](int64_t c, float s) { return fused(update.key[c], u, s * all); });
  } else if (kernel.decays() == 0) {
    float all = kernel.decay_at(head, 0, 0);
    column.each([&](int64_t c, float s) { return fused(update.key[c], u, s * all); });
  } else {
    column.each([&](int64_t c, float s) { return fused(update.key[c], u, s * update.decay[c]); });
  }
}

// A thread's column over the rows of a span: replays, known rows, draft rows.
template <class Kernel, class Head>
class ColumnRun {
 public:
  BANYAN_DEVICE ColumnRun(const Kernel& kernel, const HeadLog<Kernel, Head>& log, int64_t s,
                          const SpanArgs& span, const Head& head)
      : kernel_(kernel), log_(log), head_(head), s_(s), span_(span) {}

  BANYAN_DEVICE int64_t known() const { return span_.row_count - log_.rows().count; }
  // Whether updates are held that only drafts see: then no row is known.
  BANYAN_DEVICE bool holds() const { return log_.rows().held > 0; }

  template <class Column>
  BANYAN_DEVICE void replay_log(Column& column, int64_t d) const {
    const DraftRows& rows = log_.rows();
    for (int64_t j = 0; j < rows.replayed + rows.held; ++j) {
      replay(kernel_, column, head_, log_.update(j), d);
      if (!holds()) capture(column, j - rows.replayed, d);
    }
  }
  template <class Column, class Row>
  BANYAN_DEVICE void run(Column& column, const Row& row, int64_t i, int64_t d) const {
    float u = head_.v(i)[d];
    if constexpr (Kernel::kCorrects) u -= decay_and_read<StrandSums>(column, row).sum();
    float sum = update_and_read<Kernel::kCorrects, StrandSums>(column, row, u).sum();
    keep(column, i, d);
    put(i, d, u, sum);
  }
  // What is left of row i: the state, if somebody wants it; its result, and an update of a draft.
  template <class Column>
  BANYAN_DEVICE void keep(Column& column, int64_t i, int64_t d) const {
    if (i < known()) capture(column, i, d);
  }
  BANYAN_DEVICE void put(int64_t i, int64_t d, float update, float sum) const {
    head_.out(i)[d] = kernel_.output(head_, i, d, sum);
    if (i >= known()) log_.update(log_.rows().held + i - known()).value[d] = update;
  }

 private:
  template <class Column>
  BANYAN_DEVICE void capture(Column& column, int64_t row, int64_t d) const {
    if (kernel_.a.spans.capture_count == 0) return;
    for_captures(kernel_.a.spans, s_, span_.first_position + row,
                 [&](int64_t slot) { column.copy_to(head_.state_in(slot) + d); });
  }

  const Kernel& kernel_;
  const HeadLog<Kernel, Head>& log_;
  const Head& head_;
  int64_t s_;
  SpanArgs span_;
};

// A block's columns over all rows of a span, with the state in registers.
template <class Block, class Kernel, class Head>
class RegisterRun {
 public:
  BANYAN_DEVICE RegisterRun(Block& block, const Kernel& kernel, int64_t s, const SpanArgs& span,
                            const Head& head, const HeadLog<Kernel, Head>& log, int64_t piece)
      : block_(block),
        kernel_(kernel),
        head_(head),
        run_(kernel, log, s, span, head),
        span_(span),
        first_column_(piece * kOwnColumns),
        staged_(block.template shared<StagedRow>()) {
    static_assert(Block::kThreads == kRegisterDim && kOwnColumns <= kRegisterDim);
  }

  BANYAN_DEVICE void run() {
    load_ahead(0);
    block_.each([&](int thread) {
      if (span_.first_position > 0) {
        strands_[thread].load(thread % kStrands, state(thread), kernel_.a.value_dim);
      }
      auto strand = strand_of(thread);
      run_.replay_log(strand, column(thread));
    });
    for (int64_t first = 0; first < span_.row_count; first += kStagedRows) {
      int64_t count = least(kStagedRows, span_.row_count - first);
      stage(count);
      load_ahead(first + kStagedRows);
      for (int64_t r = 0; r < count; ++r) run_row(first + r, staged_[r]);
    }
    if (run_.known() == span_.row_count && !run_.holds()) store_state();
  }

 private:
  using Strand = ColumnStrand<kRegisterDim>;

  BANYAN_DEVICE int64_t column(int thread) const { return first_column_ + thread / kStrands; }
  BANYAN_DEVICE float* state(int thread) const { return head_.state + column(thread); }
  BANYAN_DEVICE StrandOf<Strand> strand_of(int thread) {
    return {strands_[thread], thread % kStrands, kernel_.a.value_dim};
  }

  // Begins to load rows from `first` on; the rows before them are computed meanwhile.
  BANYAN_DEVICE void load_ahead(int64_t first) {
    block_.alone([&](int thread) {
      BANYAN_UNROLL
      for (int r = 0; r < kStagedRows; ++r) {
        int64_t i = first + r;
        if (i >= span_.row_count) return;
        RowInputs& row = ahead_[thread].rows[r];
        row.decay = kernel_.decay_at(head_, i, thread);
        row.k = head_.k(i)[thread];
        row.q = head_.q(i)[thread];
        row.key_factor = kernel_.key_factor(head_, i);
        if (thread < kOwnColumns) row.value = head_.v(i)[first_column_ + thread];
      }
    });
  }
  // The rows that were loaded.
  BANYAN_DEVICE void stage(int64_t count) {
    block_.each([&](int thread) {
      BANYAN_UNROLL
      for (int r = 0; r < kStagedRows; ++r) {
        if (r < count) staged_[r].stage(ahead_[thread].rows[r], kernel_.query_factor(), thread);
      }
    });
  }

  // Drafts leave the state in memory as it is before them.
  BANYAN_DEVICE void run_row(int64_t i, const StagedRow& row) {
    constexpr bool kCorrects = Kernel::kCorrects;
    if (i == run_.known() && !run_.holds()) store_state();
    auto read = block_.sum_quads([&](int thread) {
      auto strand = strand_of(thread);
      return kCorrects ? decay_and_read<StrandSum>(strand, row).sum() : 0.0f;
    });
    auto update = [&](int thread) {
      float v = row.values[thread / kStrands];
      return kCorrects ? v - read[thread] : v;
    };
    auto sum = block_.sum_quads([&](int thread) {
      auto strand = strand_of(thread);
      return update_and_read<kCorrects, StrandSum>(strand, row, update(thread)).sum();
    });
    block_.alone([&](int thread) {
      auto strand = strand_of(thread);
      run_.keep(strand, i, column(thread));
      if (strand.strand == 0) run_.put(i, column(thread), update(thread), sum[thread]);
    });
  }

  BANYAN_DEVICE void store_state() {
    block_.alone([&](int thread) { strand_of(thread).copy_to(state(thread)); });
  }

  Block& block_;
  const Kernel& kernel_;
  const Head& head_;
  ColumnRun<Kernel, Head> run_;
  SpanArgs span_;
  int64_t first_column_;
  struct RowsAhead {
    RowInputs rows[kStagedRows];
  };

  StagedRow* staged_;
  typename Block::template PerThread<RowsAhead> ahead_;
  typename Block::template PerThread<Strand> strands_;
};

// Column d of a state in memory over a span's replays, its rows from `first` on and its drafts.
template <class Kernel, class Head>
BANYAN_DEVICE void run_column(const Kernel& kernel, const HeadLog<Kernel, Head>& log, int64_t s,
                              const Head& head, int64_t first, int64_t d, float* scratch) {
  ColumnRun<Kernel, Head> run(kernel, log, s, kernel.a.spans.spans[s], head);
  MemoryColumn column(head, d);
  if (run.holds()) column.leave_state(scratch);
  run.replay_log(column, d);
  for (int64_t i = first; i < kernel.a.spans.spans[s].row_count; ++i) {
    if (i == run.known()) column.leave_state(scratch);
    run.run(column, GivenRow<Kernel, Head>{kernel, head, i}, i, d);
  }
}

// The same of all columns, after kernel.prefill_form(block, head, first, n) for each chunk of the
// prompt, or part of one.
template <class Block, class Kernel, class Head>
BANYAN_DEVICE void run_forms(Block& block, const Kernel& kernel, int64_t s, const Head& head,
                             const HeadLog<Kernel, Head>& log) {
  const SlotSpans& spans = kernel.a.spans;
  const SpanArgs& span = spans.spans[s];
  int64_t prompt = prompt_rows(spans, s), i = 0;
  while (i < prompt) {
    int64_t n = least(prompt - i, kernel.a.chunk);
    kernel.prefill_form(block, head, i, n);
    i += n;
    capture_state(block, spans, s, span.first_position + i - 1, head);
  }
  if (i == span.row_count) return;
  auto* scratch = reinterpret_cast<float*>(block.scratch());
  for_each(block, kernel.a.value_dim,
           [&](int64_t d) { run_column(kernel, log, s, head, i, d, scratch); });
}

// Piece `piece` of the columns of a head whose state is in registers, else all of them.
template <class Block, class Kernel, class Head>
BANYAN_DEVICE void run_head(Block& block, const Kernel& kernel, int64_t s, Head head,
                            int64_t piece) {
  SpanArgs span = kernel.a.spans.spans[s];
  HeadLog<Kernel, Head> log(kernel, s, head);
  if (in_tiles(kernel.a)) {  // the rows after the prompt
    auto prompt = static_cast<int32_t>(prompt_rows(kernel.a.spans, s));
    head.first_row += prompt;
    span.first_position += prompt;
    span.row_count -= prompt;
    if (span.row_count == 0) return;
  }
  if (in_registers(kernel.a)) {
    bool logs = log.rows().count > 0;  // then one block knows when all columns have read the log
    if (logs && piece > 0) return;
    for (int64_t end = logs ? pieces_of(kernel.a) : piece + 1; piece < end; ++piece) {
      RegisterRun<Block, Kernel, Head>(block, kernel, s, span, head, log, piece).run();
    }
  } else {
    if (span.first_position == 0) {
      for_each(block, head.state_size(), [&](int64_t i) { head.state[i] = 0; });
    }
    run_forms(block, kernel, s, head, log);
  }
  // Not before all columns have read the updates that these replace.
  const DraftRows& rows = log.rows();
  if (rows.count == 0) return;
  int64_t known = span.row_count - rows.count;
  for_each(block, kernel.a.key_dim, [&](int64_t c) {
    for (int64_t j = 0; j < rows.count; ++j) {
      Update to = log.update(rows.held + j);
      if (c < kernel.decays()) to.decay[c] = kernel.decay_at(head, known + j, c);
      to.key[c] = key_at(kernel, head, known + j, c);
    }
  });
}

// How a kernel is launched whose chunks take so many bytes. Draft rows of a state in memory
// continue in scratch memory.
template <class Args>
Shape slot_shape(const Args& a, size_t shared_bytes, size_t scratch_bytes) {
  int64_t blocks = a.spans.count * a.heads;
  if (in_registers(a)) {
    return {.blocks = blocks * pieces_of(a), .shared_bytes = kStagedRows * sizeof(StagedRow)};
  }
  size_t drafts = a.spans.drafts != nullptr ? a.key_dim * a.value_dim * sizeof(float) : 0;
  return {.blocks = blocks,
          .shared_bytes = shared_bytes,
          .scratch_bytes = scratch_bytes > drafts ? scratch_bytes : drafts};
}

template <class Block, class Kernel>
BANYAN_DEVICE void run_all_heads(Block& block, const Kernel& kernel) {
  const auto& a = kernel.a;
  int64_t pieces = pieces_of(a), items = a.spans.count * a.heads * pieces;
  for (int64_t item = block.index(); item < items; item += block.count()) {
    int64_t number = quotient(item, pieces), span = quotient(number, a.heads);
    HeadOf<std::decay_t<decltype(a)>> head(a, span, number - span * a.heads);
    run_head(block, kernel, span, head, item - number * pieces);
  }
}

}  // namespace banyan::cuda
