// Kernels at the shapes of Qwen3-0.6B, next to what the machine can do: every result carries
// `of_limit`, its fraction of the read bandwidth (one row) or of the rate of its table's products
// (more rows) that `banyan bench machine` measures, taken in the same program on as many threads.
//
//   kernels_bench --benchmark_filter='bf16.*/rows:1/threads:2'
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "base/os/affinity.h"
#include "base/os/memory.h"
#include "kernels/select.h"
#include "kernels/state_rows.h"
#include "quant/formats.h"
#include "tensor/float_types.h"

namespace banyan {
namespace {

constexpr size_t kBeyondCaches = size_t{512} << 20;  // bytes

double seconds_of(const auto& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Machine {
  explicit Machine(int workers) : threads(workers) { pin_workers(threads); }

  const MachineLimits& limits(const KernelTable& table) {
    auto it = measured.find(&table);
    if (it == measured.end()) {
      constexpr double kSeconds = 0.1;
      MachineLimits found = LimitMeter(threads, kSeconds).limits(limit_probes(table));
      auto rate = [&](Operand operand) {
        return found.operations_per_s[static_cast<size_t>(operand)] / 1e9;
      };
      fmt::print("{}, {} threads: reads {:.1f} GB/s, f32 {:.0f}, bf16 {:.0f}, int8 {:.0f} G/s\n",
                 table.name, threads.size(), found.bytes_per_s / 1e9, rate(Operand::kF32),
                 rate(Operand::kBF16), rate(Operand::kInt8));
      it = measured.emplace(&table, found).first;
    }
    return it->second;
  }

  ThreadPool threads;
  std::map<const KernelTable*, MachineLimits> measured;
};

Machine& machine(int workers) {
  static std::map<int, Machine> machines;
  return machines.try_emplace(workers, workers).first->second;
}

std::vector<float> random_values(int64_t count) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(engine);
  return values;
}

// Activations on huge pages, as the engine's are.
class Floats {
 public:
  explicit Floats(int64_t count) : block_(count * sizeof(float)) {
    std::memset(block_.data(), 0, block_.size());
  }
  explicit Floats(const std::vector<float>& values) : Floats(std::ssize(values)) {
    std::memcpy(block_.data(), values.data(), values.size() * sizeof(float));
  }
  float* data() { return reinterpret_cast<float*>(block_.data()); }

