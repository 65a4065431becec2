// Attention over pages of every table: portable against f64, the others against portable, and each
// against itself, bit for bit, with other spans, page sizes, batches and numbers of threads.
//
// Pools start as NaN, and pages that a sequence may have given back are -1 in its page table, with
// NaN where that points, so reading an invisible key fails.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "differential/emulated_table.h"
#include "differential/kernels.h"

namespace banyan::attention_test {
namespace {

using namespace test;  // NOLINT

struct Shape {
  int64_t kv_heads = 2, group = 2, head_dim = 16;
  int64_t window = 0;
  DType dtype = DType::kF32;
  float soft_cap = 0;
  std::vector<float> sinks = {};
  int64_t value_dim = head_dim;
  float scale_sign = 1;
  int64_t q_width() const { return kv_heads * group * head_dim; }
  int64_t k_width() const { return kv_heads * head_dim; }
  int64_t v_width() const { return kv_heads * value_dim; }
  int64_t out_width() const { return kv_heads * group * value_dim; }
};

// Queries, keys and values of one sequence, rows dense.
struct Inputs {
  Inputs(const Shape& shape, int64_t length, Random& random, float scale = 1)
      : length(length),
        q(random.normals(length * shape.q_width(), scale)),
        k(random.normals(length * shape.k_width(), scale)),
        v(random.normals(length * shape.v_width())) {}
  int64_t length;
  std::vector<float> q, k, v;
};

// Several sequences in one pair of pools with shuffled pages.
class Cache {
 public:
  Cache(const Shape& shape, int64_t page_size, const std::vector<int64_t>& lengths,
        uint64_t seed = 1)
      : shape_(shape), page_size_(page_size) {
    int64_t pages = 0;
    for (int64_t length : lengths) {
      page_begin_.push_back(static_cast<int32_t>(pages));
      pages += (length + page_size - 1) / page_size;
    }
    page_table_.resize(pages);
    std::iota(page_table_.begin(), page_table_.end(), 0);
    std::shuffle(page_table_.begin(), page_table_.end(), std::mt19937_64(seed));
    int64_t rows = page_size * shape.kv_heads;
    k_page_bytes_ = rows * state_row_bytes(shape.dtype, {.width = shape.head_dim});
    v_page_bytes_ = rows * state_row_bytes(shape.dtype, {.width = shape.value_dim});
    k_.assign((1 + pages) * k_page_bytes_, char(0xff));
    v_.assign((1 + pages) * v_page_bytes_, char(0xff));
  }

  // Writes keys and values of the spans (sequence, first position, rows) and attends to them.
  struct Span {
    int sequence;
    int64_t first, count;
  };
  std::vector<float> step(const KernelTable& table, const std::vector<const Inputs*>& inputs,
                          const std::vector<Span>& spans, ThreadPool* threads = nullptr) {
    std::vector<SpanArgs> args;
    std::vector<float> q, k, v;
    int32_t rows = 0;
    for (const Span& span : spans) {
      args.push_back({.row_begin = rows,
                      .row_count = static_cast<int32_t>(span.count),
                      .first_position = static_cast<int32_t>(span.first),
                      .page_begin = page_begin_[span.sequence]});
      rows += static_cast<int32_t>(span.count);
      auto append = [&](std::vector<float>& to, const std::vector<float>& from, int64_t width) {
        to.insert(to.end(), from.begin() + span.first * width,
                  from.begin() + (span.first + span.count) * width);
      };
      append(q, inputs[span.sequence]->q, shape_.q_width());
      append(k, inputs[span.sequence]->k, shape_.k_width());
      append(v, inputs[span.sequence]->v, shape_.v_width());
    }
    write(table, args, k, shape_.head_dim, k_.data() + k_page_bytes_, threads);
    write(table, args, v, shape_.value_dim, v_.data() + v_page_bytes_, threads);
    std::vector<int32_t> pages = visible_pages(spans);
    std::vector<float> out(rows * shape_.out_width(), NAN);
    AttentionArgs a = {.launch = {.threads = threads},
                       .q = q.data(),
                       .q_row_stride = shape_.q_width(),
                       .rows = rows,
                       .k_pool = k_.data() + k_page_bytes_,
                       .v_pool = v_.data() + v_page_bytes_,
                       .pool_dtype = shape_.dtype,
                       .out = out.data(),
                       .q_heads = shape_.kv_heads * shape_.group,
                       .kv_heads = shape_.kv_heads,
                       .head_dim = shape_.head_dim,
                       .value_dim = shape_.value_dim,
                       .page_size = page_size_,
                       .scale = scale(),
                       .window = shape_.window,
                       .soft_cap = shape_.soft_cap,
                       .sinks = shape_.sinks.empty() ? nullptr : shape_.sinks.data(),
                       .spans = args.data(),
                       .span_count = std::ssize(args),
                       .page_table = pages.data()};
    block_keys_ > 0 ? attend_in_blocks(table, a, rows) : table.attention(a);
    return out;
  }

