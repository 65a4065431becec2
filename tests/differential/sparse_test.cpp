// Sparse attention of every table: the index and the choice against their definitions, attention to
// the chosen keys against f64 with masks, and all of it against itself bit for bit in other spans,
// page sizes and numbers of threads, and against attention to all keys where all are chosen.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "differential/emulated_table.h"
#include "differential/kernels.h"

namespace banyan::sparse_test {
namespace {

using namespace test;  // NOLINT

struct Shape {
  int64_t kv_heads = 2, group = 2, head_dim = 32;
  DType dtype = DType::kF32;
  int64_t block = 16, top_k = 3;
  int64_t q_width() const { return kv_heads * group * head_dim; }
  int64_t k_width() const { return kv_heads * head_dim; }
};

// One sequence of a mixture of block attention, rows dense.
struct Inputs {
  Inputs(const Shape& shape, int64_t length, Random& random)
      : length(length),
        q(random.normals(length * shape.q_width())),
        k(random.normals(length * shape.k_width())),
        v(random.normals(length * shape.k_width())) {}
  int64_t length;
  std::vector<float> q, k, v;
};

struct Result {
  std::vector<float> out;
  std::vector<std::vector<KeyRun>> runs;  // of each row and head
  std::vector<int32_t> counts;
};

// Its pools, and steps through it.
class Moba {
 public:
  Moba(const KernelTable& table, const Shape& shape, int64_t length, int64_t page_size,
       ThreadPool* threads = nullptr)
      : table_(table), shape_(shape), page_(page_size), launch_{.threads = threads} {
    int64_t pages = (length + page_size - 1) / page_size;
    pages_.resize(pages);
    std::iota(pages_.begin(), pages_.end(), 0);
    std::shuffle(pages_.begin(), pages_.end(), std::mt19937_64(7));
    size_t bytes = pages * page_size * shape.kv_heads *
                   state_row_bytes(shape.dtype, {.width = shape.head_dim});
    k_.assign(bytes, char(0xff));
    v_.assign(bytes, char(0xff));
    int64_t rows = page_size / std::min(page_size, shape.block);
    sums_.assign(pages * rows * shape.k_width(), NAN);
  }

  void step(const Inputs& x, int64_t first, int64_t count, Result& to) {
    SpanArgs span = {.row_count = static_cast<int32_t>(count),
                     .first_position = static_cast<int32_t>(first)};
    write(x.k.data() + first * shape_.k_width(), span, k_.data());
    write(x.v.data() + first * shape_.k_width(), span, v_.data());
    table_.key_sums({.launch = launch_,
                     .keys = k_.data(),
                     .key_dtype = shape_.dtype,
                     .sums = sums_.data(),
                     .heads = shape_.kv_heads,
                     .width = shape_.head_dim,
                     .page_size = page_,
                     .block_tokens = shape_.block,
                     .spans = &span,
                     .span_count = 1,
                     .page_table = pages_.data()});
    const float* q = x.q.data() + first * shape_.q_width();
    SelectedKeys selected = select(q, span, to);
    std::vector<float> out = attend(q, span, selected);
    to.out.insert(to.out.end(), out.begin(), out.end());
  }

  std::vector<float> attend(const float* q, const SpanArgs& span, const SelectedKeys& selected) {
    std::vector<float> out(span.row_count * shape_.q_width(), NAN);
    table_.attention({.launch = launch_,
                      .q = q,
                      .q_row_stride = shape_.q_width(),
                      .k_pool = k_.data(),
                      .v_pool = v_.data(),
                      .pool_dtype = shape_.dtype,
                      .out = out.data(),
                      .q_heads = shape_.kv_heads * shape_.group,
                      .kv_heads = shape_.kv_heads,
                      .head_dim = shape_.head_dim,
                      .value_dim = shape_.head_dim,
                      .page_size = page_,
                      .scale = 1 / std::sqrt(static_cast<float>(shape_.head_dim)),
                      .spans = &span,
                      .span_count = 1,
                      .page_table = pages_.data(),
                      .selected = selected});
    return out;
  }

 private:
  void write(const float* x, const SpanArgs& span, void* pool) {
    table_.page_write({.launch = launch_,
                       .x = x,
                       .x_row_stride = shape_.k_width(),
                       .pool = pool,
                       .pool_dtype = shape_.dtype,
                       .heads = shape_.kv_heads,
                       .width = shape_.head_dim,
                       .page_size = page_,
                       .spans = &span,
                       .span_count = 1,
                       .page_table = pages_.data()});
  }

