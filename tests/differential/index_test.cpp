// The index of DeepSeek's sparse attention, and attention to what is selected: every table against
// f64, against itself in other spans, pages, parts and numbers of threads, and against dense
// attention to the same keys, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "differential/emulated_table.h"
#include "differential/kernels.h"

namespace banyan::index_test {
namespace {

using namespace test;  // NOLINT

// Rows of one sequence in pages, in an order of their own.
class PagedRows {
 public:
  PagedRows(const std::vector<float>& values, DType dtype, const RowShape& shape, int64_t page_size)
      : page_size_(page_size), row_bytes_(state_row_bytes(dtype, shape)) {
    std::vector<char> bytes = store_rows(values, dtype, shape);
    int64_t rows = std::ssize(bytes) / row_bytes_, pages = (rows + page_size - 1) / page_size;
    for (int64_t p = 0; p < pages; ++p) table_.push_back(static_cast<int32_t>((p * 5 + 3) % 1009));
    pool_.assign(1009 * page_size * row_bytes_, char(0xff));
    for (int64_t j = 0; j < rows; ++j) {
      int64_t row = table_[j / page_size] * page_size + j % page_size;
      std::memcpy(pool_.data() + row * row_bytes_, bytes.data() + j * row_bytes_, row_bytes_);
    }
  }
  const void* pool() const { return pool_.data(); }
  const int32_t* table() const { return table_.data(); }
  int64_t page_size() const { return page_size_; }

 private:
  int64_t page_size_, row_bytes_;
  std::vector<int32_t> table_;
  std::vector<char> pool_;
};

// Rows [first, first + count) in spans of at most `chunk`.
std::vector<SpanArgs> spans_of(int64_t first, int64_t count, int64_t chunk) {
  std::vector<SpanArgs> spans;
  for (int64_t i = 0; i < count; i += chunk) {
    spans.push_back({.row_begin = static_cast<int32_t>(i),
                     .row_count = static_cast<int32_t>(std::min(chunk, count - i)),
                     .first_position = static_cast<int32_t>(first + i)});
  }
  return spans;
}

// For a table that multiplies these keys with rounded queries.
double tolerance(const KernelTable& table, DType dtype) {
  std::string_view name = table.name;
  bool pairs = name == "avx512_bf16" || name.ends_with("amx");
  return pairs && dtype == DType::kBF16 ? 3e-2 : 2e-5;
}

struct Index {
  int64_t heads, width, length;
  DType dtype;
  std::vector<float> keys, q, weights;  // as stored; of all rows

  Index(int64_t heads, int64_t width, int64_t length, DType dtype, Random& random)
      : heads(heads), width(width), length(length), dtype(dtype) {
    raw_ = random.normals(length * width);
    keys = as_stored(raw_, dtype, {.width = width});
    q = random.normals(length * heads * width);
    weights = random.normals(length * heads);
  }
  PagedRows pages(int64_t page_size) const { return {raw_, dtype, {.width = width}, page_size}; }

  // Scores of the last `count` rows, 0 where they see nothing, `part` rows in a launch.
  std::vector<float> score(const KernelTable& table, const PagedRows& rows, int64_t count,
                           int64_t chunk, int64_t part, ThreadPool* threads = nullptr) const {
    std::vector<SpanArgs> spans = spans_of(length - count, count, chunk);
    std::vector<float> scores(count * length, NAN);
    for (int64_t begin = 0; begin < count; begin += part) {
      table.index_scores({.launch = {.threads = threads},
                          .q = q.data() + (length - count) * heads * width,
                          .q_row_stride = heads * width,
                          .weights = weights.data() + (length - count) * heads,
                          .weights_row_stride = heads,
                          .keys = rows.pool(),
                          .key_dtype = dtype,
                          .heads = heads,
                          .width = width,
                          .page_size = rows.page_size(),
                          .scores = scores.data() + begin * length,
                          .entries_max = length,
                          .spans = spans.data(),
                          .span_count = std::ssize(spans),
                          .part = {begin, std::min(part, count - begin)},
                          .page_table = rows.table()});
    }
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t j = length - count + r + 1; j < length; ++j) scores[r * length + j] = 0;
    }
    return scores;
  }

