// Latent attention of every table: against f64, and against itself bit for bit in other spans,
// pages, batches and numbers of threads.
//
// The pool starts as NaN, so a row that nobody wrote shows.
#include <gtest/gtest.h>

#include <cmath>

#include "differential/emulated_table.h"
#include "differential/kernels.h"

namespace banyan::latent_attention_test {
namespace {

using namespace test;  // NOLINT

struct Shape {
  int64_t heads, width, rank;
  RowShape row() const { return {.width = width, .split = rank < width ? rank : 0}; }
};

constexpr Shape kShapes[] = {{1, 8, 8},    {3, 40, 24},  {16, 96, 64},
                             {26, 37, 33}, {33, 96, 96}, {5, 576, 512}};

// The latents of one sequence in pages, in an order of their own.
class Latents {
 public:
  Latents(const Shape& shape, int64_t length, int64_t page_size, DType dtype, Random& random)
      : shape_(shape), page_size_(page_size), dtype_(dtype) {
    std::vector<char> bytes = store_rows(random.normals(length * shape.width), dtype, shape.row());
    rows_ = load_rows(bytes, dtype, shape.row());
    int64_t pages = (length + page_size - 1) / page_size;
    row_bytes_ = state_row_bytes(dtype, shape.row());
    for (int64_t p = 0; p < pages; ++p) pages_.push_back(static_cast<int32_t>((p * 5 + 3) % 97));
    pool_.assign(97 * page_size * row_bytes_, char(0xff));
    for (int64_t j = 0; j < length; ++j) {
      std::memcpy(row_at(j), bytes.data() + j * row_bytes_, row_bytes_);
    }
  }

  // Makes the latent of `position` NaN.
  void spoil(int64_t position) { std::memset(row_at(position), 0xff, row_bytes_); }

  // The results of rows [first, first + count), in spans of at most `chunk`.
  std::vector<float> attend(const KernelTable& table, const std::vector<float>& q, int64_t first,
                            int64_t count, int64_t chunk, ThreadPool* threads = nullptr) const {
    std::vector<SpanArgs> spans;
    for (int64_t i = 0; i < count; i += chunk) {
      spans.push_back({.row_begin = static_cast<int32_t>(i),
                       .row_count = static_cast<int32_t>(std::min(chunk, count - i)),
                       .first_position = static_cast<int32_t>(first + i)});
    }
    std::vector<float> out(count * shape_.heads * shape_.rank, NAN);
    table.latent_attention({.launch = {.threads = threads},
                            .q = q.data() + first * shape_.heads * shape_.width,
                            .q_row_stride = shape_.heads * shape_.width,
                            .pool = pool_.data(),
                            .pool_dtype = dtype_,
                            .out = out.data(),
                            .heads = shape_.heads,
                            .width = shape_.width,
                            .rank = shape_.rank,
                            .page_size = page_size_,
                            .scale = scale(),
                            .spans = spans.data(),
                            .span_count = std::ssize(spans),
                            .page_table = pages_.data()});
    return out;
  }

  // Of the rows from `first` on, and zero for those before.
  std::vector<float> queries(int64_t first, int64_t length, Random& random) const {
    int64_t row = shape_.heads * shape_.width;
    std::vector<float> q(first * row), own = random.normals((length - first) * row);
    q.insert(q.end(), own.begin(), own.end());
    return q;
  }

  float scale() const { return 1 / std::sqrt(static_cast<float>(shape_.width)); }

  // Row `position`, head `head` in f64.
  std::vector<double> exact(const std::vector<float>& q, int64_t position, int64_t head) const {
    const float* query = q.data() + (position * shape_.heads + head) * shape_.width;
    std::vector<double> scores, out(shape_.rank);
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j <= position; ++j) {
      double score = 0;
      for (int64_t c = 0; c < shape_.width; ++c) {
        score += double{query[c]} * rows_[j * shape_.width + c];
      }
      scores.push_back(score * scale());
      max = std::max(max, scores.back());
    }
    for (double score : scores) sum += std::exp(score - max);
    for (int64_t j = 0; j <= position; ++j) {
      double weight = std::exp(scores[j] - max) / sum;
      for (int64_t c = 0; c < shape_.rank; ++c) out[c] += weight * rows_[j * shape_.width + c];
    }
    return out;
  }