  SelectedKeys select(const float* q, const SpanArgs& span, Result& to) {
    int64_t lists = span.row_count * shape_.kv_heads;
    int64_t entries = (span.first_position + span.row_count - 1) / shape_.block + 1;
    std::vector<float> scores(lists * entries, NAN);
    runs_.assign(lists * shape_.top_k, {});
    run_counts_.assign(lists, 0);
    key_counts_.assign(lists, 0);
    for (int64_t begin = 0; begin < span.row_count;) {  // in two parts
      RowPart part = {begin, begin == 0 ? (span.row_count + 1) / 2 : span.row_count - begin};
      table_.block_scores({.launch = launch_,
                           .q = q,
                           .q_row_stride = shape_.q_width(),
                           .sums = sums_.data(),
                           .q_heads = shape_.kv_heads * shape_.group,
                           .heads = shape_.kv_heads,
                           .width = shape_.head_dim,
                           .page_size = page_,
                           .block_tokens = shape_.block,
                           .scores = scores.data(),
                           .entries_max = entries,
                           .spans = &span,
                           .span_count = 1,
                           .part = part,
                           .page_table = pages_.data()});
      table_.select_keys(
          {.launch = launch_,
           .scores = scores.data(),
           .entries_max = entries,
           .heads = shape_.kv_heads,
           .rule = {.entry_tokens = shape_.block, .top_k = shape_.top_k, .forced_last = 1},
           .spans = &span,
           .span_count = 1,
           .part = part,
           .runs = runs_.data(),
           .run_counts = run_counts_.data(),
           .key_counts = key_counts_.data(),
           .runs_max = shape_.top_k});
      begin += part.count;
    }
    for (int64_t i = 0; i < lists; ++i) {
      auto first = runs_.begin() + i * shape_.top_k;
      to.runs.emplace_back(first, first + run_counts_[i]);
      to.counts.push_back(key_counts_[i]);
    }
    return {.runs = runs_.data(),
            .run_counts = run_counts_.data(),
            .key_counts = key_counts_.data(),
            .heads = shape_.kv_heads,
            .runs_max = shape_.top_k,
            .alignment = shape_.block,
            .keys_max = shape_.block * shape_.top_k};
  }