  // By f64, with queries rounded where keys are codes.
  double exact(int64_t row, int64_t key) const {
    double sum = 0;
    for (int64_t h = 0; h < heads; ++h) {
      auto begin = q.begin() + (row * heads + h) * width;
      std::vector<float> query(begin, begin + width);
      if (is_quantised_state(dtype)) query = as_stored(query, dtype, {.width = width});
      double dot = 0;
      for (int64_t c = 0; c < width; ++c) dot += double{query[c]} * keys[key * width + c];
      sum += weights[row * heads + h] * std::max(dot, 0.0);
    }
    return sum;
  }

 private:
  std::vector<float> raw_;
};

TEST(IndexScores, AgreeWithF64) {
  constexpr int64_t kLength = 83;
  Random random(21);
  for (auto [heads, width] : {std::pair{1, 8}, {5, 40}, {9, 64}, {32, 128}}) {
    for (DType dtype : kPageTypes) {
      Index index(heads, width, kLength, dtype, random);
      PagedRows rows = index.pages(16);
      double size = std::sqrt(static_cast<double>(heads * width));
      for (const KernelTable* table : tables_and_emulated()) {
        std::vector<float> scores = index.score(*table, rows, kLength, kLength, kLength);
        for (int64_t row : {0, 1, 17, 40, 82}) {
          for (int64_t key = 0; key <= row; ++key) {
            ASSERT_NEAR(scores[row * kLength + key], index.exact(row, key),
                        tolerance(*table, dtype) * size)
                << table->name << ", " << heads << " heads of " << width << ", row " << row
                << ", key " << key;
          }
        }
      }
    }
  }
}

TEST(IndexScores, AreTheSameInAnySpanPagePartAndNumberOfThreads) {
  constexpr int64_t kLength = 1100, kCount = 11;
  ThreadPool three(3);
  Random random(22);
  for (auto [heads, width] : {std::pair{5, 40}, {11, 128}}) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF8E4M3}) {
      Index index(heads, width, kLength, dtype, random);
      PagedRows rows = index.pages(64), small_pages = index.pages(2);
      for (const KernelTable* table : tables_and_emulated()) {
        std::vector<float> alone = index.score(*table, rows, kCount, 1, 1);
        for (auto [chunk, part] : {std::pair{11, 11}, {4, 11}, {5, 3}}) {
          EXPECT_TRUE(same_bits(index.score(*table, rows, kCount, chunk, part, &three), alone))
              << table->name << ", spans of " << chunk;
        }
        EXPECT_TRUE(same_bits(index.score(*table, small_pages, kCount, 7, 11), alone))
            << table->name;
      }
    }
  }
}

// Every score is 0; among equals the first are chosen.
TEST(IndexScores, OfAQueryOfZerosChooseTheFirstKeys) {
  constexpr int64_t kLength = 70, kTopK = 9;
  Random random(23);
  Index index(4, 32, kLength, DType::kBF16, random);
  std::ranges::fill(index.q, 0.0f);
  PagedRows rows = index.pages(16);
  for (const KernelTable* table : tables_and_emulated()) {
    std::vector<float> scores = index.score(*table, rows, 1, 1, 1);
    SpanArgs span = {.row_count = 1, .first_position = kLength - 1};
    std::vector<KeyRun> runs(kTopK);
    int32_t run_count = 0, key_count = 0;
    table->select_keys({.scores = scores.data(),
                        .entries_max = kLength,
                        .rule = {.top_k = kTopK},
                        .spans = &span,
                        .span_count = 1,
                        .part = {0, 1},
                        .runs = runs.data(),
                        .run_counts = &run_count,
                        .key_counts = &key_count,
                        .runs_max = kTopK});
    EXPECT_EQ(run_count, 1) << table->name;
    EXPECT_EQ(runs[0], (KeyRun{0, 0})) << table->name;
    EXPECT_EQ(key_count, kTopK) << table->name;
  }
}

// A NaN key has a NaN score, or 0, and changes no other score.
TEST(IndexScores, OfAKeyThatIsNoNumberHarmNoOther) {
  constexpr int64_t kLength = 60, kSpoilt = 33;
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF8E4M3}) {
    Random random(24);
    Index index(6, 64, kLength, dtype, random);
    std::vector<float> values = index.keys;
    PagedRows rows(values, dtype, {.width = 64}, 16);
    for (int64_t c = 0; c < 64; ++c) values[kSpoilt * 64 + c] = NAN;
    PagedRows spoilt(values, dtype, {.width = 64}, 16);
    for (const KernelTable* table : tables_and_emulated()) {
      std::vector<float> before = index.score(*table, rows, 1, 1, 1);
      std::vector<float> after = index.score(*table, spoilt, 1, 1, 1);
      EXPECT_FALSE(after[kSpoilt] > 0) << table->name;
      before[kSpoilt] = after[kSpoilt] = 0;
      EXPECT_TRUE(same_bits(after, before)) << table->name;
    }
  }
}

