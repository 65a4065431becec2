// Do the kernels for tensor cores have the bits of their emulation? Products of every format, of a
// matrix and of experts, attention of every width, and the delta rule over prompts and the rows
// after them, over random numbers.
//
//   build/cuda/gpu/gpu_compare
//
// Prints a line for each case, and ends with 1 where any bit differs or the driver has no tensor
// maps.
#include "kernels/cuda/device/float_types.cuh"
#include "kernels/cuda/device/tensor_maps.cuh"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "delta.cuh"
#include "gpu.cuh"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/emulated/emulated.h"
#include "kernels/state_rows.h"

namespace banyan::gpu {
namespace {

using FormatKernel = GemmKernel KernelTable::*;

class Compare {
 public:
  Compare()
      : gpu_(*cuda::gpu_table().table),
        host_(cuda::emulated::table()),
        queue_(gpu_.device->open_queue()) {}
  ~Compare() { gpu_.device->close_queue(queue_); }

  bool all_same() const { return all_same_; }

  // Without them, attention is slower but right.
  void tensor_maps() {
    DeviceArray<std::byte> pool(size_t{1} << 20);
    bool encoded = cuda::device::TensorMaps().find({pool.data(), 128, 64}) != nullptr;
    std::printf("tensor maps of pools: %s\n", encoded ? "encoded" : "the driver has NONE");
    all_same_ = all_same_ && encoded;
  }

  // `count` matrices [n, k]; experts choose rows of x by chance.
  void product(const char* format, FormatKernel kernel, int64_t rows, int64_t n, int64_t k,
               int64_t group, int64_t count) {
    const GemmKernel& gemm = host_.*kernel;
    std::vector<std::byte> packed;
    for (int64_t i = 0; i < count; ++i) append_matrix(gemm, format, n, k, group, packed);
    std::vector<float> x = normals(rows * k), bias = normals(n);
    std::vector<int32_t> begins = {0}, index;
    for (int64_t i = 0; i < count; ++i) {
      for (uint32_t r = random_() % static_cast<uint32_t>(2 * rows); r > 0; --r) {
        index.push_back(static_cast<int32_t>(random_() % static_cast<uint32_t>(rows)));
      }
      begins.push_back(static_cast<int32_t>(index.size()));
    }
    bool experts = count > 1;
    int64_t y_rows = experts ? static_cast<int64_t>(index.size()) : rows;
    std::vector<float> y(static_cast<size_t>(y_rows * n));
    std::vector<std::byte> workspace(gemm.workspace_bytes(rows, 1, k, group) + 64);
    GemmArgs args = {
        .x = x.data(),
        .x_stride = k,
        .x_rows = rows,
        .x_index = experts ? index.data() : nullptr,
        .weights = {.weight = packed.data(),
                    .weight_stride = static_cast<int64_t>(packed.size()) / count,
                    .count = count,
                    .begins = experts ? begins.data() : nullptr},
        .bias = bias.data(),
        .y = y.data(),
        .y_stride = n,
        .n = n,
        .k = k,
        .group = group,
        .workspace = workspace.data() + 64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64};
    gemm.run(args);
    GemmArgs host_args = args;
    DeviceArray<std::byte> device_packed(packed), device_workspace(workspace.size());
    DeviceArray<float> device_x(x), device_bias(bias), device_y(y.size());
    DeviceArray<int32_t> device_begins(begins), device_index(index.empty() ? begins : index);
    args.launch.queue = queue_;
    args.x = device_x.data();
    args.x_index = experts ? device_index.data() : nullptr;
    args.weights.weight = device_packed.data();
    args.weights.begins = experts ? device_begins.data() : nullptr;
    args.bias = device_bias.data();
    args.y = device_y.data();
    args.workspace = device_workspace.data();
    (gpu_.*kernel).run(args);
    gpu_.device->synchronise(queue_);
    std::string what = std::string(format) + " " + std::to_string(n) + " x " + std::to_string(k) +
                       ", groups of " + std::to_string(group) + ", " + std::to_string(count) +
                       " matrices, " + std::to_string(rows) + " rows";
    report(what, y, device_y.download());
    if (gemm.gates == nullptr || !gemm.gates(args)) return;
    std::vector<float> activated(static_cast<size_t>(y_rows * n / 2));
    DeviceArray<float> device_activated(activated.size());
    gemm.run_gated(with_activation(host_args, y_rows, activated.data()));
    (gpu_.*kernel).run_gated(with_activation(args, y_rows, device_activated.data()));
    gpu_.device->synchronise(queue_);
    report(what + ", activated", activated, device_activated.download());
  }

