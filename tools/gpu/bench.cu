// How fast the products, the attention and the delta rule of a GPU are, compared with their
// floors: the bytes that they must read at the bandwidth of gpu_ceilings, and the operations at its
// rate for bf16. Weights and caches are random normal numbers, and more of them than a cache holds.
//
//   build/cuda/gpu/gpu_bench [GB/s] [TFLOP/s]
//
// Also compares every row of the products with the same row alone, bit for bit, and ends with 1 if
// one differs.
#include "kernels/cuda/device/float_types.cuh"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "delta.cuh"
#include "gpu.cuh"
#include "kernels/cuda/cuda.h"
#include "kernels/state_rows.h"

namespace banyan::gpu {
namespace {

struct Limits {
  double bytes_per_s, operations_per_s;
};

std::vector<float> normal_f32(size_t count) {
  std::vector<float> values(count);
  std::vector<uint16_t> bits = normal_bf16(count, 1);
  for (size_t i = 0; i < count; ++i) values[i] = to_float(BFloat16{bits[i]});
  return values;
}

void report(const char* what, float ms, double bytes, double operations, const Limits& limits) {
  double floor = 1e3 * std::max(bytes / limits.bytes_per_s, operations / limits.operations_per_s);
  std::printf("%-44s %9.1f us  %6.0f GB/s  %6.1f TFLOP/s  %.2f of the floor's rate\n", what,
              static_cast<double>(ms) * 1e3, bytes / ms * 1e-6, operations / ms * 1e-9,
              floor / static_cast<double>(ms));
}

using FormatKernel = GemmKernel KernelTable::*;

// How weights are stored. group: 0 for a scale of the whole row.
struct WeightForm {
  const char* name;
  FormatKernel kernel;
  int64_t group = 0;
  double operations = 1;  // a GPU's, of those in bf16
};
constexpr WeightForm kBF16 = {"bf16", &KernelTable::gemm_bf16};

class Bench {
 public:
  explicit Bench(const Limits& limits)
      : limits_(limits), table_(*cuda::gpu_table().table), queue_(table_.device->open_queue()) {}
  ~Bench() { table_.device->close_queue(queue_); }