TEST(Hadamard, IsOrthogonalAndItsOwnInverse) {
  Random random(25);
  std::vector<float> x = random.normals(3 * 2 * 64), once(x.size()), twice(x.size());
  for (const KernelTable* table : tables()) {
    table->hadamard(
        {.x = x.data(), .x_row_stride = 128, .y = once.data(), .rows = 3, .groups = 2, .dim = 64});
    double first = 0;  // its first column is the sum
    for (int64_t c = 0; c < 64; ++c) first += x[c] / 8.0;
    EXPECT_NEAR(once[0], first, 1e-5);
    table->hadamard({.x = once.data(),
                     .x_row_stride = 128,
                     .y = twice.data(),
                     .rows = 3,
                     .groups = 2,
                     .dim = 64});
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(twice[i], x[i], 1e-5) << table->name;
  }
}

TEST(LayerNorm, AgreesWithF64) {
  constexpr int64_t kDim = 37;
  Random random(26);
  std::vector<float> x = random.normals(4 * 40, 3), weight = random.normals(kDim),
                     bias = random.normals(kDim), y(4 * kDim);
  for (const KernelTable* table : tables()) {
    table->layer_norm({.x = x.data(),
                       .x_row_stride = 40,
                       .weight = weight.data(),
                       .bias = bias.data(),
                       .y = y.data(),
                       .rows = 4,
                       .dim = kDim,
                       .eps = 1e-6f});
    for (int64_t r = 0; r < 4; ++r) {
      double mean = 0, square = 0;
      for (int64_t c = 0; c < kDim; ++c) mean += x[r * 40 + c] / double{kDim};
      for (int64_t c = 0; c < kDim; ++c) square += std::pow(x[r * 40 + c] - mean, 2) / kDim;
      for (int64_t c = 0; c < kDim; ++c) {
        double exact = (x[r * 40 + c] - mean) / std::sqrt(square + 1e-6) * weight[c] + bias[c];
        ASSERT_NEAR(y[r * kDim + c], exact, 1e-5) << table->name;
      }
    }
  }
}

// ---- Latents that are selected -----------------------------------------------------------------

struct LatentCase {
  int64_t heads, width, rank;
  DType dtype;
  RowShape row() const { return {.width = width, .split = rank < width ? rank : 0}; }
};

// The choices of rows, as select_keys writes them.
struct Choices {
  int64_t runs_max;
  std::vector<KeyRun> runs;
  std::vector<int32_t> run_counts, key_counts;

  Choices(int64_t rows, int64_t runs_max)
      : runs_max(runs_max), runs(rows * runs_max), run_counts(rows), key_counts(rows) {}
  void set(int64_t row, const std::vector<int64_t>& positions) {
    int64_t next = -1;
    for (int64_t position : positions) {
      if (position != next) {
        runs[row * runs_max + run_counts[row]++] = {static_cast<int32_t>(position),
                                                    key_counts[row]};
      }
      ++key_counts[row];
      next = position + 1;
    }
  }
  SelectedKeys selected() const {
    return {.runs = runs.data(),
            .run_counts = run_counts.data(),
            .key_counts = key_counts.data(),
            .runs_max = runs_max};
  }
};

std::vector<float> attend(const KernelTable& table, const LatentCase& c, const PagedRows& rows,
                          const std::vector<float>& q, const std::vector<SpanArgs>& spans,
                          const SelectedKeys& selected, ThreadPool* threads = nullptr) {
  std::vector<float> out(q.size() / c.width * c.rank, NAN);
  table.latent_attention({.launch = {.threads = threads},
                          .q = q.data(),
                          .q_row_stride = c.heads * c.width,
                          .pool = rows.pool(),
                          .pool_dtype = c.dtype,
                          .out = out.data(),
                          .heads = c.heads,
                          .width = c.width,
                          .rank = c.rank,
                          .page_size = rows.page_size(),
                          .scale = 0.2f,
                          .spans = spans.data(),
                          .span_count = std::ssize(spans),
                          .page_table = rows.table(),
                          .selected = selected});
  return out;
}