  // Spans (rows, keys before them). Latents have one head of keys.
  void attention(DType dtype, int64_t kv_heads, int64_t group, int64_t width, int64_t window,
                 int64_t page_size, const std::vector<std::pair<int32_t, int32_t>>& shapes) {
    bool latent = width > 256;
    int64_t rank = latent ? 512 : width;
    std::vector<SpanArgs> spans;
    std::vector<int32_t> pages;
    int32_t rows = 0;
    for (auto [count, past] : shapes) {
      spans.push_back({rows, count, past, static_cast<int32_t>(pages.size())});
      rows += count;
      for (int64_t p = 0; p * page_size < past + count; ++p) {
        pages.push_back(static_cast<int32_t>(pages.size()));
      }
    }
    auto pool_rows = static_cast<int64_t>(pages.size()) * page_size * kv_heads;
    RowShape row = {.width = width, .split = latent ? rank : 0};
    std::vector<std::byte> keys = pool(dtype, pool_rows, row), values = pool(dtype, pool_rows, row);
    std::vector<float> q = normals(rows * kv_heads * group * width);
    std::vector<float> sinks = normals(kv_heads * group);
    std::vector<float> out(static_cast<size_t>(rows * kv_heads * group * rank));
    AttentionArgs a = {.q = q.data(),
                       .q_row_stride = kv_heads * group * width,
                       .rows = rows,
                       .k_pool = keys.data(),
                       .v_pool = values.data(),
                       .pool_dtype = dtype,
                       .out = out.data(),
                       .q_heads = kv_heads * group,
                       .kv_heads = kv_heads,
                       .head_dim = width,
                       .value_dim = width,
                       .page_size = page_size,
                       .scale = 1 / std::sqrt(static_cast<float>(width)),
                       .window = window,
                       .sinks = sinks.data(),
                       .spans = spans.data(),
                       .span_count = static_cast<int64_t>(spans.size()),
                       .page_table = pages.data()};
    attend(host_, a, latent, rank);
    DeviceArray<std::byte> device_keys(keys), device_values(values);
    DeviceArray<float> device_q(q), device_sinks(sinks), device_out(out.size());
    DeviceArray<SpanArgs> device_spans(spans);
    DeviceArray<int32_t> device_pages(pages);
    a.launch.queue = queue_;
    a.q = device_q.data();
    a.k_pool = device_keys.data();
    a.v_pool = device_values.data();
    a.sinks = device_sinks.data();
    a.out = device_out.data();
    a.spans = device_spans.data();
    a.page_table = device_pages.data();
    attend(gpu_, a, latent, rank);
    gpu_.device->synchronise(queue_);
    report("attention of " + std::to_string(width) + " columns of " +
               std::string(dtype_name(dtype)) + ", " + std::to_string(spans.size()) +
               " spans, window " + std::to_string(window) + ", pages of " +
               std::to_string(page_size),
           out, device_out.download());
  }

  void delta_rule(int64_t decay_dim, const std::vector<DeltaSequence>& sequences) {
    DeltaInputs host(2, decay_dim, sequences);
    DeltaOnGpu on_gpu(host);
    host_.delta_attention(delta_args(host, host, nullptr));
    gpu_.delta_attention(delta_args(host, on_gpu, queue_));
    gpu_.device->synchronise(queue_);
    std::string what = "the delta rule, " + std::to_string(decay_dim) + " decays, " +
                       std::to_string(sequences.size()) + " sequences";
    report(what, host.out, on_gpu.out.download());
    report(what + ", states", host.states, on_gpu.states.download());
  }