  // From here on, each launch takes this many keys of each span, a multiple of kAttentionBlock.
  void take_blocks_of(int64_t keys) { block_keys_ = keys; }

  // The keys of the first sequence at positions [first, first + count), as a table reads them.
  std::vector<float> read_keys(const KernelTable& table, int64_t first, int64_t count,
                               ThreadPool* threads) const {
    SpanArgs span = {.row_count = static_cast<int32_t>(count),
                     .first_position = static_cast<int32_t>(first)};
    std::vector<float> x(count * shape_.k_width(), NAN);
    table.page_read({.launch = {.threads = threads},
                     .pool = k_.data() + k_page_bytes_,
                     .pool_dtype = shape_.dtype,
                     .x = x.data(),
                     .x_row_stride = shape_.k_width(),
                     .heads = shape_.kv_heads,
                     .width = shape_.head_dim,
                     .page_size = page_size_,
                     .spans = &span,
                     .span_count = 1,
                     .page_table = page_table_.data()});
    return x;
  }

  float scale() const { return shape_.scale_sign / std::sqrt(static_cast<float>(shape_.head_dim)); }
  const std::vector<char>& key_bytes() const { return k_; }

 private:
  void attend_in_blocks(const KernelTable& table, AttentionArgs a, int64_t rows) const {
    std::vector<float> max(rows * a.q_heads, NAN), weight(rows * a.q_heads, NAN);
    std::vector<KeyBlock> blocks(a.span_count);
    a.max = max.data();
    a.weight = weight.data();
    a.blocks = blocks.data();
    int32_t end = 0, keys = static_cast<int32_t>(block_keys_);
    for (int64_t s = 0; s < a.span_count; ++s) {
      end = std::max(end, a.spans[s].first_position + a.spans[s].row_count);
    }
    for (int32_t begin = 0; begin < end; begin += keys) {
      std::ranges::fill(blocks, KeyBlock{begin, begin + keys});
      table.attention(a);
    }
  }

  void write(const KernelTable& table, const std::vector<SpanArgs>& spans,
             const std::vector<float>& x, int64_t width, void* pool, ThreadPool* threads) {
    table.page_write({.launch = {.threads = threads},
                      .x = x.data(),
                      .x_row_stride = shape_.kv_heads * width,
                      .pool = pool,
                      .pool_dtype = shape_.dtype,
                      .heads = shape_.kv_heads,
                      .width = width,
                      .page_size = page_size_,
                      .spans = spans.data(),
                      .span_count = std::ssize(spans),
                      .page_table = page_table_.data()});
  }

  // The page table with the pages that end before the first visible key of a span given back.
  std::vector<int32_t> visible_pages(const std::vector<Span>& spans) const {
    std::vector<int32_t> pages = page_table_;
    for (const Span& span : spans) {
      if (shape_.window == 0) continue;
      int64_t first_key = std::max<int64_t>(0, span.first - shape_.window + 1);
      for (int64_t page = 0; (page + 1) * page_size_ <= first_key; ++page) {
        pages[page_begin_[span.sequence] + page] = -1;
      }
    }
    return pages;
  }