  const KernelTable& table_;
  Shape shape_;
  int64_t page_;
  Launch launch_;
  std::vector<int32_t> pages_;
  std::vector<char> k_, v_;
  std::vector<float> sums_;
  std::vector<KeyRun> runs_;
  std::vector<int32_t> run_counts_, key_counts_;
};

Result run(const KernelTable& table, const Shape& shape, const Inputs& inputs, int64_t page_size,
           int64_t chunk, ThreadPool* threads = nullptr) {
  Moba moba(table, shape, inputs.length, page_size, threads);
  Result result;
  for (int64_t first = 0; first < inputs.length; first += chunk) {
    moba.step(inputs, first, std::min(chunk, inputs.length - first), result);
  }
  return result;
}

bool same(const Result& a, const Result& b) {
  return same_bits(a.out, b.out) && a.runs == b.runs && a.counts == b.counts;
}

// The blocks that row t of a head attends to, in f64.
std::vector<bool> chosen_blocks(const Shape& shape, const std::vector<float>& q,
                                const std::vector<float>& k, int64_t t, int64_t head) {
  int64_t own = t / shape.block, d = shape.head_dim;
  std::vector<double> scores(own, 0);
  for (int64_t b = 0; b < own; ++b) {
    for (int64_t j = b * shape.block; j < (b + 1) * shape.block; ++j) {
      for (int64_t g = 0; g < shape.group; ++g) {
        for (int64_t c = 0; c < d; ++c) {
          scores[b] += double{q[t * shape.q_width() + (head * shape.group + g) * d + c]} *
                       double{k[j * shape.k_width() + head * d + c]};
        }
      }
    }
  }
  std::vector<int64_t> order(own);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<bool> chosen(own + 1, false);
  chosen[own] = true;
  for (int64_t i = 0; i < std::min(own, shape.top_k - 1); ++i) chosen[order[i]] = true;
  return chosen;
}

// Attention in f64 over every key, with a mask for the others.
void expect_near_masked(const KernelTable& table, const Shape& shape, const Inputs& inputs,
                        const Result& result) {
  auto k = as_stored(inputs.k, shape.dtype, {.width = shape.head_dim});
  auto v = as_stored(inputs.v, shape.dtype, {.width = shape.head_dim});
  int64_t d = shape.head_dim;
  std::string_view name = table.name;
  bool gpu = name == cuda_table().name && d == 64;
  bool pairs = gpu || name == "avx512_bf16" || name.ends_with("amx");
  bool narrow = (pairs && shape.dtype == DType::kBF16) || (gpu && shape.dtype != DType::kF32);
  double bound = narrow ? 0.03 : 1e-4;
  for (int64_t t = 0; t < inputs.length; ++t) {
    for (int64_t h = 0; h < shape.kv_heads * shape.group; ++h) {
      int64_t head = h / shape.group;
      std::vector<bool> chosen = chosen_blocks(shape, inputs.q, k, t, head);
      std::vector<double> exact(d, 0);
      double sum = 0;
      int32_t count = 0;
      for (int64_t j = 0; j <= t; ++j) {
        if (!chosen[j / shape.block]) continue;
        ++count;
        double score = 0;
        for (int64_t c = 0; c < d; ++c) {
          score += double{inputs.q[t * shape.q_width() + h * d + c]} *
                   double{k[j * shape.k_width() + head * d + c]};
        }
        double weight = std::exp(score / std::sqrt(static_cast<double>(d)));
        sum += weight;
        for (int64_t c = 0; c < d; ++c) {
          exact[c] += weight * double{v[j * shape.k_width() + head * d + c]};
        }
      }
      ASSERT_EQ(result.counts[t * shape.kv_heads + head], count) << "row " << t;
      for (int64_t c = 0; c < d; ++c) {
        ASSERT_NEAR(result.out[t * shape.q_width() + h * d + c], exact[c] / sum, bound)
            << "row " << t << " head " << h << " column " << c;
      }
    }
  }
}

TEST(SparseAttention, EveryTableIsNearF64WithMasks) {
  Random random(1);
  for (const KernelTable* table : tables_and_emulated()) {
    for (DType dtype : kPageTypes) {
      for (auto [block, top_k, group, head_dim] :
           {std::tuple{16, 3, 2, 32}, {8, 1, 3, 13}, {32, 2, 1, 64}}) {
        Shape shape = {
            .group = group, .head_dim = head_dim, .dtype = dtype, .block = block, .top_k = top_k};
        SCOPED_TRACE(fmt::format("{} {} block {}", table->name, dtype_name(dtype), block));
        Inputs inputs(shape, 150, random);
        expect_near_masked(*table, shape, inputs, run(*table, shape, inputs, 16, 150));
      }
    }
  }
}

TEST(SparseAttention, ChunksPagesAndThreadsChangeNoBit) {
  Random random(2);
  for (const KernelTable* table : tables_and_emulated()) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kI8}) {
      Shape shape = {.head_dim = dtype == DType::kBF16 ? 64 : 32, .dtype = dtype};
      Inputs inputs(shape, 200, random);
      Result whole = run(*table, shape, inputs, 16, 200);
      for (int64_t page : {4, 8, 32, 64, 1024}) {
        EXPECT_TRUE(same(run(*table, shape, inputs, page, 200), whole)) << table->name << page;
      }
      for (int64_t chunk : {1, 4, 15, 16, 17}) {
        EXPECT_TRUE(same(run(*table, shape, inputs, 4, chunk), whole)) << table->name << chunk;
      }
      ThreadPool threads(3);
      EXPECT_TRUE(same(run(*table, shape, inputs, 8, 50, &threads), whole)) << table->name;
    }
  }
}

// Blocks of whole parts: rows of a span are gathered, single rows are not.
TEST(SparseAttention, GatheredRowsHaveTheBitsOfSingleOnes) {
  Random random(3);
  ThreadPool threads(3);
  for (const KernelTable* table : tables_and_emulated()) {
    if (std::string_view(table->name) == "portable") continue;  // slow, and gathers nothing
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF8E4M3}) {
      Shape shape = {.kv_heads = 1, .head_dim = 32, .dtype = dtype, .block = 512, .top_k = 2};
      Inputs inputs(shape, 2200, random);
      Result whole = run(*table, shape, inputs, 64, 2200);
      EXPECT_TRUE(same(run(*table, shape, inputs, 16, 300, &threads), whole)) << table->name;
      Moba moba(*table, shape, inputs.length, 64);
      Result rows;
      moba.step(inputs, 0, 2100, rows);
      for (int64_t t = 2100; t < 2200; ++t) moba.step(inputs, t, 1, rows);
      EXPECT_TRUE(same(rows, whole)) << table->name << " " << dtype_name(dtype);
    }
  }
}