constexpr LatentCase kLatentCases[] = {{3, 40, 24, DType::kF32},    {26, 37, 33, DType::kF8E4M3},
                                       {5, 96, 64, DType::kBF16},   {40, 96, 64, DType::kBF16},
                                       {130, 64, 32, DType::kBF16}, {20, 64, 32, DType::kI8}};

// With all keys selected, the bits are those of dense attention.
TEST(SelectedLatents, OfAllKeysAreDense) {
  constexpr int64_t kLength = 620, kCount = 5;
  ThreadPool three(3);
  Random random(27);
  for (const LatentCase& c : kLatentCases) {
    PagedRows rows(random.normals(kLength * c.width), c.dtype, c.row(), 16);
    std::vector<float> q = random.normals(kCount * c.heads * c.width);
    Choices all(kCount, 1);
    for (int64_t r = 0; r < kCount; ++r) {
      std::vector<int64_t> positions(kLength - kCount + r + 1);
      std::iota(positions.begin(), positions.end(), 0);
      all.set(r, positions);
    }
    std::vector<SpanArgs> spans = spans_of(kLength - kCount, kCount, kCount);
    for (const KernelTable* table : tables_and_emulated()) {
      std::vector<float> dense = attend(*table, c, rows, q, spans, {});
      EXPECT_TRUE(same_bits(attend(*table, c, rows, q, spans, all.selected()), dense))
          << table->name << ", " << c.heads << " heads of " << c.width;
      EXPECT_TRUE(same_bits(attend(*table, c, rows, q, spans, all.selected(), &three), dense))
          << table->name << ", " << c.heads << " heads of " << c.width;
    }
  }
}

// The bits of a row are those of dense attention to a sequence of only its selected keys, whatever
// the pages and the rest of the launch.
TEST(SelectedLatents, AreASequenceOfTheirOwn) {
  constexpr int64_t kLength = 1100, kCount = 5, kKeys = 640;
  ThreadPool two(2), five(5);
  Random random(28);
  for (const LatentCase& c : kLatentCases) {
    std::vector<float> values = random.normals(kLength * c.width);
    PagedRows rows(values, c.dtype, c.row(), 64), small_pages(values, c.dtype, c.row(), 4);
    std::vector<float> q = random.normals(kCount * c.heads * c.width);
    Choices choices(kCount, kKeys);
    std::vector<std::vector<int64_t>> chosen(kCount);
    for (int64_t r = 0; r < kCount; ++r) {
      int64_t keys = kKeys - 60 * r;  // on both sides of a part
      for (int64_t j = 0; j <= kLength - kCount + r; ++j) {
        if (random.below(kLength - kCount + r + 1 - j) < keys - std::ssize(chosen[r])) {
          chosen[r].push_back(j);
        }
      }
      choices.set(r, chosen[r]);
    }
    for (const KernelTable* table : tables_and_emulated()) {
      std::vector<float> expected;
      for (int64_t r = 0; r < kCount; ++r) {
        std::vector<float> own;
        for (int64_t j : chosen[r]) {
          own.insert(own.end(), values.begin() + j * c.width, values.begin() + (j + 1) * c.width);
        }
        PagedRows alone(own, c.dtype, c.row(), 32);
        std::vector<float> query(q.begin() + r * c.heads * c.width,
                                 q.begin() + (r + 1) * c.heads * c.width);
        std::vector<float> out =
            attend(*table, c, alone, query, spans_of(std::ssize(chosen[r]) - 1, 1, 1), {});
        expected.insert(expected.end(), out.begin(), out.end());
      }
      SelectedKeys selected = choices.selected();
      for (int64_t chunk : {1, 5}) {
        std::vector<SpanArgs> spans = spans_of(kLength - kCount, kCount, chunk);
        for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &two, &five}) {
          EXPECT_TRUE(same_bits(attend(*table, c, rows, q, spans, selected, threads), expected))
              << table->name << ", " << c.heads << " heads of " << c.width << ", spans of "
              << chunk;
        }
        EXPECT_TRUE(same_bits(attend(*table, c, small_pages, q, spans, selected), expected))
            << table->name;
      }
    }
  }
}

}  // namespace
}  // namespace banyan::index_test
