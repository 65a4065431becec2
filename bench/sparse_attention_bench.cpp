// One layer's attention to a few blocks of keys, compared with attention to all, in pairs of runs:
// one decode row after a long context, and the chunks of a prompt of that length. Sizes are those
// of Ring-mini-sparse (16 heads of queries, 4 of keys, of 128; MoBA with 8 blocks of 1,024 keys)
// and of MiniMax-M3 (64 heads of queries, 4 of keys, of 128; an index chooses 16 blocks of 128),
// with bf16 pools.
//
//   sparse_attention_bench [KERNELS [THREADS [CONTEXT]]]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/os/affinity.h"
#include "base/os/memory.h"
#include "base/threads/thread_pool.h"
#include "kernels/select.h"
#include "tensor/float_types.h"

namespace banyan {
namespace {

constexpr int64_t kKvHeads = 4, kDim = 128, kPage = 64, kChunk = 512;

struct Sizes {
  const char* name;
  int64_t heads, block, top;
  bool indexed;  // blocks are chosen by keys of an index, not by sums of keys
};
constexpr Sizes kSizes[] = {{"Ring-mini-sparse", 16, 1024, 8, false},
                            {"MiniMax-M3", 64, 128, 16, true}};

double ms_of(const auto& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class Layer {
 public:
  Layer(const KernelTable& table, ThreadPool& threads, const Sizes& sizes, int64_t context)
      : table_(table),
        sizes_(sizes),
        context_(context),
        launch_{.threads = &threads},
        k_(context_ * kKvHeads * kDim * sizeof(BFloat16)),
        v_(k_.size()),
        index_keys_(static_cast<size_t>(sizes.indexed ? context * kDim : 0)),
        sums_(context_ / kPage * kKvHeads * kDim),
        pages_(context_ / kPage),
        q_(kChunk * sizes_.heads * kDim),
        out_(q_.size()),
        scores_(kChunk * kKvHeads * context_ / sizes_.block),
        runs_(kChunk * kKvHeads * sizes_.top),
        run_counts_(kChunk * kKvHeads),
        key_counts_(run_counts_.size()) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (MemoryBlock* pool : {&k_, &v_}) {
      auto* to = reinterpret_cast<BFloat16*>(pool->data());
      std::vector<BFloat16> some(1 << 16);
      for (BFloat16& x : some) x = from_float<BFloat16>(normal(random));
      for (int64_t i = 0; i < context_ * kKvHeads * kDim; i += kDim) {
        std::copy_n(some.begin() + static_cast<int64_t>(random() % (some.size() - kDim)), kDim,
                    to + i);
      }
    }
    for (float& x : q_) x = normal(random);
    for (BFloat16& x : index_keys_) x = from_float<BFloat16>(normal(random));
    for (size_t p = 0; p < pages_.size(); ++p) pages_[p] = static_cast<int32_t>(p);
    std::ranges::shuffle(pages_, random);
    span_ = {.row_count = static_cast<int32_t>(context_)};
    sum_keys();
  }

  // Of `rows` rows that end before position `end`, in milliseconds.
  double dense(int64_t end, int64_t rows) {
    set(end, rows);
    return ms_of([&] { attend({}); });
  }
  double sparse(int64_t end, int64_t rows) {
    set(end, rows);
    return ms_of([&] {
      sum_keys();
      attend(select());
    });
  }
  double index(int64_t end, int64_t rows) {
    set(end, rows);
    return ms_of([&] { select(); });
  }

 private:
  void set(int64_t end, int64_t rows) {
    span_ = {.row_count = static_cast<int32_t>(rows),
             .first_position = static_cast<int32_t>(end - rows)};
  }

  void sum_keys() {
    if (sizes_.indexed) return;
    table_.key_sums({.launch = launch_,
                     .keys = k_.data(),
                     .key_dtype = DType::kBF16,
                     .sums = sums_.data(),
                     .heads = kKvHeads,
                     .width = kDim,
                     .page_size = kPage,
                     .block_tokens = sizes_.block,
                     .spans = &span_,
                     .span_count = 1,
                     .page_table = pages_.data()});
  }

  void score_by_sums(const RowPart& part) {
    table_.block_scores({.launch = launch_,
                         .q = q_.data(),
                         .q_row_stride = sizes_.heads * kDim,
                         .sums = sums_.data(),
                         .q_heads = sizes_.heads,
                         .heads = kKvHeads,
                         .width = kDim,
                         .page_size = kPage,
                         .block_tokens = sizes_.block,
                         .scores = scores_.data(),
                         .entries_max = context_ / sizes_.block,
                         .spans = &span_,
                         .span_count = 1,
                         .part = part,
                         .page_table = pages_.data()});
  }

  void score_by_index(const RowPart& part) {
    table_.block_maxima({.launch = launch_,
                         .q = q_.data(),
                         .q_row_stride = sizes_.heads * kDim,
                         .keys = index_keys_.data(),
                         .key_dtype = DType::kBF16,
                         .heads = kKvHeads,
                         .width = kDim,
                         .page_size = kPage,
                         .block_tokens = sizes_.block,
                         .all_below = sizes_.block * sizes_.top,
                         .scores = scores_.data(),
                         .entries_max = context_ / sizes_.block,
                         .spans = &span_,
                         .span_count = 1,
                         .part = part,
                         .page_table = pages_.data()});
  }

  SelectedKeys select() {
    RowPart part = {0, span_.row_count};
    if (sizes_.indexed) {
      score_by_index(part);
    } else {
      score_by_sums(part);
    }
    table_.select_keys(
        {.launch = launch_,
         .scores = scores_.data(),
         .entries_max = context_ / sizes_.block,
         .heads = kKvHeads,
         .rule = {.entry_tokens = sizes_.block, .top_k = sizes_.top, .forced_last = 1},
         .spans = &span_,
         .span_count = 1,
         .part = part,
         .runs = runs_.data(),
         .run_counts = run_counts_.data(),
         .key_counts = key_counts_.data(),
         .runs_max = sizes_.top});
    return {.runs = runs_.data(),
            .run_counts = run_counts_.data(),
            .key_counts = key_counts_.data(),
            .heads = kKvHeads,
            .runs_max = sizes_.top,
            .alignment = sizes_.block};
  }

  void attend(const SelectedKeys& selected) {
    table_.attention({.launch = launch_,
                      .q = q_.data(),
                      .q_row_stride = sizes_.heads * kDim,
                      .k_pool = k_.data(),
                      .v_pool = v_.data(),
                      .pool_dtype = DType::kBF16,
                      .out = out_.data(),
                      .q_heads = sizes_.heads,
                      .kv_heads = kKvHeads,
                      .head_dim = kDim,
                      .value_dim = kDim,
                      .page_size = kPage,
                      .scale = 0.088f,
                      .spans = &span_,
                      .span_count = 1,
                      .page_table = pages_.data(),
                      .selected = selected});
  }

  const KernelTable& table_;
  Sizes sizes_;
  int64_t context_;
  Launch launch_;
  MemoryBlock k_, v_;
  std::vector<BFloat16> index_keys_;
  std::vector<float> sums_;
  std::vector<int32_t> pages_;
  std::vector<float> q_, out_, scores_;
  std::vector<KeyRun> runs_;
  std::vector<int32_t> run_counts_, key_counts_;
  SpanArgs span_;
};

void run(const KernelTable& table, int workers, const Sizes& sizes, int64_t context) {
  ThreadPool threads(workers);
  pin_workers(threads);
  Layer layer(table, threads, sizes, context);
  std::vector<double> dense, sparse, ratios, index;
  for (int i = 0; i < 41; ++i) {
    dense.push_back(layer.dense(context, 1));
    sparse.push_back(layer.sparse(context, 1));
    index.push_back(layer.index(context, 1));
    ratios.push_back(dense.back() / sparse.back());
  }
  fmt::print(
      "{}, {}, {} threads: a row after {} tokens: {:.3f} ms, {:.3f} ms of {} blocks of {} "
      "(choosing {:.3f}): {:.2f} times\n",
      sizes.name, table.name, workers, context, median(dense), median(sparse), sizes.top,
      sizes.block, median(index), median(ratios));
  // Chunks at equal distances stand for all of the prompt.
  double all = 0, some = 0;
  constexpr int64_t kPieces = 8;
  int64_t stride = context / kPieces;
  for (int64_t i = 0; i < kPieces; ++i) {
    int64_t end = i * stride + std::max(stride / 2, kChunk);
    all += layer.dense(end, kChunk);
    some += layer.sparse(end, kChunk);
  }
  double chunks = static_cast<double>(stride) / kChunk / 1e3;
  fmt::print("a prompt of {} tokens: {:.1f} s, {:.1f} s: {:.2f} times\n", context, all * chunks,
             some * chunks, all / some);
}

}  // namespace
}  // namespace banyan

int main(int argc, char** argv) {
  auto table = banyan::select_kernels(argc > 1 ? argv[1] : "auto");
  if (!table) {
    fmt::print(stderr, "{}\n", table.error().message);
    return 2;
  }
  int64_t context = argc > 3 ? std::max<int64_t>(1, std::atoll(argv[3]) / 8192) * 8192 : 65536;
  for (const banyan::Sizes& sizes : banyan::kSizes) {
    banyan::run(**table, argc > 2 ? std::max(1, std::atoi(argv[2])) : 2, sizes, context);
  }
  return 0;
}