 private:
  static GatedGemmArgs with_activation(const GemmArgs& args, int64_t rows, float* y) {
    SiluMulArgs activation = {.launch = args.launch,
                              .gate = args.y,
                              .up = args.y + args.n / 2,
                              .x_row_stride = args.y_stride,
                              .y = y,
                              .rows = rows,
                              .dim = args.n / 2};
    return {args, activation};
  }
  static void attend(const KernelTable& table, const AttentionArgs& a, bool latent, int64_t rank) {
    if (!latent) return table.attention(a);
    table.latent_attention({.launch = a.launch,
                            .q = a.q,
                            .q_row_stride = a.q_row_stride,
                            .pool = a.k_pool,
                            .pool_dtype = a.pool_dtype,
                            .out = a.out,
                            .heads = a.q_heads,
                            .width = a.head_dim,
                            .rank = rank,
                            .page_size = a.page_size,
                            .scale = a.scale,
                            .spans = a.spans,
                            .span_count = a.span_count,
                            .page_table = a.page_table});
  }

  std::vector<std::byte> pool(DType dtype, int64_t rows, const RowShape& shape) {
    int64_t bytes = state_row_bytes(dtype, shape);
    std::vector<std::byte> pool(static_cast<size_t>(rows * bytes));
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<float> x = normals(shape.width);
      std::byte* to = pool.data() + r * bytes;
      if (dtype == DType::kI8) {
        store_row(x.data(), shape, reinterpret_cast<int8_t*>(to));
      } else if (dtype == DType::kF8E4M3) {
        store_row(x.data(), shape, reinterpret_cast<Float8E4M3*>(to));
      } else if (dtype == DType::kF16) {
        store_row(x.data(), shape, reinterpret_cast<Float16*>(to));
      } else {
        store_row(x.data(), shape, reinterpret_cast<BFloat16*>(to));
      }
    }
    return pool;
  }

  void append_matrix(const GemmKernel& gemm, const std::string& format, int64_t n, int64_t k,
                     int64_t group, std::vector<std::byte>& packed) {
    std::vector<uint16_t> elements(static_cast<size_t>(n * k));
    for (uint16_t& element : elements) {
      float value = normal_(random_);
      element =
          format == "f16" ? from_float<Float16>(value).bits : from_float<BFloat16>(value).bits;
    }
    std::vector<uint8_t> codes(static_cast<size_t>(n * k)),
        zeros(static_cast<size_t>(n * k / group));
    std::vector<float> scales(zeros.size());
    for (uint8_t& code : codes) {
      code = static_cast<uint8_t>(random_() % (format == "int8" || format == "fp8" ? 256 : 16));
      if (format == "fp8" && (code & 0x7f) == 0x7f) code = 0;
    }
    for (uint8_t& zero : zeros) zero = static_cast<uint8_t>(random_() % 16);
    for (float& scale : scales) scale = std::exp2(-static_cast<float>(random_() % 8));
    size_t bytes = gemm.packed_bytes(n, k, group);
    packed.resize(packed.size() + bytes);
    gemm.pack({.source = format.ends_with("f16") ? static_cast<const void*>(elements.data())
                                                 : codes.data(),
               .scales = scales.data(),
               .zeros = zeros.data(),
               .packed = packed.data() + packed.size() - bytes,
               .n = n,
               .k = k,
               .group = group,
               .row_begin = 0,
               .row_count = n});
  }

  std::vector<float> normals(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal_(random_);
    return values;
  }
  void report(const std::string& what, const std::vector<float>& expected,
              const std::vector<float>& got) {
    size_t different = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      different += std::memcmp(&expected[i], &got[i], sizeof(float)) != 0 ? 1 : 0;
    }
    std::printf("%s: %s\n", what.c_str(),
                different == 0 ? "equal bit for bit"
                               : (std::to_string(different) + " values DIFFER").c_str());
    all_same_ = all_same_ && different == 0;
  }

  const KernelTable &gpu_, &host_;
  void* queue_;
  std::mt19937 random_{1};
  std::normal_distribution<float> normal_;
  bool all_same_ = true;
};