  // y [rows, n] = x [rows, k] w [n, k]; returns y.
  std::vector<float> product(int64_t n, int64_t k, int64_t rows, const WeightForm& form = kBF16) {
    const GemmKernel& gemm = table_.*form.kernel;
    int64_t group = form.group > 0 ? form.group : k;
    size_t bytes = gemm.packed_bytes(n, k, group);
    size_t copies = kBeyondCaches / bytes + 1;
    // Packed weights are the numbers in another order: any is as good. Two are a scale.
    DeviceArray<uint16_t> weights(normal_bf16(copies * bytes / 2, 0.02f));
    DeviceArray<float> x(normal_f32(static_cast<size_t>(rows * k)));
    DeviceArray<float> y(static_cast<size_t>(rows * n));
    DeviceArray<std::byte> workspace(gemm.workspace_bytes(rows, 1, k, group));
    GemmArgs args = {.launch = {.queue = queue_},
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
    auto report_of = [&](const char* what, const auto& run) {
      float ms = time([&] {
        args.weights.weight = weights.data() + copy * bytes / 2;
        copy = (copy + 1) % copies;
        run();
      });
      char name[64];
      std::snprintf(name, sizeof name, "%s %s %lld x %lld, %lld rows", form.name, what,
                    static_cast<long long>(n), static_cast<long long>(k),
                    static_cast<long long>(rows));
      Limits limits = {limits_.bytes_per_s, limits_.operations_per_s * form.operations};
      report(name, ms, static_cast<double>(bytes) + 4.0 * static_cast<double>(rows * (n + k)),
             2.0 * static_cast<double>(rows * n * k), limits);
    };
    report_of("product", [&] { gemm.run(args); });
    if (gemm.gates != nullptr && gemm.gates(args)) {
      DeviceArray<float> activated(static_cast<size_t>(rows * n / 2));
      SiluMulArgs activation = {.launch = args.launch,
                                .gate = y.data(),
                                .up = y.data() + n / 2,
                                .x_row_stride = n,
                                .y = activated.data(),
                                .rows = rows,
                                .dim = n / 2};
      report_of("gated product", [&] { gemm.run_gated({args, activation}); });
    }
    args.weights.weight = weights.data();
    gemm.run(args);
    table_.device->synchronise(queue_);
    return y.download();
  }

  // Each of `rows` multiplies top_k of `count` matrices [n, k], which a random router has chosen.
  void experts(int64_t count, int64_t n, int64_t k, int64_t rows, int64_t top_k) {
    const GemmKernel& gemm = table_.gemm_bf16;
    std::vector<std::vector<int32_t>> chosen(static_cast<size_t>(count));
    std::mt19937 random(1);
    std::vector<int32_t> experts(static_cast<size_t>(count));
    std::iota(experts.begin(), experts.end(), 0);
    for (int32_t r = 0; r < rows; ++r) {
      std::shuffle(experts.begin(), experts.end(), random);
      for (size_t i = 0; i < static_cast<size_t>(top_k); ++i) {
        chosen[static_cast<size_t>(experts[i])].push_back(r);
      }
    }
    std::vector<int32_t> begins = {0}, index;
    int64_t touched = 0;
    for (const std::vector<int32_t>& of : chosen) {
      index.insert(index.end(), of.begin(), of.end());
      begins.push_back(static_cast<int32_t>(index.size()));
      touched += of.empty() ? 0 : 1;
    }
    size_t bytes = gemm.packed_bytes(n, k, k);
    DeviceArray<uint16_t> weights(normal_bf16(static_cast<size_t>(count) * bytes / 2, 0.02f));
    DeviceArray<float> x(normal_f32(static_cast<size_t>(rows * k)));
    DeviceArray<float> y(static_cast<size_t>(rows * top_k * n));
    DeviceArray<std::byte> workspace(gemm.workspace_bytes(rows, 1, k, k));
    DeviceArray<int32_t> device_begins(begins), device_index(index);
    GemmArgs args = {.launch = {.queue = queue_},
                     .x = x.data(),
                     .x_stride = k,
                     .x_rows = rows,
                     .x_index = device_index.data(),
                     .weights = {.weight = weights.data(),
                                 .weight_stride = static_cast<int64_t>(bytes),
                                 .count = count,
                                 .begins = device_begins.data()},
                     .y = y.data(),
                     .y_stride = n,
                     .n = n,
                     .k = k,
                     .group = k,
                     .workspace = workspace.data()};
    float ms = time([&] { gemm.run(args); });
    char name[64];
    std::snprintf(name, sizeof name, "%lld of %lld experts %lld x %lld, %lld rows",
                  static_cast<long long>(top_k), static_cast<long long>(count),
                  static_cast<long long>(n), static_cast<long long>(k),
                  static_cast<long long>(rows));
    report(name, ms,
           static_cast<double>(touched) * static_cast<double>(bytes) +
               4.0 * static_cast<double>(rows * (top_k * n + k)),
           2.0 * static_cast<double>(rows * top_k * n * k), limits_);
  }

  // Rows that follow `past` keys each.
  void attention(const char* what, int64_t sequences, int64_t rows, int64_t past,
                 DType dtype = DType::kBF16) {
    constexpr int64_t kHeads = 32, kKvHeads = 8, kDim = 128, kPage = 64;
    int64_t pages = (past + rows + kPage - 1) / kPage;
    auto pool_rows = static_cast<size_t>(sequences * pages * kPage * kKvHeads);
    DeviceArray<uint8_t> keys(pool(dtype, pool_rows, {.width = kDim})), values(keys.download());
    DeviceArray<float> q(normal_f32(static_cast<size_t>(sequences * rows * kHeads * kDim)));
    DeviceArray<float> out(q.size());
    std::vector<int32_t> page_table;
    std::vector<SpanArgs> spans;
    for (int64_t s = 0; s < sequences; ++s) {
      spans.push_back({static_cast<int32_t>(s * rows), static_cast<int32_t>(rows),
                       static_cast<int32_t>(past), static_cast<int32_t>(s * pages)});
      for (int64_t p = 0; p < pages; ++p) {
        page_table.push_back(static_cast<int32_t>(p * sequences + s));
      }
    }
    DeviceArray<SpanArgs> device_spans(spans);
    DeviceArray<int32_t> device_pages(page_table);
    AttentionArgs args = {.launch = {.queue = queue_},
                          .q = q.data(),
                          .q_row_stride = kHeads * kDim,
                          .rows = sequences * rows,
                          .k_pool = keys.data(),
                          .v_pool = values.data(),
                          .pool_dtype = dtype,
                          .out = out.data(),
                          .q_heads = kHeads,
                          .kv_heads = kKvHeads,
                          .head_dim = kDim,
                          .value_dim = kDim,
                          .page_size = kPage,
                          .scale = 1 / std::sqrt(static_cast<float>(kDim)),
                          .spans = device_spans.data(),
                          .span_count = sequences,
                          .page_table = device_pages.data()};
    float ms = time([&] { table_.attention(args); });
    auto seen = static_cast<double>(sequences * rows) *
                (static_cast<double>(past) + static_cast<double>(rows + 1) / 2);
    report(what, ms, 2.0 * static_cast<double>(keys.size()), 4 * seen * kHeads * kDim, limits_);
  }

  // The delta rule of a layer of Ling 3.
  void delta_rule(const char* what, size_t sequences, const DeltaSequence& sequence) {
    DeltaInputs inputs(16, DeltaInputs::kDim, std::vector<DeltaSequence>(sequences, sequence));
    DeltaOnGpu on_gpu(inputs);
    DeltaAttentionArgs args = delta_args(inputs, on_gpu, queue_);
    float ms = time([&] { table_.delta_attention(args); });
    auto values = static_cast<double>(inputs.v.size()), states = 2.0 * inputs.states.size();
    report(what, ms, 4 * (5 * values + states), 8 * values * DeltaInputs::kDim, limits_);
  }

 private:
  // Normal numbers; rows of codes are repeated after a prime number of them.
  static std::vector<uint8_t> pool(DType dtype, size_t rows, const RowShape& shape) {
    constexpr size_t kPeriod = 1009;
    auto bytes = static_cast<size_t>(state_row_bytes(dtype, shape));
    auto width = static_cast<size_t>(shape.width);
    std::vector<uint8_t> pool(rows * bytes);
    if (dtype == DType::kBF16) {
      std::vector<uint16_t> values = normal_bf16(rows * width, 1);
      std::memcpy(pool.data(), values.data(), pool.size());
      return pool;
    }
    std::vector<float> x = normal_f32(kPeriod * width);
    for (size_t r = 0; r < rows; ++r) {
      uint8_t* to = pool.data() + r * bytes;
      if (r >= kPeriod) {
        std::memcpy(to, to - kPeriod * bytes, bytes);
      } else if (dtype == DType::kI8) {
        store_row(&x[r * width], shape, reinterpret_cast<int8_t*>(to));
      } else {
        store_row(&x[r * width], shape, reinterpret_cast<Float8E4M3*>(to));
      }
    }
    return pool;
  }

  template <class Body>
  float time(const Body& body) {
    return time_of(body, [this] { table_.device->synchronise(queue_); });
  }

  Limits limits_;
  const KernelTable& table_;
  void* queue_;
};

// Whether the first rows have the bits of the row alone.
bool same_rows(const std::vector<float>& alone, const std::vector<float>& many) {
  return std::equal(alone.begin(), alone.end(), many.begin());
}

int run_all(const Limits& limits) {
  require_hopper();
  Bench bench(limits);
  bool same = true;
  auto run_rows = [&](int64_t n, int64_t k, std::initializer_list<int64_t> all,
                      const WeightForm& form) {
    std::vector<float> alone = bench.product(n, k, 1, form);
    for (int64_t rows : all) {
      if (same_rows(alone, bench.product(n, k, rows, form))) continue;
      std::printf("the first of %lld rows has other bits than alone\n",
                  static_cast<long long>(rows));
      same = false;
    }
  };
  constexpr int64_t kShapes[][2] = {{6144, 4096}, {4096, 4096}, {24576, 4096}, {4096, 12288}};
  for (auto [n, k] : kShapes) run_rows(n, k, {8, 16, 32, 64, 128, 256, 2048, 8192}, kBF16);
  using T = KernelTable;
  for (const WeightForm& form : {WeightForm{"int4", &T::gemm_int4, 32, 2},
                                 {"int8", &T::gemm_int8, 0, 2},
                                 {"fp8", &T::gemm_fp8, 128}}) {
    for (int64_t n : {4096, 24576}) run_rows(n, 4096, {16, 32, 128, 2048}, form);
  }
  // Of Ling-mini-2.0; the experts of fewer rows fit into a cache.
  for (int64_t rows : {16, 64, 256, 8192}) bench.experts(256, 1024, 2048, rows, 8);
  bench.attention("attention, 1 sequence after 1,024", 1, 1, 1024);
  bench.attention("attention, 1 sequence after 32,768", 1, 1, 32768);
  bench.attention("attention, 64 sequences after 1,024", 64, 1, 1024);
  bench.attention("attention, 256 sequences after 1,024", 256, 1, 1024);
  bench.attention("attention, a prompt of 8,192", 1, 8192, 0);
  bench.attention("attention, 512 rows after 7,680", 1, 512, 7680);
  bench.attention("attention to fp8, 256 sequences after 1,024", 256, 1, 1024, DType::kF8E4M3);
  bench.attention("attention to int8, 256 sequences after 1,024", 256, 1, 1024, DType::kI8);
  bench.attention("attention to fp8, a prompt of 8,192", 1, 8192, 0, DType::kF8E4M3);
  bench.delta_rule("delta rule, a prompt of 512", 1, {512, 512});
  bench.delta_rule("delta rule, a prompt of 4,096", 1, {4096, 4096});
  bench.delta_rule("delta rule, 8 prompts of 512", 8, {512, 512});
  bench.delta_rule("delta rule, 256 sequences, a row each", 256, {1, 0});
  return same ? 0 : 1;
}

}  // namespace
}  // namespace banyan::gpu

int main(int argc, char** argv) {
  double gigabytes = argc > 1 ? std::atof(argv[1]) : 3350,
         teraflops = argc > 2 ? std::atof(argv[2]) : 790;
  return banyan::gpu::run_all({gigabytes * 1e9, teraflops * 1e12});
}