  Shape shape_;
  int64_t page_size_;
  std::vector<int32_t> page_begin_, page_table_;
  int64_t k_page_bytes_, v_page_bytes_;
  int64_t block_keys_ = 0;   // 0: all keys at once
  std::vector<char> k_, v_;  // page 0 follows page -1
};

// Whether a table multiplies pairs of bf16 over such a pool, with q and weights rounded to them.
bool rounds(const KernelTable& table, const Shape& shape) {
  std::string_view name = table.name;
  if (name == cuda_table().name) {
    bool fits = shape.head_dim == 64 || shape.head_dim == 128 || shape.head_dim == 256;
    return fits && shape.head_dim == shape.value_dim && shape.dtype != DType::kF32;
  }
  return (name == "avx512_bf16" || name.ends_with("amx")) && shape.dtype == DType::kBF16 &&
         shape.head_dim % 32 == 0 && shape.value_dim % 32 == 0;
}

std::vector<float> attend_whole(const KernelTable& table, const Shape& shape, const Inputs& inputs,
                                int64_t page_size = 16, ThreadPool* threads = nullptr) {
  Cache cache(shape, page_size, {inputs.length});
  return cache.step(table, {&inputs}, {{0, 0, inputs.length}}, threads);
}

std::vector<float> attend_in_chunks(const KernelTable& table, const Shape& shape,
                                    const Inputs& inputs, int64_t rows) {
  Cache cache(shape, 16, {inputs.length});
  std::vector<float> all;
  for (int64_t first = 0; first < inputs.length; first += rows) {
    auto out = cache.step(table, {&inputs}, {{0, first, std::min(rows, inputs.length - first)}});
    all.insert(all.end(), out.begin(), out.end());
  }
  return all;
}

// Attention in f64 with the keys and values as the pool stores them, and the error bound of f32.
//
// A score is off by at most delta = (d + 1) eps / 2 * scale * sum |q k|, the largest of them shifts
// both numerator and denominator, so a weight's relative error is at most 2 delta + 4 eps (exp and
// its argument, whose rounding is |score - max| eps / 2) and the sums of n terms and up to n
// rescalings add 2 n eps to numerator and denominator. The output moves by at most twice the
// relative error times the largest |v|. Scales of quantised rows are rounded into a score twice,
// and into a weight once. Where q and weights are rounded to bf16, so are q, keys and
// values here, and each weight is off by half a unit of 8 bits more.
void expect_near_exact(const KernelTable& table, const Shape& shape, Inputs inputs,
                       const std::vector<float>& out) {
  bool rounded = rounds(table, shape);
  if (rounded) inputs.q = decode(encode(inputs.q, DType::kBF16), DType::kBF16);
  auto k = as_stored(inputs.k, shape.dtype, {.width = shape.head_dim});
  auto v = as_stored(inputs.v, shape.dtype, {.width = shape.value_dim});
  if (rounded) {
    k = as_stored(k, DType::kBF16, {.width = shape.head_dim});
    v = as_stored(v, DType::kBF16, {.width = shape.value_dim});
  }
  int64_t heads = shape.kv_heads * shape.group, d = shape.head_dim, width = shape.value_dim;
  double scale = double{1 / std::sqrt(static_cast<float>(d))};
  double eps = double{kEpsilon};
  for (int64_t r = 0; r < inputs.length; ++r) {
    for (int64_t h = 0; h < heads; ++h) {
      int64_t first = shape.window > 0 ? std::max<int64_t>(0, r - shape.window + 1) : 0;
      std::vector<double> scores, exact(width);
      double max = -INFINITY, min = INFINITY, delta = 0, v_max = 0, sum = 0;
      for (int64_t j = first; j <= r; ++j) {
        double score = 0, magnitude = 0;
        for (int64_t c = 0; c < d; ++c) {
          double product = double{inputs.q[(r * heads + h) * d + c]} *
                           double{k[(j * shape.kv_heads + h / shape.group) * d + c]} * scale;
          score += product;
          magnitude += std::fabs(product);
        }
        if (shape.soft_cap > 0) {
          double cap = double{shape.soft_cap};
          score = cap * std::tanh(score / cap);
          magnitude += cap;  // of the rounding of tanh and of what goes into it
        }
        scores.push_back(score);
        max = std::fmax(max, score);
        min = std::fmin(min, score);
        delta = std::fmax(delta, static_cast<double>(d + 3) * eps / 2 * magnitude);
      }
      for (int64_t j = first; j <= r; ++j) {
        double weight = std::exp(scores[j - first] - max);
        sum += weight;
        for (int64_t c = 0; c < width; ++c) {
          double value = double{v[(j * shape.kv_heads + h / shape.group) * width + c]};
          exact[c] += weight * value;
          v_max = std::fmax(v_max, std::fabs(value));
        }
      }
      if (!shape.sinks.empty()) {
        double sink = double{shape.sinks[h]};
        sum += std::exp(sink - max);
        min = std::fmin(min, sink);
        max = std::fmax(max, sink);
      }
      double terms = static_cast<double>(r - first + 1);
      double relative = 2 * delta + (5 + (max - min) / 2 + 2 * terms) * eps;
      if (rounded) relative += 0x1p-9 + 3e-6;
      for (int64_t c = 0; c < width; ++c) {
        ASSERT_NEAR(out[(r * heads + h) * width + c], exact[c] / sum, 2 * relative * v_max)
            << "row " << r << " head " << h << " column " << c;
      }
    }
  }
}

TEST(Attention, EveryTableIsWithinItsErrorBoundForEveryHeadDim) {
  Random random(1);
  for (const KernelTable* table : tables_and_emulated()) {
    for (int64_t head_dim : {8, 13, 16, 24, 32, 40, 48, 64, 80, 96, 128, 256}) {
      for (DType dtype : kPageTypes) {
        Shape shape = {.kv_heads = 2, .group = 3, .head_dim = head_dim, .dtype = dtype};
        SCOPED_TRACE(fmt::format("{} {} {}", table->name, head_dim, dtype_name(dtype)));
        Inputs inputs(shape, 70, random);
        expect_near_exact(*table, shape, inputs, attend_whole(*table, shape, inputs));
      }
    }
  }
}

TEST(Attention, EveryTableIsWithinItsErrorBoundForEveryGroupAndWindow) {
  Random random(2);
  for (const KernelTable* table : tables_and_emulated()) {
    for (int64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 40}) {
      for (int64_t window : {0, 1, 7, 64, 65, 100}) {
        for (DType dtype : {DType::kF32, DType::kBF16, DType::kI8, DType::kF8E4M3}) {
          if (dtype != DType::kF32 && window >= 64 && window != 65) continue;  // slow
          bool tensor_cores = group % 2 == 1;                                  // of GPUs
          Shape shape = {.kv_heads = 1,
                         .group = group,
                         .head_dim = dtype == DType::kF32 ? 16
                                     : tensor_cores       ? 64
                                                          : 32,
                         .window = window,
                         .dtype = dtype};
          SCOPED_TRACE(fmt::format("{} group {} window {} {}", table->name, group, window,
                                   dtype_name(dtype)));
          Inputs inputs(shape, 150, random);
          expect_near_exact(*table, shape, inputs, attend_whole(*table, shape, inputs, 4));
        }
      }
    }
  }
}

TEST(Attention, SinksAndSoftCapsStayWithinTheBound) {
  Random random(20);
  for (const KernelTable* table : tables_and_emulated()) {
    for (float soft_cap : {0.0f, 2.0f, 50.0f}) {
      for (float sink_scale : {0.0f, 1.0f, 100.0f}) {
        for (auto [head_dim, dtype] : {std::pair{64, DType::kBF16},
                                       {48, DType::kBF16},
                                       {48, DType::kI8},
                                       {48, DType::kF8E4M3}}) {
          Shape shape = {.head_dim = head_dim, .window = 90, .dtype = dtype, .soft_cap = soft_cap};
          if (sink_scale > 0) shape.sinks = random.normals(4, sink_scale);
          SCOPED_TRACE(fmt::format("{} {} {} cap {} sinks {}", table->name, head_dim,
                                   dtype_name(dtype), soft_cap, sink_scale));
          Inputs inputs(shape, 130, random, 2);
          expect_near_exact(*table, shape, inputs, attend_whole(*table, shape, inputs));
        }
      }
    }
  }
}

// More keys than the parts in which sums restart, and fewer heads than workers: several workers
// compute one row together.
TEST(Attention, ALongContextIsSharedWithoutChangingABit) {
  Random random(21);
  for (const KernelTable* table : tables_and_emulated()) {
    for (int64_t window : {0, 700}) {
      for (auto [head_dim, dtype] : {std::pair{8, DType::kBF16},
                                     {64, DType::kBF16},
                                     {32, DType::kI8},
                                     {32, DType::kF8E4M3}}) {
        Shape shape = {.kv_heads = 1,
                       .group = 3,
                       .head_dim = head_dim,
                       .window = window,
                       .dtype = dtype,
                       .soft_cap = 30,
                       .sinks = {0.5f, -2, 4}};
        SCOPED_TRACE(
            fmt::format("{} {} {} window {}", table->name, head_dim, dtype_name(dtype), window));
        Inputs inputs(shape, 1100, random);
        auto whole = attend_whole(*table, shape, inputs, 64);
        if (window == 0) expect_near_exact(*table, shape, inputs, whole);
        std::vector<float> last(whole.end() - shape.out_width(), whole.end());
        Cache cache(shape, 16, {1100});
        cache.step(*table, {&inputs}, {{0, 0, 1099}});
        for (int workers : {1, 2, 3, 5}) {
          ThreadPool threads(workers);
          auto row = cache.step(*table, {&inputs}, {{0, 1099, 1}}, &threads);
          EXPECT_TRUE(same_bits(row, last)) << workers << " workers";
        }
      }
    }
  }
}

TEST(Attention, SharpScoresStayWithinTheBound) {
  Random random(3);
  for (const KernelTable* table : tables_and_emulated()) {
    Shape shape = {.head_dim = 32};
    Inputs inputs(shape, 200, random, 30);  // scores of several thousand: one key takes it all
    expect_near_exact(*table, shape, inputs, attend_whole(*table, shape, inputs));
  }
}

TEST(Attention, PageSizeAndThreadsDoNotChangeABit) {
  Random random(4);
  for (const KernelTable* table : tables_and_emulated()) {
    for (int64_t window : {0, 50}) {
      for (DType dtype : kPageTypes) {
        // Pairs of bf16 take whole registers.
        int64_t head_dim = dtype == DType::kBF16 ? 64 : 24;
        Shape shape = {
            .kv_heads = 2, .group = 2, .head_dim = head_dim, .window = window, .dtype = dtype};
        Inputs inputs(shape, 170, random);
        auto expected = attend_whole(*table, shape, inputs, 16);
        for (int64_t page_size : {1, 2, 4, 64, 1024}) {
          EXPECT_TRUE(same_bits(attend_whole(*table, shape, inputs, page_size), expected))
              << table->name << " pages of " << page_size << " window " << window << " "
              << dtype_name(dtype);
        }
        for (int workers : {2, 3, 4}) {
          ThreadPool threads(workers);
          EXPECT_TRUE(same_bits(attend_whole(*table, shape, inputs, 16, &threads), expected))
              << table->name << " " << workers << " workers";
        }
      }
    }
  }
}

// The same sequences token by token, in random chunks and several at once, in one pool.
TEST(Attention, SpansAndNeighboursDoNotChangeABit) {
  Random random(5);
  ThreadPool threads(2);
  for (const KernelTable* table : tables_and_emulated()) {
    // Pairs of bf16 take whole registers. Few queries widen codes on the way, many before.
    for (auto [group, head_dim, dtype] : {std::tuple{1, 32, DType::kBF16},
                                          {4, 16, DType::kF32},
                                          {7, 64, DType::kBF16},
                                          {40, 32, DType::kBF16},
                                          {1, 32, DType::kI8},
                                          {3, 24, DType::kI8},
                                          {1, 13, DType::kF8E4M3},
                                          {4, 32, DType::kF8E4M3}}) {
      for (int64_t window : {0, 33}) {
        Shape shape = {
            .kv_heads = 2, .group = group, .head_dim = head_dim, .window = window, .dtype = dtype};
        Inputs a(shape, 140, random), b(shape, 77, random), c(shape, 9, random);
        std::vector<const Inputs*> inputs = {&a, &b, &c};
        std::vector<std::vector<float>> expected, actual(3);
        for (const Inputs* input : inputs) {
          expected.push_back(attend_whole(*table, shape, *input));
        }
        Cache cache(shape, 4, {140, 77, 9}, 99);
        std::vector<int64_t> done(3);
        int64_t chunk_max = group == 4 ? 1 : 60;
        while (done[0] < 140 || done[1] < 77 || done[2] < 9) {
          std::vector<Cache::Span> spans;
          for (int s : {2, 0, 1}) {
            int64_t left = inputs[s]->length - done[s];
            int64_t count = std::min(left, 1 + random.below(chunk_max));
            if (count > 0) spans.push_back({s, done[s], count});
          }
          auto out = cache.step(*table, inputs, spans, &threads);
          auto from = out.begin();
          for (const Cache::Span& span : spans) {
            auto end = from + span.count * shape.out_width();
            actual[span.sequence].insert(actual[span.sequence].end(), from, end);
            from = end;
            done[span.sequence] += span.count;
          }
        }
        for (int s = 0; s < 3; ++s) {
          EXPECT_TRUE(same_bits(actual[s], expected[s]))
              << table->name << " group " << group << " window " << window << " sequence " << s
              << " " << dtype_name(dtype);
        }
      }
    }
  }
}

// A NaN row affects itself and the rows that see its key, in every table alike.
TEST(Attention, NonFiniteValuesReachOnlyTheRowsThatSeeThem) {
  Random random(6);
  for (const KernelTable* table : tables_and_emulated()) {
    for (auto [poison, dtype] : {std::pair{NAN, DType::kF32},
                                 {NAN, DType::kBF16},
                                 {INFINITY, DType::kF32},
                                 {INFINITY, DType::kBF16},
                                 {-INFINITY, DType::kF32},
                                 {-INFINITY, DType::kBF16},
                                 {NAN, DType::kI8},
                                 {INFINITY, DType::kI8},
                                 {NAN, DType::kF8E4M3},
                                 {-INFINITY, DType::kF8E4M3}}) {
      // Pairs of bf16 take whole registers, tensor cores 64 columns.
      int64_t head_dim = dtype == DType::kF32 ? 32 : 64;
      Shape shape = {.kv_heads = 1, .group = 2, .head_dim = head_dim, .window = 20, .dtype = dtype};
      Inputs clean(shape, 90, random), poisoned = clean;
      poisoned.v[40 * shape.v_width() + 3] = poison;
      poisoned.k[70 * shape.k_width() + 5] = NAN;
      auto a = attend_whole(*table, shape, clean), b = attend_whole(*table, shape, poisoned);
      for (int64_t i = 0; i < std::ssize(a); ++i) {
        int64_t row = i / shape.out_width(), column = i % shape.value_dim;
        // A quantised row becomes NaN as a whole.
        bool poisoned_value = column == 3 || is_quantised_state(dtype);
        bool touched = (row >= 40 && row < 60 && poisoned_value) || row >= 70;
        EXPECT_EQ(std::isfinite(b[i]), !touched) << table->name << " row " << row;
        if (!touched) {
          EXPECT_EQ(a[i], b[i]) << table->name << " row " << row;
        }
      }
      auto chunks = attend_in_chunks(*table, shape, poisoned, 6);
      for (int64_t i = 0; i < std::ssize(b); ++i) {
        EXPECT_TRUE(chunks[i] == b[i] || (std::isnan(chunks[i]) && std::isnan(b[i])))
            << table->name << " row " << i / shape.out_width();
      }
    }
  }
}

// A score of -infinity weighs nothing; a row with only such scores is NaN.
TEST(Attention, InfiniteScores) {
  for (const KernelTable* table : tables_and_emulated()) {
    for (auto [head_dim, dtype] :
         {std::pair{8, DType::kF32}, {64, DType::kBF16}, {64, DType::kF16}}) {
      SCOPED_TRACE(fmt::format("{} {} {}", table->name, head_dim, dtype_name(dtype)));
      Shape shape = {.kv_heads = 1, .group = 1, .head_dim = head_dim, .dtype = dtype};
      Random random(7);
      Inputs inputs(shape, 3, random);
      std::ranges::fill(inputs.q, 1.0f);
      std::ranges::fill(inputs.k, 1.0f);
      std::fill_n(inputs.k.begin(), head_dim, -INFINITY);
      auto out = attend_whole(*table, shape, inputs);
      const float *first = inputs.v.data() + head_dim, *second = first + head_dim;
      float tolerance = dtype == DType::kF32 ? 1e-6f : 1e-2f;
      for (int c = 0; c < head_dim; ++c) {
        EXPECT_TRUE(std::isnan(out[c]));
        EXPECT_NEAR(out[head_dim + c], first[c], tolerance);
        EXPECT_NEAR(out[2 * head_dim + c], (first[c] + second[c]) / 2, tolerance);
      }
    }
  }
}

TEST(Attention, AScaleMayBeNegative) {
  Random random(25);
  for (const KernelTable* table : tables_and_emulated()) {
    for (auto [head_dim, soft_cap] : {std::pair{32, 0.0f}, {32, 3.0f}, {64, 0.0f}, {64, 3.0f}}) {
      Shape shape = {.head_dim = head_dim, .dtype = DType::kBF16, .soft_cap = soft_cap};
      Inputs inputs(shape, 40, random, 3);
      auto out = attend_whole(*table, shape, inputs);
      shape.scale_sign = -1;
      for (float& q : inputs.q) q = -q;
      EXPECT_TRUE(same_bits(attend_whole(*table, shape, inputs), out)) << table->name;
    }
  }
}

// Values narrower and wider than keys, in widths that pairs of bf16 take and others.
TEST(Attention, ValuesHaveAWidthOfTheirOwn) {
  Random random(22);
  ThreadPool threads(3);
  for (const KernelTable* table : tables_and_emulated()) {
    for (auto [head_dim, value_dim] :
         {std::pair{192, 128}, {64, 32}, {32, 96}, {20, 10}, {9, 33}}) {
      for (DType dtype : kPageTypes) {
        Shape shape = {.kv_heads = 3, .head_dim = head_dim, .dtype = dtype, .value_dim = value_dim};
        SCOPED_TRACE(
            fmt::format("{} {} {} {}", table->name, head_dim, value_dim, dtype_name(dtype)));
        Inputs inputs(shape, 70, random);
        auto out = attend_whole(*table, shape, inputs);
        expect_near_exact(*table, shape, inputs, out);
        EXPECT_TRUE(same_bits(attend_whole(*table, shape, inputs, 4, &threads), out));
        EXPECT_TRUE(same_bits(attend_in_chunks(*table, shape, inputs, 7), out));
      }
    }
  }
}

// Keys in several launches, block by block: rows that begin, continue and end in each block, alone
// and with others.
TEST(Attention, BlocksOfKeysDoNotChangeABit) {
  Random random(23);
  ThreadPool threads(2);
  for (const KernelTable* table : tables_and_emulated()) {
    for (auto [head_dim, value_dim, dtype] : {std::tuple{64, 32, DType::kBF16},
                                              {20, 10, DType::kBF16},
                                              {12, 17, DType::kF32},
                                              {20, 10, DType::kI8},
                                              {64, 32, DType::kF8E4M3}}) {
      Shape shape = {.head_dim = head_dim, .dtype = dtype, .value_dim = value_dim};
      Inputs a(shape, 1200, random), b(shape, 600, random), c(shape, 40, random);
      std::vector<const Inputs*> inputs = {&a, &b, &c};
      std::vector<Cache::Span> spans = {{0, 1000, 200}, {2, 0, 40}, {1, 480, 120}};
      Cache cache(shape, 16, {1200, 600, 40});
      cache.step(*table, inputs, {{0, 0, 1000}, {1, 0, 480}});
      auto whole = cache.step(*table, inputs, spans);
      cache.take_blocks_of(kAttentionBlock);
      EXPECT_TRUE(same_bits(cache.step(*table, inputs, spans), whole)) << table->name;
      EXPECT_TRUE(same_bits(cache.step(*table, inputs, spans, &threads), whole)) << table->name;
      cache.take_blocks_of(2 * kAttentionBlock);
      EXPECT_TRUE(same_bits(cache.step(*table, inputs, spans, &threads), whole)) << table->name;
    }
  }
}

TEST(PageRead, GivesBackWhatWasWritten) {
  Random random(24);
  ThreadPool threads(2);
  for (const KernelTable* table : tables_and_emulated()) {
    for (DType dtype : kPageTypes) {
      Shape shape = {.kv_heads = 3, .group = 1, .head_dim = 13, .dtype = dtype};
      Inputs inputs(shape, 37, random);
      Cache cache(shape, 8, {37});
      cache.step(*table, {&inputs}, {{0, 0, 37}});
      std::vector<float> stored = as_stored(inputs.k, dtype, {.width = shape.head_dim});
      std::vector<float> part(stored.begin() + 5 * shape.k_width(),
                              stored.begin() + 30 * shape.k_width());
      EXPECT_TRUE(same_bits(cache.read_keys(*table, 5, 25, &threads), part)) << table->name;
    }
  }
}

TEST(PageWrite, StoresTheBitsOfPortable) {
  Random random(8);
  const KernelTable* portable = tables().front();
  for (const KernelTable* table : tables_and_emulated()) {
    for (DType dtype : kPageTypes) {
      for (int64_t head_dim : {1, 8, 13, 16, 40, 64}) {
        Shape shape = {.kv_heads = 3, .group = 1, .head_dim = head_dim, .dtype = dtype};
        Inputs inputs(shape, 37, random, 1000);
        for (int64_t i = 0; i < std::ssize(inputs.k); i += 5)
          inputs.k[i] *= 1e-9f;  // subnormal f16
        for (int64_t i = 1; i < std::ssize(inputs.k); i += 7) inputs.k[i] *= 1e36f;  // infinite
        Cache a(shape, 8, {37}), b(shape, 8, {37});
        ThreadPool threads(2);
        a.step(*portable, {&inputs}, {{0, 0, 37}});
        b.step(*table, {&inputs}, {{0, 0, 37}}, &threads);
        EXPECT_EQ(a.key_bytes(), b.key_bytes()) << table->name << " " << dtype_name(dtype);
      }
    }
  }
}

// Sequences of up to two tokens, each in a page of its own.
TEST(PageWrite, TakesManySpans) {
  constexpr int64_t kSpans = 300, kHeads = 2, kWidth = 8, kPageSize = 2;
  Random random(9);
  std::vector<SpanArgs> spans;
  std::vector<int32_t> pages;
  int32_t rows = 0;
  for (int32_t s = 0; s < kSpans; ++s) {
    int32_t count = s * 7 % 3;
    spans.push_back({.row_begin = rows, .row_count = count, .page_begin = s});
    pages.push_back(s * 7 % kSpans);
    rows += count;
  }
  std::vector<float> x = random.normals(rows * kHeads * kWidth);
  auto written = [&](const KernelTable& table) {
    std::vector<float> pool(kSpans * kHeads * kPageSize * kWidth);
    table.page_write({.x = x.data(),
                      .x_row_stride = kHeads * kWidth,
                      .pool = pool.data(),
                      .heads = kHeads,
                      .width = kWidth,
                      .page_size = kPageSize,
                      .spans = spans.data(),
                      .span_count = kSpans,
                      .page_table = pages.data()});
    return pool;
  };
  auto expected = written(*tables().front());
  for (const KernelTable* table : tables_and_emulated()) {
    EXPECT_TRUE(same_bits(written(*table), expected)) << table->name;
  }
}

}  // namespace
}  // namespace banyan::attention_test