 private:
  char* row_at(int64_t position) {
    int64_t row = pages_[position / page_size_] * page_size_ + position % page_size_;
    return pool_.data() + row * row_bytes_;
  }

  Shape shape_;
  int64_t page_size_, row_bytes_ = 0;
  DType dtype_;
  std::vector<float> rows_;
  std::vector<int32_t> pages_;
  std::vector<char> pool_;
};

// What a table may round of a product whose keys are stored as `dtype`.
double tolerance(const KernelTable& table, DType dtype) {
  std::string_view name = table.name;
  bool gpu = name == cuda_table().name;
  bool pairs = gpu || name == "avx512_bf16" || name.ends_with("amx");
  bool rounds = (pairs && dtype == DType::kBF16) || (gpu && dtype != DType::kF32);
  return rounds ? 2e-2 : 2e-5;
}

void expect_f64(const Shape& shape, int64_t length, std::initializer_list<int64_t> positions,
                Random& random) {
  for (DType dtype : kPageTypes) {
    Latents latents(shape, length, 16, dtype, random);
    std::vector<float> q = random.normals(length * shape.heads * shape.width);
    for (const KernelTable* table : tables_and_emulated()) {
      std::vector<float> out = latents.attend(*table, q, 0, length, length);
      for (int64_t position : positions) {
        for (int64_t head = 0; head < shape.heads; ++head) {
          std::vector<double> exact = latents.exact(q, position, head);
          for (int64_t c = 0; c < shape.rank; ++c) {
            ASSERT_NEAR(out[(position * shape.heads + head) * shape.rank + c], exact[c],
                        tolerance(*table, dtype))
                << table->name << " width " << shape.width << " position " << position << " head "
                << head << " column " << c;
          }
        }
      }
    }
  }
}

TEST(LatentAttention, AgreesWithF64) {
  Random random(11);
  for (const Shape& shape : kShapes) {
    expect_f64(shape, 150, {0, 1, 17, 63, 64, 65, 149}, random);
  }
}

TEST(LatentAttention, OfAFewRowsAgreesWithF64) {
  Random random(17);
  expect_f64({3, 40, 24}, 20, {0, 15, 16, 19}, random);
}

TEST(LatentAttention, ARowIsTheSameInAnySpanPageAndNumberOfThreads) {
  constexpr int64_t kLength = 110;
  ThreadPool two(2), five(5);
  for (const Shape& shape : kShapes) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kI8, DType::kF8E4M3}) {
      // Only bf16 has a path of its own for these; the others take every path.
      if (shape.width > 512 && dtype != DType::kBF16) continue;
      Random random(12);
      Latents latents(shape, kLength, 64, dtype, random);
      Random again(12);
      Latents small_pages(shape, kLength, 2, dtype, again);
      std::vector<float> q = random.normals(kLength * shape.heads * shape.width);
      for (const KernelTable* table : tables_and_emulated()) {
        std::vector<float> whole = latents.attend(*table, q, 0, kLength, kLength);
        auto rows = [&](int64_t first, int64_t count) {
          int64_t row = shape.heads * shape.rank;
          return std::vector<float>(whole.begin() + first * row,
                                    whole.begin() + (first + count) * row);
        };
        for (int64_t chunk : {1, 7, 70}) {
          EXPECT_TRUE(same_bits(latents.attend(*table, q, 0, kLength, chunk, &two), whole));
        }
        EXPECT_TRUE(same_bits(small_pages.attend(*table, q, 0, kLength, 31, &five), whole));
        for (auto [first, count] : {std::pair{109, 1}, {64, 3}, {5, 70}}) {
          EXPECT_TRUE(
              same_bits(latents.attend(*table, q, first, count, count, &five), rows(first, count)))
              << table->name << " width " << shape.width << " rows from " << first;
        }
      }
    }
  }
}

