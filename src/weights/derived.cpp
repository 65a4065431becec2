// Weights that a model family computes from a checkpoint's weights before packing.
#include "base/check.h"
#include "base/signed.h"
#include "weights/builder.h"
#include "weights/convert.h"
#include "weights/random_weights.h"

namespace banyan {

std::vector<float> Builder::floats(std::string_view name, int64_t rows, int64_t columns) const {
  const LoadOptions& options = loader_->options_;
  std::string full = full_name(name);
  loader_->adapter_sites_.others.push_back(full);
  std::optional<StoredMatrix> stored;
  if (options.source != nullptr) stored = loader_->claim_matrix(full, rows, columns);
  if (!stored && options.source != nullptr) return {};
  loader_->counts_.parameters_total += rows * columns;
  loader_->count_active(rows * columns, 0, share_);
  if (options.dry) return {};
  std::vector<float> elements(as_size(rows * columns));
  if (!stored) {
    random_elements(full, 0, rows * columns, 0, elements.data());
    return elements;
  }
  Status read = stored->load();
  if (read) read = stored->read_floats(0, rows, elements.data());
  if (!read) loader_->problems_.push_back(read.error().message);
  for (const TensorInfo* tensor : stored->tensors()) {
    loader_->report_progress(std::ssize(tensor->bytes));
  }
  return elements;
}

PackedMatrix Builder::derived(std::string_view format, int64_t count, int64_t rows, int64_t columns,
                              std::span<const float> elements) const {
  const LoadOptions& options = loader_->options_;
  PackedMatrix matrix{.format = format_named(format),
                      .count = count,
                      .rows = rows,
                      .columns = columns,
                      .group = columns};
  CHECK(matrix.format != nullptr && !matrix.format->quantised, "{}", format);
  const GemmKernel& kernel = options.kernels->*matrix.format->kernel;
  matrix.bytes = kernel.packed_bytes(rows, columns, matrix.group);
  int64_t bytes = matrix.total_bytes();
  loader_->counts_.weight_bytes += bytes;
  loader_->count_active(0, bytes, share_);
  if (elements.empty()) return matrix;
  CHECK(std::ssize(elements) == count * rows * columns, "{} elements", elements.size());
  loader_->allocate(matrix);
  size_t element_bytes = dtype_bytes(matrix.format->element);
  std::vector<std::byte> converted(elements.size() * element_bytes);
  convert_elements(elements.data(), DType::kF32, converted.data(), matrix.format->element,
                   std::ssize(elements));
  for (int64_t i = 0; i < count; ++i) {
    Staging stage(*options.queue, static_cast<std::byte*>(matrix.data) + i * matrix.bytes,
                  matrix.bytes);
    kernel.pack({.source = converted.data() + i * (converted.size() / as_size(count)),
                 .packed = stage.data(),
                 .n = rows,
                 .k = columns,
                 .group = matrix.group,
                 .row_count = rows});
    stage.upload();
  }
  return matrix;
}

}  // namespace banyan