int run_all() {
  require_hopper();
  Compare compare;
  compare.tensor_maps();
  using T = KernelTable;
  for (int64_t rows : {1, 5, 13, 29, 50, 100, 300}) {
    compare.product("bf16", &T::gemm_bf16, rows, 200, 1024, 1024, 1);
    compare.product("bf16", &T::gemm_bf16, rows, 130, 200, 200, 5);
    compare.product("f16", &T::gemm_f16, rows, 200, 1024, 1024, 1);
    compare.product("f16", &T::gemm_f16, rows, 130, 200, 200, 5);
    for (auto [name, format] : {std::pair("bf16", &T::gemm_bf16), {"f16", &T::gemm_f16}}) {
      compare.product(name, format, rows, 256, 1024, 1024, 1);
      compare.product(name, format, rows, 128, 200, 200, 5);
    }
    compare.product("int8", &T::gemm_int8, rows, 130, 320, 320, 1);
    compare.product("int4", &T::gemm_int4, rows, 130, 320, 32, 1);
    compare.product("int4", &T::gemm_int4, rows, 130, 512, 128, 5);
    compare.product("uint4", &T::gemm_uint4, rows, 130, 512, 64, 1);
    compare.product("mxfp4", &T::gemm_mxfp4, rows, 130, 320, 32, 1);
    compare.product("fp8", &T::gemm_fp8, rows, 130, 512, 128, 1);
  }
  // Teams that take turns more often than they are many, and tiles that fill a GPU.
  struct Quantised {
    const char* name;
    FormatKernel format;
    int64_t group;
  };
  for (const Quantised& of : {Quantised{"int8", &T::gemm_int8, 1280},
                              {"int4", &T::gemm_int4, 32},
                              {"uint4", &T::gemm_uint4, 128},
                              {"mxfp4", &T::gemm_mxfp4, 32},
                              {"fp8", &T::gemm_fp8, 1280}}) {
    for (int64_t rows : {2, 12, 30}) {
      compare.product(of.name, of.format, rows, 200, 1280, of.group, 1);
    }
    compare.product(of.name, of.format, 128, 166 * 64, 64, std::min(of.group, int64_t{64}), 1);
  }
  // Tiles that only matrices as large as a GPU have: of 256, 192 and, by clusters, 256 rows.
  compare.product("bf16", &T::gemm_bf16, 300, 132 * 128, 64, 64, 1);
  compare.product("bf16", &T::gemm_bf16, 576, 4096, 512, 512, 1);
  compare.product("bf16", &T::gemm_bf16, 200, 4096, 512, 512, 1);
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kI8, DType::kF8E4M3}) {
    for (int64_t width : {64, 128, 256}) {
      compare.attention(dtype, 2, 4, width, 0, 64, {{1, 1200}, {3, 510}, {9, 20}});
      for (int64_t window : {0, 700}) {
        compare.attention(dtype, 2, 4, width, window, window > 0 ? 32 : 16,
                          {{1, 1200}, {90, 0}, {3, 510}});
      }
    }
    // Pages whose rows no box has, and codes that are converted as they are loaded.
    compare.attention(dtype, 2, 4, 128, 0, 8, {{1, 1200}, {3, 510}, {9, 20}});
    // More items than blocks, of more spans than a warp has lanes, some of them empty.
    std::vector<std::pair<int32_t, int32_t>> many;
    for (int32_t i = 0; i < 48; ++i) many.push_back({i % 7 == 3 ? 0 : 1, 60 + i * 13});
    for (int64_t width : {64, 128, 256}) {
      compare.attention(dtype, 8, 1, width, width == 128 ? 300 : 0, 64, many);
    }
    compare.attention(dtype, 1, 16, 576, 0, 64, {{1, 1200}, {20, 0}, {3, 510}});
  }
  for (int64_t decay_dim : {1, 128}) {
    compare.delta_rule(decay_dim, {{700, 695}});
    compare.delta_rule(decay_dim, {{70, 65}, {6, 1}, {5, 0}, {133, 128}});
  }
  return compare.all_same() ? 0 : 1;
}

}  // namespace
}  // namespace banyan::gpu

int main() {
  return banyan::gpu::run_all();
}