// Contexts of several parts, which workers share: few rows and many, exact and equal to the bit.
TEST(LatentAttention, PartsOfALongContextAreMergedInOneOrder) {
  constexpr int64_t kLength = 1100, kFirst = 1090;
  ThreadPool two(2), five(5);
  for (const Shape& shape : {Shape{16, 96, 64}, {26, 37, 33}, {136, 32, 32}}) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kI8, DType::kF8E4M3}) {
      Random random(13);
      Latents latents(shape, kLength, 16, dtype, random);
      std::vector<float> q = latents.queries(kFirst, kLength, random);
      int64_t row = shape.heads * shape.rank;
      for (const KernelTable* table : tables_and_emulated()) {
        std::vector<float> alone = latents.attend(*table, q, kFirst, kLength - kFirst, 10);
        for (int64_t head : {int64_t{0}, shape.heads - 1}) {
          std::vector<double> exact = latents.exact(q, kLength - 1, head);
          const float* out = &alone[9 * row + head * shape.rank];
          for (int64_t c = 0; c < shape.rank; ++c) {
            ASSERT_NEAR(out[c], exact[c], tolerance(*table, dtype)) << table->name << " " << c;
          }
        }
        for (ThreadPool* threads : {&two, &five}) {
          EXPECT_TRUE(same_bits(latents.attend(*table, q, kFirst, 10, 3, threads), alone))
              << table->name;
          std::vector<float> last(alone.end() - row, alone.end());
          EXPECT_TRUE(same_bits(latents.attend(*table, q, kLength - 1, 1, 1, threads), last))
              << table->name;
        }
      }
    }
  }
}

// Rows of a span that differ in how many parts they see.
TEST(LatentAttention, RowsOnBothSidesOfAPartsEndAreTheirOwn) {
  constexpr int64_t kLength = 1030, kFirst = 1018, kCount = 12;
  ThreadPool three(3);
  for (const Shape& shape : {Shape{20, 64, 32}, {3, 576, 512}}) {
    Random random(14);
    Latents latents(shape, kLength, 16, DType::kBF16, random);
    std::vector<float> q = latents.queries(kFirst, kLength, random);
    for (const KernelTable* table : tables_and_emulated()) {
      std::vector<float> alone = latents.attend(*table, q, kFirst, kCount, 1);
      for (int64_t chunk : {5, 11, 12}) {
        EXPECT_TRUE(same_bits(latents.attend(*table, q, kFirst, kCount, chunk, &three), alone))
            << table->name << " " << chunk;
      }
      EXPECT_TRUE(same_bits(latents.attend(*table, q, kFirst, kCount, kCount), alone))
          << table->name;
    }
  }
}

TEST(LatentAttention, ALatentThatIsNoNumberReachesOnlyTheRowsThatSeeIt) {
  constexpr int64_t kLength = 550, kFirst = 510, kSpoilt = 531;
  ThreadPool two(2);
  for (auto [shape, dtype] : {std::pair{Shape{20, 64, 32}, DType::kF32},
                              {{20, 64, 32}, DType::kBF16},
                              {{3, 576, 512}, DType::kBF16},
                              {{20, 64, 32}, DType::kI8},
                              {{20, 64, 32}, DType::kF8E4M3}}) {
    int64_t row = shape.heads * shape.rank;
    Random random(15);
    Latents latents(shape, kLength, 16, dtype, random);
    std::vector<float> q = latents.queries(kFirst, kLength, random);
    for (const KernelTable* table : tables_and_emulated()) {
      std::vector<float> before = latents.attend(*table, q, kFirst, kSpoilt - kFirst, 1);
      Latents spoilt = latents;
      for (int64_t position : {kSpoilt, kSpoilt + 2}) spoilt.spoil(position);
      for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &two}) {
        std::vector<float> all =
            spoilt.attend(*table, q, kFirst, kLength - kFirst, kLength - kFirst, threads);
        std::vector<float> unseen(all.begin(), all.begin() + std::ssize(before));
        EXPECT_TRUE(same_bits(unseen, before)) << table->name;
        for (auto it = all.begin() + std::ssize(before); it < all.end(); it += row) {
          ASSERT_TRUE(std::isnan(*it)) << table->name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace banyan::latent_attention_test
