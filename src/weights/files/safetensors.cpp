#include "weights/files/safetensors.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/quote.h"
#include "base/signed.h"

namespace banyan {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

static_assert(std::endian::native == std::endian::little, "tensor bytes are used as they lie");

constexpr size_t kLengthBytes = 8;
constexpr size_t kHeaderBytesMax = 100'000'000;  // the reference implementation's limit
constexpr size_t kHeaderDepthMax = 8;            // the format itself needs 3
constexpr size_t kRankMax = 8;
constexpr size_t kMetadataShownBytesMax = 60;

// Describes a JSON value for an error.
std::string shown(const element& value) {
  if (value.is_string()) return quote(std::string_view(value), kMetadataShownBytesMax);
  std::string text = simdjson::minify(value);
  return text.size() <= kMetadataShownBytesMax ? text : quote(text, kMetadataShownBytesMax);
}

// Reads the tensors of one header. `data` is the rest of the file after the header.
class HeaderReader {
 public:
  HeaderReader(std::string_view path, std::span<const std::byte> data) : path_(path), data_(data) {}

  Result<SafetensorsHeader> read(const element& root) {
    SafetensorsHeader header;
    bool has_metadata = false;
    for (auto [name, value] : simdjson::dom::object(root)) {
      if (name != "__metadata__") {
        header.tensors.push_back(TRY(read_tensor(name, value)));
      } else if (std::exchange(has_metadata, true)) {
        return corrupt("{}: the key \"__metadata__\" appears twice", path_);
      } else {
        header.metadata = TRY(read_metadata(value));
      }
    }
    TRY(check_coverage(header.tensors));
    std::ranges::sort(header.tensors, {}, &TensorInfo::name);
    auto twice = std::ranges::adjacent_find(header.tensors, {}, &TensorInfo::name);
    if (twice != header.tensors.end()) {
      return corrupt("{}: the tensor {} appears twice", path_, quote(twice->name));
    }
    return header;
  }

 private:
  Result<std::map<std::string, std::string>> read_metadata(const element& value) {
    if (!value.is_object()) {
      return corrupt("{}: __metadata__ is {}, not an object of strings", path_, shown(value));
    }
    std::map<std::string, std::string> metadata;
    for (auto [key, text] : simdjson::dom::object(value)) {
      if (!text.is_string()) {
        return corrupt("{}: __metadata__ {} is {}, not a string", path_, quote(key), shown(text));
      }
      if (!metadata.emplace(key, std::string_view(text)).second) {
        return corrupt("{}: __metadata__ has the key {} twice", path_, quote(key));
      }
    }
    return metadata;
  }

  Result<TensorInfo> read_tensor(std::string_view name, const element& value) {
    std::string where = fmt::format("{}: tensor {}", path_, quote(name));
    if (!value.is_object()) return corrupt("{}: {} is not an object", where, shown(value));
    std::optional<element> dtype, shape, offsets;
    for (auto [key, field] : simdjson::dom::object(value)) {
      auto* target = key == "dtype"          ? &dtype
                     : key == "shape"        ? &shape
                     : key == "data_offsets" ? &offsets
                                             : nullptr;
      if (target == nullptr) return corrupt("{}: unknown field {}", where, quote(key));
      if (*target) return corrupt("{}: the field {} appears twice", where, quote(key));
      *target = field;
    }
    if (!dtype) return corrupt("{}: no dtype", where);
    if (!shape) return corrupt("{}: no shape", where);
    if (!offsets) return corrupt("{}: no data_offsets", where);
    TensorInfo tensor;
    tensor.name = name;
    tensor.dtype = TRY(read_dtype(where, *dtype));
    tensor.shape = TRY(read_integers(where, "shape", *shape, kRankMax));
    tensor.bytes = TRY(read_bytes(where, *offsets));
    TRY(check_size(where, tensor));
    return tensor;
  }

  static Result<DType> read_dtype(std::string_view where, const element& value) {
    if (!value.is_string()) return corrupt("{}: dtype is {}, not a string", where, shown(value));
    std::optional<DType> dtype = parse_dtype(value);
    if (!dtype) return unsupported("{}: dtype {} is not supported", where, shown(value));
    return *dtype;
  }

  // A list of at most `count_max` integers from 0 to 2^63-1.
  static Result<std::vector<int64_t>> read_integers(std::string_view where, std::string_view field,
                                                    const element& value, size_t count_max) {
    if (!value.is_array()) {
      return corrupt("{}: {} is {}, not a list", where, field, shown(value));
    }
    std::vector<int64_t> integers;
    for (element item : simdjson::dom::array(value)) {
      int64_t integer = -1;
      if (item.get(integer) != simdjson::SUCCESS || integer < 0) {
        return corrupt("{}: {} has {}, which is not an integer from 0 to 2^63-1", where, field,
                       shown(item));
      }
      if (integers.size() == count_max) {
        return corrupt("{}: {} has more than {} numbers", where, field, count_max);
      }
      integers.push_back(integer);
    }
    return integers;
  }