 private:
  MemoryBlock block_;
};

// What a kernel costs, and which limit it is held against.
struct Cost {
  double bytes, flops;
  std::optional<Operand> operand;  // of its products; none: it is bound by the bytes
};

// Runs the benchmark and reports the rates of its fastest iteration.
void measure(benchmark::State& state, const MachineLimits& limits, const Cost& cost,
             const auto& iteration) {
  double best = 1e9;
  for (auto _ : state) best = std::min(best, seconds_of(iteration));
  state.counters["GB/s"] = cost.bytes / best / 1e9;
  state.counters["GFLOP/s"] = cost.flops / best / 1e9;
  state.counters["of_limit"] =
      cost.operand ? cost.flops / best / limits.operations_per_s[static_cast<size_t>(*cost.operand)]
                   : cost.bytes / best / limits.bytes_per_s;
}

// One row is bound by bytes.
std::optional<Operand> products_of(int64_t rows, Operand operand) {
  return rows == 1 ? std::nullopt : std::optional(operand);
}

void gemm(benchmark::State& state, const KernelTable* table, const WeightFormat* format, int64_t n,
          int64_t k) {
  int64_t rows = state.range(0);
  Machine& m = machine(static_cast<int>(state.range(1)));
  const GemmKernel& kernel = table->*format->kernel;
  int64_t group = format->name.ends_with("4") ? 32 : (format->name == "fp8" ? 128 : k);
  // Enough copies of the matrix to exceed all caches together, like a model's layers.
  size_t bytes = kernel.packed_bytes(n, k, group);
  size_t copies = rows <= 32 ? kBeyondCaches / bytes + 1 : 1;
  MemoryBlock packed(copies * bytes), workspace(kernel.workspace_bytes(rows, 1, k, group));
  std::memset(packed.data(), 0x11, packed.size());  // pages that are never written are all one page
  Floats x(random_values(rows * k)), y(rows * n);
  GemmArgs args = {.launch = {.threads = &m.threads},
                   .x = x.data(),
                   .x_stride = k,
                   .x_rows = rows,
                   .y = y.data(),
                   .y_stride = n,
                   .n = n,
                   .k = k,
                   .group = group,
                   .workspace = workspace.data()};
  size_t copy = 0;
  auto products = static_cast<double>(rows * n * k);
  Cost cost = {static_cast<double>(bytes), 2 * products, products_of(rows, format->operand)};
  measure(state, m.limits(*table), cost, [&] {
    args.weights.weight = packed.data() + copy * bytes;
    copy = (copy + 1) % copies;
    kernel.run(args);
  });
}

// The last `rows` positions of a sequence of `context` tokens, in pools of `dtype` with pages
// of 64.
void attention(benchmark::State& state, const KernelTable* table, DType dtype) {
  constexpr int64_t kHeads = 16, kKvHeads = 8, kDim = 128, kPage = 64;
  int64_t rows = state.range(0), context = state.range(2);
  Machine& m = machine(static_cast<int>(state.range(1)));
  int64_t pages = (context + kPage - 1) / kPage;
  std::vector<int32_t> page_table(pages);
  for (int64_t p = 0; p < pages; ++p) page_table[p] = static_cast<int32_t>(pages - 1 - p);
  // As the pools lie, on huge pages; written to, since pages never written are all one in memory.
  int64_t row_bytes = state_row_bytes(dtype, {.width = kDim});
  MemoryBlock k(pages * kKvHeads * kPage * row_bytes), v(k.size());
  std::memset(k.data(), 0x3c, k.size());
  std::memset(v.data(), 0x3c, v.size());
  auto q = random_values(rows * kHeads * kDim);
  std::vector<float> out(q.size());
  SpanArgs span = {.row_count = static_cast<int32_t>(rows),
                   .first_position = static_cast<int32_t>(context - rows)};
  AttentionArgs args = {.launch = {.threads = &m.threads},
                        .q = q.data(),
                        .q_row_stride = kHeads * kDim,
                        .k_pool = k.data(),
                        .v_pool = v.data(),
                        .pool_dtype = dtype,
                        .out = out.data(),
                        .q_heads = kHeads,
                        .kv_heads = kKvHeads,
                        .head_dim = kDim,
                        .value_dim = kDim,
                        .page_size = kPage,
                        .scale = 0.088f,
                        .spans = &span,
                        .span_count = 1,
                        .page_table = page_table.data()};
  auto earlier = static_cast<double>(context - rows), own = static_cast<double>(rows + 1) / 2;
  double flops = 4 * static_cast<double>(rows * kHeads * kDim) * (earlier + own);
  auto bytes = static_cast<double>(context * kKvHeads * row_bytes * 2);
  Operand operand = dtype == DType::kBF16 ? Operand::kBF16 : Operand::kF32;
  measure(state, m.limits(*table), {bytes, flops, products_of(rows, operand)},
          [&] { table->attention(args); });
}

// The same over latents that 16 heads share, in the sizes of DeepSeek and Ling: of_limit is of the
// rate of products throughout, since the work for one token and key is 34,816 operations on 1,152
// bytes.
void latent_attention(benchmark::State& state, const KernelTable* table) {
  constexpr int64_t kHeads = 16, kWidth = 576, kRank = 512, kPage = 64;
  int64_t rows = state.range(0), context = state.range(2);
  Machine& m = machine(static_cast<int>(state.range(1)));
  int64_t pages = (context + kPage - 1) / kPage;
  std::vector<int32_t> page_table(pages);
  for (int64_t p = 0; p < pages; ++p) page_table[p] = static_cast<int32_t>(pages - 1 - p);
  MemoryBlock pool(pages * kPage * kWidth * sizeof(BFloat16));
  std::memset(pool.data(), 0x11, pool.size());
  auto q = random_values(rows * kHeads * kWidth);
  std::vector<float> out(rows * kHeads * kRank);
  SpanArgs span = {.row_count = static_cast<int32_t>(rows),
                   .first_position = static_cast<int32_t>(context - rows)};
  LatentAttentionArgs args = {.launch = {.threads = &m.threads},
                              .q = q.data(),
                              .q_row_stride = kHeads * kWidth,
                              .pool = pool.data(),
                              .pool_dtype = DType::kBF16,
                              .out = out.data(),
                              .heads = kHeads,
                              .width = kWidth,
                              .rank = kRank,
                              .page_size = kPage,
                              .scale = 0.072f,
                              .spans = &span,
                              .span_count = 1,
                              .page_table = page_table.data()};
  auto earlier = static_cast<double>(context - rows), own = static_cast<double>(rows + 1) / 2;
  double flops = 2 * static_cast<double>(rows * kHeads * (kWidth + kRank)) * (earlier + own);
  auto bytes = static_cast<double>(context * kWidth) * sizeof(BFloat16);
  measure(state, m.limits(*table), {bytes, flops, Operand::kBF16},
          [&] { table->latent_attention(args); });
}

// Gate and up of the 256 experts of Ling-mini-2.0, `rows` tokens with eight of them each, spread
// evenly. One token reads the weights of eight experts, of which no cache holds the next.
void experts(benchmark::State& state, const KernelTable* table, const WeightFormat* format) {
  constexpr int64_t kExperts = 256, kTopK = 8, kN = 1024, kK = 2048;
  int64_t rows = state.range(0);
  Machine& m = machine(static_cast<int>(state.range(1)));
  const GemmKernel& kernel = table->*format->kernel;
  int64_t group = format->quantised ? 32 : kK;
  size_t bytes = kernel.packed_bytes(kN, kK, group);
  MemoryBlock packed(kExperts * bytes), workspace(kernel.workspace_bytes(rows, 1, kK, group));
  std::memset(packed.data(), 0x11, packed.size());
  Floats x(random_values(rows * kK)), y(rows * kTopK * kN);
  int64_t used = std::min(kExperts, rows * kTopK);
  std::vector<int32_t> sources(rows * kTopK), begins(used + 1);
  for (int64_t i = 0; i < rows * kTopK; ++i) sources[i] = static_cast<int32_t>(i % rows);
  for (int64_t e = 0; e <= used; ++e) {
    begins[e] = static_cast<int32_t>(rows * kTopK * e / used);
  }
  int64_t first = 0;
  Cost cost = {static_cast<double>(used * bytes), 2.0 * static_cast<double>(rows * kTopK * kN * kK),
               products_of(rows, format->operand)};
  measure(state, m.limits(*table), cost, [&] {
    if (first + used > kExperts) first = 0;
    const std::byte* weight = packed.data() + static_cast<size_t>(first) * bytes;
    first += used;
    kernel.run({.launch = {.threads = &m.threads},
                .x = x.data(),
                .x_stride = kK,
                .x_rows = rows,
                .segment_stride = kK,
                .x_index = sources.data(),
                .weights = {.weight = weight,
                            .weight_stride = static_cast<int64_t>(bytes),
                            .count = used,
                            .begins = begins.data()},
                .y = y.data(),
                .y_stride = kN,
                .n = kN,
                .k = kK,
                .group = group,
                .workspace = workspace.data()});
  });
}

// A prompt of `rows` tokens, or one token of a sequence, through the recurrence of a layer with 16
// heads of 128 x 128 (Ling3-Tiny's KDA, or lightning attention of that size). Of the work only the
// products with the state count: two reads and an update, or one of each. One token reads and
// writes a state that no cache holds.
void recurrence(benchmark::State& state, const KernelTable* table, bool delta) {
  constexpr int64_t kHeads = 16, kDim = 128, kWidth = kHeads * kDim;
  int64_t rows = state.range(0);
  Machine& m = machine(static_cast<int>(state.range(1)));
  constexpr int64_t kStateFloats = kHeads * kDim * kDim;
  int64_t slots = rows == 1 ? kBeyondCaches / (kStateFloats * sizeof(float)) : 1;
  std::vector<float> states(slots * kStateFloats);
  auto q = random_values(rows * kWidth), v = random_values(rows * kWidth);
  auto k = random_values(rows * kWidth), decay = k;
  for (float& x : k) x *= 0.15f;
  for (float& x : decay) x = 1 - 0.3f * x * x;
  std::vector<float> beta(rows * kHeads, 0.5f), out(q.size()), log_decay(kHeads, -0.1f);
  int32_t slot = 0, prompt = rows == 1 ? 0 : static_cast<int32_t>(rows);
  SpanArgs span = {.row_count = static_cast<int32_t>(rows), .first_position = rows == 1 ? 1 : 0};
  auto fill = [&](auto args) {
    args.launch = {.threads = &m.threads};
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.q_row_stride = args.k_row_stride = args.v_row_stride = kWidth;
    args.states = states.data();
    args.out = out.data();
    args.heads = kHeads;
    args.key_dim = args.value_dim = kDim;
    args.chunk = 64;
    args.spans = {.spans = &span, .count = 1, .slots = &slot, .prompt_tokens = &prompt};
    return args;
  };
  auto flops = static_cast<double>((delta ? 6 : 4) * rows * kStateFloats);
  Cost cost = {2.0 * kStateFloats * sizeof(float), flops, products_of(rows, Operand::kF32)};
  measure(state, m.limits(*table), cost, [&] {
    if (delta) {
      table->delta_attention(
          fill(DeltaAttentionArgs{.decay = decay.data(), .beta = beta.data(), .decay_dim = kDim}));
    } else {
      table->linear_attention(fill(LinearAttentionArgs{.log_decay = log_decay.data()}));
    }
    slot = (slot + 1) % static_cast<int32_t>(slots);
  });
}

// An empty job of all workers, and a barrier inside a job.
void empty_job(benchmark::State& state) {
  ThreadPool& threads = machine(static_cast<int>(state.range(0))).threads;
  for (auto _ : state) threads.run([](int) {});
}

void barrier(benchmark::State& state) {
  constexpr int kBarriers = 1000;
  ThreadPool& threads = machine(static_cast<int>(state.range(0))).threads;
  for (auto _ : state) {
    threads.run([&](int) {
      for (int i = 0; i < kBarriers; ++i) threads.barrier();
    });
  }
  state.SetItemsProcessed(state.iterations() * kBarriers);
}

struct Shape {
  const char* name;
  int64_t n, k;
};
constexpr Shape kShapes[] = {{"qkv", 4096, 1024},
                             {"out", 1024, 2048},
                             {"gate_up", 6144, 1024},
                             {"down", 1024, 3072},
                             {"head", 151936, 1024}};

void register_all() {
  benchmark::RegisterBenchmark("job", empty_job)->ArgName("threads")->Arg(2)->UseRealTime();
  benchmark::RegisterBenchmark("barriers", barrier)->ArgName("threads")->Arg(2)->UseRealTime();
  for (const std::string& name : available_kernels()) {
    const KernelTable* table = *select_kernels(name);
    for (const WeightFormat& format : weight_formats()) {
      for (const Shape& shape : kShapes) {
        auto* gemms = benchmark::RegisterBenchmark(
            fmt::format("{}/{}/{}", name, format.name, shape.name).c_str(), gemm, table, &format,
            shape.n, shape.k);
        gemms->ArgNames({"rows", "threads"})->UseRealTime();
        gemms->ArgsProduct({{1, 2, 3, 4, 5, 6, 8, 32, 512}, {1, 2}});
      }
    }
    for (const char* format : {"bf16", "int8", "int4", "fp8"}) {
      auto* mixtures = benchmark::RegisterBenchmark(
          fmt::format("{}/{}/experts", name, format).c_str(), experts, table, format_named(format));
      mixtures->ArgNames({"rows", "threads"})->UseRealTime();
      mixtures->ArgsProduct({{1, 8, 32, 512}, {1, 2}});
    }
    auto* latents = benchmark::RegisterBenchmark(fmt::format("{}/latent_attention", name).c_str(),
                                                 latent_attention, table);
    latents->ArgNames({"rows", "threads", "context"})->UseRealTime();
    latents->ArgsProduct({{1, 64}, {1, 2}, {4096, 32768}});
    for (auto [suffix, dtype] :
         {std::pair{"", DType::kBF16}, {"_int8", DType::kI8}, {"_fp8_e4m3", DType::kF8E4M3}}) {
      auto* attentions = benchmark::RegisterBenchmark(
          fmt::format("{}/attention{}", name, suffix).c_str(), attention, table, dtype);
      attentions->ArgNames({"rows", "threads", "context"})->UseRealTime();
      attentions->ArgsProduct({{1, 512}, {1, 2}, {512, 8192, 32768}});
    }
    for (bool delta : {true, false}) {
      auto* recurrences = benchmark::RegisterBenchmark(
          fmt::format("{}/{}", name, delta ? "delta" : "lightning").c_str(), recurrence, table,
          delta);
      recurrences->ArgNames({"rows", "threads"})->UseRealTime();
      recurrences->ArgsProduct({{1, 512}, {1, 2}});
    }
  }
}

}  // namespace
}  // namespace banyan

int main(int argc, char** argv) {
  banyan::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