TEST(SparseAttention, WithEverythingSelectedTheBitsAreThoseOfAttentionToAll) {
  Random random(4);
  for (const KernelTable* table : tables_and_emulated()) {
    for (auto [block, dtype] : {std::pair{16, DType::kF32},
                                {16, DType::kBF16},
                                {512, DType::kBF16},
                                {16, DType::kI8},
                                {512, DType::kF32}}) {
      int64_t length = block == 512 ? 1300 : 200;
      if (block == 512 && std::string_view(table->name) == "portable") continue;  // slow
      int64_t head_dim = dtype == DType::kBF16 ? 64 : 32;
      Shape shape = {
          .kv_heads = 1, .head_dim = head_dim, .dtype = dtype, .block = block, .top_k = 20};
      Inputs inputs(shape, length, random);
      Moba moba(*table, shape, length, 16);
      Result result;
      moba.step(inputs, 0, length, result);
      SpanArgs span = {.row_count = static_cast<int32_t>(length)};
      EXPECT_TRUE(same_bits(moba.attend(inputs.q.data(), span, {}), result.out))
          << table->name << " " << dtype_name(dtype) << " " << block;
    }
  }
}

TEST(SparseAttention, EqualScoresTakeTheFirstBlocks) {
  Random random(5);
  for (const KernelTable* table : tables_and_emulated()) {
    for (bool zero_queries : {false, true}) {
      Shape shape = {.kv_heads = 1};
      Inputs inputs(shape, 100, random);
      std::ranges::fill(zero_queries ? inputs.q : inputs.k, zero_queries ? 0.0f : 0.5f);
      Result result = run(*table, shape, inputs, 16, 100);
      std::vector<KeyRun> expected = {{0, 0}, {96, 32}};
      EXPECT_EQ(result.runs[99], expected) << table->name;
      EXPECT_EQ(result.counts[99], 36) << table->name;
    }
  }
}

// Against sorting, over rules that other families have.
TEST(SelectKeys, TakesTheBestAndTheForcedOnes) {
  Random random(6);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const KernelTable* table : tables_and_emulated()) {
    for (SelectionRule rule : {SelectionRule{1, 16, 0, 0}, SelectionRule{4, 5, 1, 2},
                               SelectionRule{8, 1, 0, 1}, SelectionRule{1, 300, 0, 0}}) {
      constexpr int64_t kRows = 7;
      SpanArgs span = {.row_count = kRows, .first_position = 700};
      int64_t entries = 706 / rule.entry_tokens + 1;
      std::vector<float> scores(kRows * entries);
      for (float& x : scores) {
        x = static_cast<float>(random.below(40) - 20);  // many equals
        if (random.below(20) == 0) x = NAN;
        if (random.below(20) == 0) x = random.below(2) == 0 ? -0.0f : -kInf;
      }
      std::vector<KeyRun> runs(kRows * rule.top_k);
      std::vector<int32_t> run_counts(kRows), key_counts(kRows);
      table->select_keys({.scores = scores.data(),
                          .entries_max = entries,
                          .rule = rule,
                          .spans = &span,
                          .span_count = 1,
                          .part = {0, kRows},
                          .runs = runs.data(),
                          .run_counts = run_counts.data(),
                          .key_counts = key_counts.data(),
                          .runs_max = rule.top_k});
      for (int64_t r = 0; r < kRows; ++r) {
        int64_t t = 700 + r, all = t / rule.entry_tokens + 1;
        std::vector<int64_t> order(all);
        std::iota(order.begin(), order.end(), 0);
        auto key = [&](int64_t b) {
          if (b < rule.forced_first || b >= all - rule.forced_last) return kInf;
          float x = scores[r * entries + b];
          return x == x ? x : -kInf;
        };
        std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return key(a) > key(b); });
        std::vector<bool> expected(t + 1, false), got(t + 1, false);
        for (int64_t i = 0; i < rule.top_k; ++i) {
          for (int64_t j = 0; j < rule.entry_tokens; ++j) {
            int64_t position = order[i] * rule.entry_tokens + j;
            if (position <= t) expected[position] = true;
          }
        }
        const KeyRun* own = runs.data() + r * rule.top_k;
        for (int32_t n = 0; n < run_counts[r]; ++n) {
          int32_t end = n + 1 < run_counts[r] ? own[n + 1].rank : key_counts[r];
          for (int32_t rank = own[n].rank; rank < end; ++rank) {
            got[own[n].position + rank - own[n].rank] = true;
          }
        }
        EXPECT_EQ(got, expected) << table->name << " row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace banyan::sparse_test
