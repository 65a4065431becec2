#include "weights/stacked_source.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"

namespace banyan {
namespace {

// Whether dimensions [begin, end) of `shape` hold `count` elements.
bool holds(std::span<const int64_t> shape, int64_t count) {
  for (int64_t extent : shape) {
    if (extent <= 0 || count % extent != 0) return false;
    count /= extent;
  }
  return count == 1;
}

bool fits(const TensorInfo& tensor, const StackShape& s) {
  std::span<const int64_t> shape = tensor.shape;
  if (shape.size() < 2 || shape[0] != s.count) return false;
  if (s.columns == 0) return shape.size() == 2 && shape[1] == s.rows;
  if (s.transposed) return shape.size() == 3 && shape[1] == s.columns && shape[2] == s.rows;
  return shape.size() >= 3 && shape[1] == s.rows && holds(shape.subspan(2), s.columns);
}

}  // namespace

Status StackedSource::split(const TensorInfo& whole, std::string_view scope,
                            const StackShape& shape, const StackPart& part) {
  if (!fits(whole, shape)) {
    return corrupt("{} has shape [{}] where {} matrices of {} rows and {} columns{} are expected",
                   whole.name, fmt::join(whole.shape, ", "), shape.count, shape.rows, shape.columns,
                   shape.transposed ? ", transposed," : "");
  }
  size_t element = dtype_bytes(whole.dtype);
  auto rows = as_size(shape.rows);
  auto columns = as_size(std::max<int64_t>(shape.columns, 1));
  for (int64_t i = 0; i < shape.count; ++i) {
    View view{.info = whole, .whole = &whole, .columns = static_cast<int64_t>(columns)};
    view.element_bytes = element;
    view.row_stride = element * (shape.transposed ? 1 : columns);
    view.column_stride = element * (shape.transposed ? rows : 1);
    view.first_byte =
        as_size(i) * rows * columns * element + as_size(part.first_row) * view.row_stride;
    view.row_stride *= as_size(part.row_step);
    view.info.name = fmt::format("{}.{}.{}", scope, i, part.leaf);
    view.info.shape = {part.rows};
    if (shape.columns > 0) view.info.shape.push_back(shape.columns);
    view.info.bytes = whole.bytes.first(as_size(part.rows) * columns * element);
    std::string name = view.info.name;
    views_.insert_or_assign(std::move(name), std::move(view));
  }
  return {};
}

const TensorInfo* StackedSource::find(std::string_view name) const {
  auto it = views_.find(name);
  return it == views_.end() ? whole_->find(name) : &it->second.info;
}

const StackedSource::View* StackedSource::view_of(const TensorInfo& tensor) const {
  auto it = views_.find(tensor.name);
  return it != views_.end() && &it->second.info == &tensor ? &it->second : nullptr;
}

const MappedFile* StackedSource::file_of(const TensorInfo& tensor) const {
  const View* view = view_of(tensor);
  return whole_->file_of(view == nullptr ? tensor : *view->whole);
}

Status StackedSource::read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const {
  const View* view = view_of(tensor);
  if (view == nullptr) return whole_->read(tensor, offset, to);
  size_t row_bytes = as_size(view->columns) * view->element_bytes;
  CHECK(offset % row_bytes == 0 && to.size() % row_bytes == 0, "{}: {} bytes from {}", tensor.name,
        to.size(), offset);
  if (to.empty()) return {};
  size_t begin = offset / row_bytes, end = begin + to.size() / row_bytes;
  return view->column_stride == view->element_bytes ? read_rows(*view, begin, end, to.data())
                                                    : read_columns(*view, begin, end, to.data());
}

// Rows are contiguous, with other rows between them.
Status StackedSource::read_rows(const View& view, size_t begin, size_t end, std::byte* to) const {
  size_t row_bytes = as_size(view.columns) * view.element_bytes;
  size_t first = view.first_byte + begin * view.row_stride, rows = end - begin;
  if (view.row_stride == row_bytes) {
    return whole_->read(*view.whole, first, {to, rows * row_bytes});
  }
  std::vector<std::byte> between((rows - 1) * view.row_stride + row_bytes);
  TRY(whole_->read(*view.whole, first, between));
  for (size_t r = 0; r < rows; ++r) {
    std::memcpy(to + r * row_bytes, between.data() + r * view.row_stride, row_bytes);
  }
  return {};
}

// Columns are contiguous.
Status StackedSource::read_columns(const View& view, size_t begin, size_t end,
                                   std::byte* to) const {
  size_t rows = end - begin, element = view.element_bytes;
  auto columns = as_size(view.columns);
  std::vector<std::byte> run((rows - 1) * view.row_stride + element);
  for (size_t c = 0; c < columns; ++c) {
    size_t first = view.first_byte + begin * view.row_stride + c * view.column_stride;
    TRY(whole_->read(*view.whole, first, run));
    for (size_t r = 0; r < rows; ++r) {
      std::memcpy(to + (r * columns + c) * element, run.data() + r * view.row_stride, element);
    }
  }
  return {};
}

}  // namespace banyan
