#include "weights/builder.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <ranges>

#include "base/check.h"
#include "base/error.h"
#include "weights/convert.h"
#include "weights/random_weights.h"

namespace banyan {
namespace {

constexpr size_t kProblemsShown = 8;
constexpr int64_t kPackBytes = 1 << 20;  // read, converted and packed at a time by one worker

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// The dimensions that are not 1.
auto beyond_one(const auto& shape) {
  return shape | std::views::filter([](int64_t extent) { return extent != 1; });
}

// The format that holds every part without loss.
const WeightFormat* widest_format(const WeightFormat* a, const WeightFormat* b) {
  if (a == nullptr || a == b) return b;
  return format_of(DType::kF32);
}

}  // namespace

std::byte* WeightStore::allocate(size_t bytes) {
  return blocks_.emplace_back(bytes).data();
}

WeightLoader::WeightLoader(LoadOptions options) : options_(std::move(options)) {
  if (options_.source == nullptr) return;
  for (const TensorInfo* tensor : options_.source->tensors()) {
    bytes_total_ += static_cast<int64_t>(tensor->bytes.size());
    ++counts_.tensors;
  }
}

Status WeightLoader::finish() {
  if (options_.source != nullptr) {
    for (const TensorInfo* tensor : options_.source->tensors()) {
      if (used_.contains(tensor->name)) continue;
      problems_.push_back(fmt::format("{} {} is not used by this architecture", tensor->name,
                                      shape_text(tensor->shape)));
    }
  }
  if (problems_.empty()) return {};
  size_t shown = std::min(problems_.size(), kProblemsShown);
  std::string list =
      fmt::format("{}", fmt::join(problems_.begin(), problems_.begin() + shown, "; "));
  if (problems_.size() > shown) list += fmt::format("; and {} more", problems_.size() - shown);
  return corrupt("the checkpoint does not fit its config.json: {}", list);
}

const TensorInfo* WeightLoader::claim(const std::string& name, std::initializer_list<int64_t> shape,
                                      bool loosely) {
  const TensorInfo* tensor = options_.source->find(name);
  if (tensor == nullptr) {
    problems_.push_back(fmt::format("{} {} is missing", name, shape_text(shape)));
    return nullptr;
  }
  if (!used_.insert(name).second) {
    problems_.push_back(fmt::format("{} is used twice", name));
    return nullptr;
  }
  bool same = loosely ? std::ranges::equal(beyond_one(tensor->shape), beyond_one(shape))
                      : std::ranges::equal(tensor->shape, shape);
  if (!same) {
    problems_.push_back(fmt::format("{} has shape {} where {} is expected", name,
                                    shape_text(tensor->shape), shape_text(shape)));
    return nullptr;
  }
  if (!is_float_dtype(tensor->dtype)) {
    problems_.push_back(fmt::format("{} has dtype {} where F32, BF16 or F16 is expected", name,
                                    dtype_name(tensor->dtype)));
    return nullptr;
  }
  return tensor;
}

void WeightLoader::report_progress(int64_t bytes) {
  bytes_done_ += bytes;
  if (options_.progress) options_.progress(bytes_done_, std::max(bytes_done_, bytes_total_));
}

void WeightLoader::count_active(int64_t parameters, int64_t bytes, const TokenShare& share) {
  auto part = [](int64_t whole, double fraction) {
    return static_cast<int64_t>(std::llround(static_cast<double>(whole) * fraction));
  };
  counts_.parameters_active += part(parameters, share.mean);
  counts_.parameters_active_min += part(parameters, share.min);
  counts_.parameters_active_max += part(parameters, share.max);
  counts_.bytes_streamed += part(bytes, share.mean);
}

void WeightLoader::pack(const TensorInfo* tensor, const std::string& name,
                        const PackedMatrix& matrix, int64_t row_begin, int64_t row_count) {
  if (options_.dry) return;
  const GemmKernel& kernel = options_.kernels->*matrix.format->kernel;
  DType source_dtype = tensor ? tensor->dtype : DType::kF32;
  size_t source_row = static_cast<size_t>(matrix.columns) * dtype_bytes(source_dtype);
  size_t packed_row = static_cast<size_t>(matrix.columns) * dtype_bytes(matrix.format->element);
  int64_t chunk = std::clamp<int64_t>(kPackBytes / static_cast<int64_t>(source_row), 1, row_count);
  std::mutex mutex;
  Status status;
  options_.threads->parallel_for(row_count, chunk, [&](int64_t begin, int64_t end) {
    std::vector<std::byte> source(static_cast<size_t>(chunk) * source_row);
    std::vector<std::byte> converted(static_cast<size_t>(chunk) * packed_row);
    for (int64_t row = begin; row < end; row += chunk) {
      int64_t rows = std::min(chunk, end - row);
      int64_t count = rows * matrix.columns;
      if (tensor == nullptr) {
        random_elements(name, row * matrix.columns, count, 0,
                        reinterpret_cast<float*>(source.data()));
      } else if (Status read = options_.source->read(
                     *tensor, static_cast<size_t>(row) * source_row,
                     std::span(source).first(static_cast<size_t>(rows) * source_row));
                 !read) {
        std::lock_guard lock(mutex);
        status = read;
        return;
      }
      convert_elements(source.data(), source_dtype, converted.data(), matrix.format->element,
                       count);
      kernel.pack({.source = converted.data(),
                   .packed = matrix.data,
                   .n = matrix.rows,
                   .k = matrix.columns,
                   .group = matrix.group,
                   .row_begin = row_begin + row,
                   .row_count = rows});
    }
  });
  if (!status) problems_.push_back(status.error().message);
  report_progress(row_count * static_cast<int64_t>(source_row));
}

float* WeightLoader::allocate_values(int64_t count, const TokenShare& share) {
  int64_t bytes = count * static_cast<int64_t>(sizeof(float));
  counts_.parameters += count;
  counts_.bytes += bytes;
  count_active(count, bytes, share);
  if (options_.dry) return nullptr;
  return reinterpret_cast<float*>(store_.allocate(static_cast<size_t>(bytes)));
}

void WeightLoader::fill(const TensorInfo* tensor, const std::string& name, int64_t count,
                        float random_center, float* to) {
  if (tensor == nullptr) return random_elements(name, 0, count, random_center, to);
  std::vector<std::byte> raw(tensor->bytes.size());
  if (Status read = options_.source->read(*tensor, 0, raw); !read) {
    problems_.push_back(read.error().message);
  }
  convert_elements(raw.data(), tensor->dtype, to, DType::kF32, count);
  report_progress(static_cast<int64_t>(raw.size()));
}

Builder Builder::operator/(std::string_view name) const {
  return Builder(loader_, full_name(name), share_);
}

Builder Builder::operator/(int64_t index) const {
  return *this / std::to_string(index);
}

Builder Builder::with_share(const TokenShare& share) const {
  return Builder(loader_, scope_, share);
}

std::string Builder::full_name(std::string_view name) const {
  return scope_.empty() ? std::string(name) : fmt::format("{}.{}", scope_, name);
}

PackedMatrix Builder::matrix(std::initializer_list<MatrixPart> parts, int64_t columns,
                             MatrixUse use) const {
  LoadOptions& options = loader_->options_;
  std::vector<const TensorInfo*> tensors;
  const WeightFormat* stored = nullptr;
  PackedMatrix matrix{.columns = columns, .group = columns};
  bool complete = true;
  for (const MatrixPart& part : parts) {
    matrix.rows += part.rows;
    std::string name = full_name(fmt::format("{}.weight", part.name));
    const TensorInfo* tensor =
        options.source ? loader_->claim(name, {part.rows, columns}) : nullptr;
    complete = complete && (tensor != nullptr || options.source == nullptr);
    stored = widest_format(stored, format_of(tensor ? tensor->dtype : options.dtype));
    tensors.push_back(tensor);
  }
  if (!complete) return {};

  matrix.format = options.format ? options.format : stored;
  const GemmKernel& kernel = options.kernels->*matrix.format->kernel;
  matrix.bytes = kernel.packed_bytes(matrix.rows, columns, matrix.group);
  if (!options.dry) matrix.data = loader_->store_.allocate(matrix.bytes);
  int64_t row = 0;
  size_t index = 0;
  for (const MatrixPart& part : parts) {
    loader_->pack(tensors[index++], full_name(part.name), matrix, row, part.rows);
    row += part.rows;
  }

  WeightCounts& counts = loader_->counts_;
  counts.parameters += matrix.rows * columns;
  counts.bytes += static_cast<int64_t>(matrix.bytes);
  if (use != MatrixUse::kLookUp) {
    loader_->count_active(matrix.rows * columns, static_cast<int64_t>(matrix.bytes), share_);
  }
  return matrix;
}

Tensor Builder::vector(std::initializer_list<MatrixPart> parts, std::string_view leaf,
                       float random_center) const {
  const WeightSource* source = loader_->options_.source;
  int64_t size = 0;
  bool complete = true;
  std::vector<std::string> names;
  std::vector<const TensorInfo*> tensors;
  for (const MatrixPart& part : parts) {
    Builder scope = part.name.empty() ? *this : *this / part.name;
    names.push_back(scope.full_name(leaf));
    tensors.push_back(source ? loader_->claim(names.back(), {part.rows}) : nullptr);
    complete = complete && (tensors.back() != nullptr || source == nullptr);
    size += part.rows;
  }
  if (!complete) return {};

  float* data = loader_->allocate_values(size, share_);
  if (data == nullptr) return Tensor(nullptr, DType::kF32, {size});
  float* to = data;
  size_t index = 0;
  for (const MatrixPart& part : parts) {
    loader_->fill(tensors[index], names[index], part.rows, random_center, to);
    to += part.rows;
    ++index;
  }
  return Tensor(data, DType::kF32, {size});
}

Tensor Builder::values(std::string_view name, std::initializer_list<int64_t> shape,
                       float random_center) const {
  const WeightSource* source = loader_->options_.source;
  std::string full = full_name(name);
  const TensorInfo* tensor = source ? loader_->claim(full, shape, true) : nullptr;
  if (source != nullptr && tensor == nullptr) return {};
  Tensor values(nullptr, DType::kF32, shape);
  float* data = loader_->allocate_values(values.count(), share_);
  if (data != nullptr) loader_->fill(tensor, full, values.count(), random_center, data);
  return Tensor(data, DType::kF32, shape);
}

StateId Builder::state(StateSpec spec) const {
  spec.name = full_name(spec.name);
  loader_->states_.push_back(std::move(spec));
  return static_cast<StateId>(loader_->states_.size()) - 1;
}

DType Builder::state_dtype() const {
  return loader_->options_.dtype;
}

bool Builder::has(std::string_view name) const {
  const WeightSource* source = loader_->options_.source;
  return source != nullptr && source->find(full_name(name)) != nullptr;
}

void Builder::reject(std::string_view problem) const {
  loader_->problems_.push_back(fmt::format("{} {}", scope_, problem));
}

void Builder::ignore(std::string_view name) const {
  loader_->used_.insert(full_name(name));
}

void Builder::ignore_scope() const {
  const WeightSource* source = loader_->options_.source;
  if (source == nullptr) return;
  for (const TensorInfo* tensor : source->tensors()) {
    if (tensor->name.starts_with(scope_ + ".")) loader_->used_.insert(tensor->name);
  }
}

}  // namespace banyan