  Result<std::span<const std::byte>> read_bytes(std::string_view where, const element& value) {
    std::vector<int64_t> offsets = TRY(read_integers(where, "data_offsets", value, 2));
    if (offsets.size() != 2) {
      return corrupt("{}: data_offsets has {} numbers, not 2", where, offsets.size());
    }
    auto begin = as_size(offsets[0]);
    auto end = as_size(offsets[1]);
    if (begin > end) {
      return corrupt("{}: data_offsets begin at {}, after their end {}", where, begin, end);
    }
    if (end > data_.size()) {
      return corrupt(
          "{}: data_offsets [{}, {}] end after the file's {} data bytes; is the file truncated?",
          where, begin, end, data_.size());
    }
    return data_.subspan(begin, end - begin);
  }

  static Status check_size(std::string_view where, const TensorInfo& tensor) {
    std::optional<int64_t> size = checked_elements(tensor.shape);
    if (size) size = checked_multiply<int64_t>(*size, dtype_bytes(tensor.dtype));
    std::string shape = fmt::format("[{}]", fmt::join(tensor.shape, ", "));
    if (!size) {
      return corrupt("{}: the size of shape {} {} overflows", where, shape,
                     dtype_name(tensor.dtype));
    }
    if (as_size(*size) != tensor.bytes.size()) {
      return corrupt("{}: shape {} {} takes {} bytes, but data_offsets span {}", where, shape,
                     dtype_name(tensor.dtype), *size, tensor.bytes.size());
    }
    return {};
  }

  // In offset order, each tensor must begin at the end of the previous one, and the last must end
  // with the file. This rules out overlaps, holes and trailing bytes.
  Status check_coverage(std::span<const TensorInfo> tensors) const {
    auto begin = [&](const TensorInfo* t) { return as_size(t->bytes.data() - data_.data()); };
    auto end = [&](const TensorInfo* t) { return begin(t) + t->bytes.size(); };
    std::vector<const TensorInfo*> order;
    for (const TensorInfo& tensor : tensors) order.push_back(&tensor);
    std::ranges::sort(order, {}, [&](const TensorInfo* t) { return std::pair(begin(t), end(t)); });
    const TensorInfo* previous = nullptr;
    size_t covered = 0;
    for (const TensorInfo* tensor : order) {
      if (begin(tensor) < covered) {
        return corrupt("{}: the bytes of tensors {} and {} overlap at {}", path_,
                       quote(previous->name), quote(tensor->name), begin(tensor));
      }
      if (begin(tensor) > covered) {
        return corrupt("{}: a hole of {} bytes before tensor {} at {}", path_,
                       begin(tensor) - covered, quote(tensor->name), begin(tensor));
      }
      covered = end(tensor);
      previous = tensor;
    }
    if (covered != data_.size()) {
      return corrupt("{}: {} bytes after the last tensor", path_, data_.size() - covered);
    }
    return {};
  }

  std::string_view path_;
  std::span<const std::byte> data_;
};

// The header's text, after checking its length against the file.
Result<std::string_view> header_text(std::span<const std::byte> file, std::string_view path) {
  if (file.size() < kLengthBytes) {
    return corrupt("{}: {} bytes; a safetensors file begins with {} bytes of header length", path,
                   file.size(), kLengthBytes);
  }
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with("version https://git-lfs")) {
    return corrupt("{}: a Git LFS pointer, not the weights; fetch them with `git lfs pull`", path);
  }
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kHeaderBytesMax) {
    return corrupt("{}: header length {} is above the limit of {}; is it a safetensors file?", path,
                   length, kHeaderBytesMax);
  }
  if (length > file.size() - kLengthBytes) {
    return corrupt("{}: header length {} is beyond the file's {} bytes; is the file truncated?",
                   path, length, file.size());
  }
  text = text.substr(kLengthBytes, length);
  if (!text.starts_with('{')) {
    return corrupt("{}: the header ({} bytes) does not begin with {{", path, length);
  }
  return text;
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file,
                                            std::string_view path) {
  std::string_view text = TRY(header_text(file, path));
  simdjson::dom::parser parser;
  element root;
  simdjson::error_code code = parser.allocate(text.size(), kHeaderDepthMax);
  if (code == simdjson::SUCCESS) code = parser.parse(text.data(), text.size()).get(root);
  if (code != simdjson::SUCCESS) {
    return corrupt("{}: the header is not valid JSON: {}", path, simdjson::error_message(code));
  }
  return HeaderReader(path, file.subspan(kLengthBytes + text.size())).read(root);
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  MappedFile map = TRY(MappedFile::open(path));
  SafetensorsHeader header = TRY(parse_safetensors(map.bytes(), path));
  return SafetensorsFile(std::move(map), std::move(header));
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  auto found = std::ranges::lower_bound(header_.tensors, name, {}, &TensorInfo::name);
  return found != header_.tensors.end() && found->name == name ? &*found : nullptr;
}

Status SafetensorsFile::read(const TensorInfo& tensor, size_t offset,
                             std::span<std::byte> to) const {
  CHECK(offset <= tensor.bytes.size() && to.size() <= tensor.bytes.size() - offset,
        "tensor {}: {} bytes at {} of {}", tensor.name, to.size(), offset, tensor.bytes.size());
  auto begin = as_size(tensor.bytes.data() - map_.bytes().data());
  return map_.read(begin + offset, to);
}

}  // namespace banyan
