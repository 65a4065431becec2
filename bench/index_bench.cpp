// What an index of tokens saves: the attention of one row after a long context, in the sizes of
// DeepSeek-V3.2, to all tokens and to the 2,048 that the index chooses. The latter includes scoring
// and choosing. Samples alternate, so that other load on the machine affects both alike.
//
//   cmake --preset release -DBANYAN_BENCH=ON
//   cmake --build --preset release --target index_bench
//
//   build/release/bench/index_bench [CONTEXT [THREADS [SAMPLES [KERNELS]]]]
//
// Latents are bf16, queries and keys random.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/os/affinity.h"
#include "base/threads/thread_pool.h"
#include "kernels/select.h"
#include "kernels/state_rows.h"
#include "tensor/float_types.h"

namespace banyan {
namespace {

constexpr int64_t kHeads = 128, kWidth = 576, kRank = 512, kPage = 64;
constexpr int64_t kIndexHeads = 64, kIndexWidth = 128, kTopK = 2048;

std::vector<float> random_values(int64_t count) {
  static std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

// Rows of a pool of S; of few different ones, which is as good here.
template <class S>
std::vector<S> pool_of(int64_t rows, int64_t width) {
  constexpr int64_t kDifferent = 4096;
  RowShape shape = {.width = width};
  int64_t stride = row_stride<S>(shape);
  std::vector<float> values = random_values(kDifferent * width);
  std::vector<S> pool(static_cast<size_t>(rows * stride));
  for (int64_t r = 0; r < rows; ++r) {
    store_row(values.data() + r * 2654435761 % kDifferent * width, shape, pool.data() + r * stride);
  }
  return pool;
}

struct Bench {
  Bench(int64_t context, int threads, const KernelTable& table)
      : context(context),
        table(table),
        pool(threads),
        latents(pool_of<BFloat16>(context, kWidth)),
        keys(pool_of<BFloat16>(context, kIndexWidth)),
        codes(pool_of<Float8E4M3>(context, kIndexWidth)),
        q(random_values(kHeads * kWidth)),
        index_q(random_values(kIndexHeads * kIndexWidth)),
        weights(random_values(kIndexHeads)),
        scores(static_cast<size_t>(context)),
        out(kHeads * kRank),
        page_table(static_cast<size_t>(context / kPage)),
        runs(kTopK) {
    pin_workers(pool);
    std::iota(page_table.begin(), page_table.end(), 0);
    std::shuffle(page_table.begin(), page_table.end(), std::mt19937(2));
    span = {.row_count = 1, .first_position = static_cast<int32_t>(context - 1)};
  }

  void attend(const SelectedKeys& selected) {
    table.latent_attention({.launch = {.threads = &pool},
                            .q = q.data(),
                            .q_row_stride = kHeads * kWidth,
                            .pool = latents.data(),
                            .pool_dtype = DType::kBF16,
                            .out = out.data(),
                            .heads = kHeads,
                            .width = kWidth,
                            .rank = kRank,
                            .page_size = kPage,
                            .scale = 0.072f,
                            .spans = &span,
                            .span_count = 1,
                            .page_table = page_table.data(),
                            .selected = selected});
  }
  void score(bool rounded) {
    table.index_scores({.launch = {.threads = &pool},
                        .q = index_q.data(),
                        .q_row_stride = kIndexHeads * kIndexWidth,
                        .weights = weights.data(),
                        .weights_row_stride = kIndexHeads,
                        .keys = rounded ? static_cast<const void*>(codes.data()) : keys.data(),
                        .key_dtype = rounded ? DType::kF8E4M3 : DType::kBF16,
                        .heads = kIndexHeads,
                        .width = kIndexWidth,
                        .page_size = kPage,
                        .all_below = kTopK,
                        .scores = scores.data(),
                        .entries_max = context,
                        .spans = &span,
                        .span_count = 1,
                        .part = {0, 1},
                        .page_table = page_table.data()});
  }
  void select() {
    table.select_keys({.launch = {.threads = &pool},
                       .scores = scores.data(),
                       .entries_max = context,
                       .rule = {.top_k = kTopK},
                       .spans = &span,
                       .span_count = 1,
                       .part = {0, 1},
                       .runs = runs.data(),
                       .run_counts = &run_count,
                       .key_counts = &key_count,
                       .runs_max = kTopK});
  }
  void attend_selected() {
    attend({.runs = runs.data(),
            .run_counts = &run_count,
            .key_counts = &key_count,
            .runs_max = kTopK});
  }

  int64_t context;
  const KernelTable& table;
  ThreadPool pool;
  std::vector<BFloat16> latents, keys;
  std::vector<Float8E4M3> codes;
  std::vector<float> q, index_q, weights, scores, out;
  std::vector<int32_t> page_table;
  std::vector<KeyRun> runs;
  int32_t run_count = 0, key_count = 0;
  SpanArgs span;
};

double milliseconds(const auto& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

void run(Bench& bench, int samples) {
  fmt::print("{}, one row after {} tokens, {} threads; milliseconds, medians of {}\n",
             bench.table.name, bench.context, bench.pool.size(), samples);
  for (bool rounded : {false, true}) {
    std::vector<double> dense, score, select, attend, ratio, share;
    for (int i = -1; i < samples; ++i) {  // the first is not counted
      double all = milliseconds([&] { bench.attend({}); });
      double scored = milliseconds([&] { bench.score(rounded); });
      double selected = milliseconds([&] { bench.select(); });
      double attended = milliseconds([&] { bench.attend_selected(); });
      if (i < 0) continue;
      double sparse = scored + selected + attended;
      dense.push_back(all), score.push_back(scored), select.push_back(selected);
      attend.push_back(attended), ratio.push_back(all / sparse);
      share.push_back((scored + selected) / sparse);
    }
    fmt::print(
        "{:4} index keys: dense {:6.2f}; scores {:5.2f}, choice {:5.3f}, attention {:5.2f}; dense "
        "takes {:.2f} times as long; scores and choice are {:.0f}%\n",
        rounded ? "fp8" : "bf16", median(dense), median(score), median(select), median(attend),
        median(ratio), 100 * median(share));
  }
}

}  // namespace
}  // namespace banyan

int main(int argc, char** argv) {
  using namespace banyan;  // NOLINT
  int64_t context = argc > 1 ? std::atoll(argv[1]) / kPage * kPage : 65536;
  int threads = argc > 2 ? std::atoi(argv[2]) : 2, samples = argc > 3 ? std::atoi(argv[3]) : 25;
  auto table = select_kernels(argc > 4 ? argv[4] : "auto");
  if (!table || context < kPage || threads < 1 || samples < 1) {
    fmt::print(stderr, "index_bench: {}\n",
               table ? "sizes are counts above 0" : table.error().message);
    return 1;
  }
  Bench bench(context, threads, **table);
  run(bench, samples);
}
