#include "kernels/choice/probe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/os/memory.h"

namespace banyan {
namespace {

constexpr size_t kRoundsMax = 15;
constexpr double kClearlyFaster = 1.08;  // repeated medians of one table differ by less

double median(std::vector<double> values) {
  auto middle = values.begin() + values.size() / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Measures the ratios of one format, until `until_s`.
TableSpeeds probe_format(KernelProbe& probe, size_t tables, double until_s) {
  std::vector<std::vector<double>> ratios(tables);
  double round_s = 0;
  for (size_t round = 0; round < kRoundsMax; ++round) {
    double begin_s = probe.now_s();
    if (round > 0 && begin_s + round_s > until_s) break;
    std::vector<double> times(tables);
    for (size_t table = 0; table < tables; ++table) times[table] = probe.run(table);
    for (size_t table = 0; table < tables; ++table) {
      ratios[table].push_back(times.back() / times[table]);
    }
    round_s = std::max(round_s, probe.now_s() - begin_s);
  }
  TableSpeeds speeds;
  for (std::vector<double>& of_table : ratios) speeds.push_back(median(std::move(of_table)));
  return speeds;
}

constexpr int64_t kN = 2048, kK = 1024, kRows = 64, kMatrices = 4;
constexpr int64_t kHeads = 2, kHeadDim = 128, kKeys = 256, kPageSize = 64;

// Random weight bytes that are not subnormal, infinite or NaN in any of the formats.
void fill_weights(const GemmFormat& format, std::span<std::byte> source) {
  bool plain = format.group == 0 && format.name != "int8";
  uint32_t state = 1;
  for (size_t i = 0; i < source.size(); ++i) {
    state = state * 1664525 + 1013904223;
    auto byte = static_cast<std::byte>(state >> 24);
    if (plain) {  // the last byte of an element has the sign and the upper exponent bits
      bool last = i % format.element_bytes == format.element_bytes - 1;
      source[i] = last ? (byte & std::byte{0x80}) | std::byte{0x3c} : byte & std::byte{0x7f};
    } else if (format.name == "fp8") {
      source[i] = (byte & std::byte{0xb7}) | std::byte{0x10};
    } else if (format.group == kLevelledGroup) {
      source[i] = byte & std::byte{3};
    } else {
      source[i] = format.name == "int8" ? byte : byte & std::byte{15};
    }
  }
}

std::vector<float> numbers(int64_t count) {
  std::vector<float> values(count);
  uint32_t state = 7;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = (state >> 8) * 0x1p-23f - 1;
  }
  return values;
}

class RealProbe : public KernelProbe {
 public:
  explicit RealProbe(std::span<const KernelTable* const> tables)
      : tables_(tables.begin(), tables.end()),
        packed_(tables.size()),
        x_(numbers(kRows * kK)),
        q_(numbers(kRows * kHeads * kHeadDim)),
        y_(std::max(kRows * kN, kMatrices * kN)),
        out_(q_.size()) {
    // Keys and values: bf16 of about one half, positive and negative.
    keys_.resize(kKeys * kHeadDim);
    for (size_t i = 0; i < keys_.size(); ++i) {
      keys_[i] = static_cast<uint16_t>((i * 2654435761u >> 16 & 0x807f) | 0x3f00);
    }
  }

  void prepare(const GemmFormat& format) override {
    format_ = &format;
    group_ = format.group == 0 ? kK : format.group;
    size_t codes = kN * kK;
    std::vector<std::byte> source(codes * format.element_bytes);
    fill_weights(format, source);
    std::vector<float> scales(codes / group_, 0x1p-6f);
    std::vector<uint8_t> zeros(scales.size(), 7), min_levels(codes / kLevelColumns, 3);
    std::vector<int8_t> levels(min_levels.size(), 9);
    size_t workspace = 0;
    for (size_t i = 0; i < tables_.size(); ++i) {
      const GemmKernel& kernel = this->kernel(i);
      size_t bytes = kernel.packed_bytes(kN, kK, group_);
      packed_[i] = {};  // freed before the next is allocated
      packed_[i] = MemoryBlock(bytes * kMatrices);
      kernel.pack({.source = source.data(),
                   .scales = scales.data(),
                   .zeros = zeros.data(),
                   .mins = scales.data(),
                   .levels = levels.data(),
                   .min_levels = min_levels.data(),
                   .packed = packed_[i].data(),
                   .n = kN,
                   .k = kK,
                   .group = group_,
                   .row_count = kN});
      for (int64_t m = 1; m < kMatrices; ++m) {
        std::memcpy(packed_[i].data() + m * bytes, packed_[i].data(), bytes);
      }
      workspace = std::max(workspace, kernel.workspace_bytes(kRows, 1, kK, group_));
    }
    workspace_ = MemoryBlock(workspace);
  }

  double run(size_t table) override {
    double begin = now_s();
    multiply(table, kRows, 1);
    attend(*tables_[table]);
    double middle = now_s();
    multiply(table, 1, kMatrices);
    return std::sqrt((middle - begin) * (now_s() - middle));
  }

  double now_s() override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

 private:
  const GemmKernel& kernel(size_t table) const { return tables_[table]->*format_->kernel; }

  void multiply(size_t table, int64_t rows, int64_t matrices) {
    const GemmKernel& kernel = this->kernel(table);
    kernel.run(
        {.x = x_.data(),
         .x_stride = kK,
         .x_rows = rows,
         .segment_stride = kK,
         .weights = {.weight = packed_[table].data(),
                     .weight_stride = static_cast<int64_t>(kernel.packed_bytes(kN, kK, group_)),
                     .count = matrices,
                     .y_column_stride = kN},
         .y = y_.data(),
         .y_stride = matrices * kN,
         .n = kN,
         .k = kK,
         .group = group_,
         .workspace = workspace_.data()});
  }

  void attend(const KernelTable& table) {
    constexpr int32_t kPages[] = {0, 1, 2, 3};
    static_assert(sizeof(kPages) / sizeof(int32_t) == kKeys / kPageSize);
    SpanArgs span = {.row_count = kRows, .first_position = kKeys - kRows};
    table.attention({.q = q_.data(),
                     .q_row_stride = kHeads * kHeadDim,
                     .k_pool = keys_.data(),
                     .v_pool = keys_.data(),
                     .pool_dtype = DType::kBF16,
                     .out = out_.data(),
                     .q_heads = kHeads,
                     .kv_heads = 1,
                     .head_dim = kHeadDim,
                     .value_dim = kHeadDim,
                     .page_size = kPageSize,
                     .scale = 0.088f,
                     .spans = &span,
                     .span_count = 1,
                     .page_table = kPages});
  }

  std::vector<const KernelTable*> tables_;
  std::vector<MemoryBlock> packed_;  // of each table, kMatrices equal ones
  const GemmFormat* format_ = nullptr;
  int64_t group_ = 0;
  MemoryBlock workspace_;
  std::vector<float> x_, q_, y_, out_;
  std::vector<uint16_t> keys_;
};

}  // namespace

ProbedSpeeds probe_kernels(KernelProbe& probe, size_t tables, double budget_s) {
  ProbedSpeeds speeds;
  double begin_s = probe.now_s();
  for (size_t f = 0; f < kGemmFormats.size(); ++f) {
    double left_s = begin_s + budget_s - probe.now_s();
    double share_s = left_s / (kGemmFormats.size() - f);
    double until_s = probe.now_s() + share_s;
    probe.prepare(kGemmFormats[f]);
    speeds[f] = probe_format(probe, tables, until_s);
  }
  return speeds;
}

size_t fastest_table(const TableSpeeds& speeds) {
  double enough = *std::ranges::max_element(speeds) / kClearlyFaster;
  size_t table = speeds.size() - 1;
  while (speeds[table] < enough) --table;
  return table;
}

std::unique_ptr<KernelProbe> real_probe(std::span<const KernelTable* const> tables) {
  return std::make_unique<RealProbe>(tables);
}

}  // namespace banyan
