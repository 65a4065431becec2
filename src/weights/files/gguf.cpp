#include "weights/files/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/quote.h"
#include "weights/files/gguf_blocks.h"

namespace banyan {
namespace {

constexpr uint64_t kNameBytesMax = 1024;
constexpr uint32_t kDimensionsMax = 4;
constexpr uint64_t kAlignmentDefault = 32, kAlignmentMax = 1 << 20;

struct TensorType {
  uint32_t id;
  DType dtype;
  BlockFormat blocks = BlockFormat::kNone;
};

constexpr std::array kTensorTypes = {
    TensorType{0, DType::kF32},
    TensorType{1, DType::kF16},
    TensorType{2, DType::kU8, BlockFormat::kQ4_0},
    TensorType{3, DType::kU8, BlockFormat::kQ4_1},
    TensorType{6, DType::kU8, BlockFormat::kQ5_0},
    TensorType{7, DType::kU8, BlockFormat::kQ5_1},
    TensorType{8, DType::kU8, BlockFormat::kQ8_0},
    TensorType{12, DType::kU8, BlockFormat::kQ4_K},
    TensorType{13, DType::kU8, BlockFormat::kQ5_K},
    TensorType{14, DType::kU8, BlockFormat::kQ6_K},
    TensorType{30, DType::kBF16},
    TensorType{39, DType::kU8, BlockFormat::kMxfp4},
};

// Types of values. Their sizes; 0: a string or an array.
enum ValueType : uint32_t { kString = 8, kArray = 9, kTypes = 13 };
constexpr std::array<uint64_t, kTypes> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

class GgufReader {
 public:
  GgufReader(std::span<const std::byte> file, std::string_view path) : file_(file), path_(path) {}

  Result<GgufHeader> read() {
    if (file_.size() < 4 || std::memcmp(file_.data(), "GGUF", 4) != 0) {
      return corrupt("{}: does not begin with GGUF", path_);
    }
    at_ = 4;
    auto version = TRY(number<uint32_t>("version"));
    if (version != 2 && version != 3) {
      return unsupported("{}: GGUF version {} is not supported; supported: 2, 3", path_, version);
    }
    auto tensors = TRY(number<uint64_t>("number of tensors"));
    auto pairs = TRY(number<uint64_t>("number of key-value pairs"));
    for (uint64_t i = 0; i < pairs; ++i) TRY(read_pair());
    for (uint64_t i = 0; i < tensors; ++i) TRY(read_tensor());
    TRY(place_tensors());
    return std::move(header_);
  }

 private:
  template <class T>
  Result<T> number(std::string_view what) {
    T value;
    if (file_.size() - at_ < sizeof(T)) return cut(what);
    std::memcpy(&value, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  Result<std::string> text(std::string_view what, uint64_t bytes_max) {
    auto bytes = TRY(number<uint64_t>(what));
    if (bytes > file_.size() - at_) return cut(what);
    if (bytes > bytes_max) {
      return corrupt("{}: a {} of {} bytes, more than {}", path_, what, bytes, bytes_max);
    }
    std::string value(reinterpret_cast<const char*>(file_.data() + at_), bytes);
    at_ += bytes;
    return value;
  }

  std::unexpected<Error> cut(std::string_view what) {
    return corrupt("{}: ends within a {} at byte {}; is it cut short?", path_, what, at_);
  }

  Status skip(uint64_t count, uint64_t bytes_each) {
    std::optional<uint64_t> bytes = checked_multiply(count, bytes_each);
    if (!bytes || *bytes > file_.size() - at_) return cut("value");
    at_ += *bytes;
    return {};
  }

  Status skip_text() {
    auto bytes = TRY(number<uint64_t>("string"));
    return skip(bytes, 1);
  }

  Result<uint32_t> value_type(std::string_view key) {
    auto type = TRY(number<uint32_t>("value type"));
    if (type < kTypes) return type;
    return corrupt("{}: the value of {} has the unknown type {}", path_, quote(key), type);
  }

  Status skip_array(std::string_view key) {
    uint32_t type = TRY(value_type(key));
    auto count = TRY(number<uint64_t>("array length"));
    if (type == kArray) return unsupported("{}: {} is an array of arrays", path_, quote(key));
    if (type != kString) return skip(count, kValueBytes[type]);
    for (uint64_t i = 0; i < count; ++i) TRY(skip_text());  // each takes 8 bytes or more
    return {};
  }

  // An integer from 0 on, of any integer type.
  Result<uint64_t> integer(std::string_view key, uint32_t type) {
    constexpr uint32_t kU8 = 0, kU16 = 2, kI32 = 5, kU32 = 4, kU64 = 10, kI64 = 11;
    if (type == kU8) return TRY(number<uint8_t>("value"));
    if (type == kU16) return TRY(number<uint16_t>("value"));
    if (type == kU32) return TRY(number<uint32_t>("value"));
    if (type == kU64) return TRY(number<uint64_t>("value"));
    int64_t value = -1;
    if (type == kI32) value = TRY(number<int32_t>("value"));
    if (type == kI64) value = TRY(number<int64_t>("value"));
    if (value >= 0) return static_cast<uint64_t>(value);
    return corrupt("{}: {} is not an integer from 0 on", path_, quote(key));
  }

  Status read_pair() {
    std::string key = TRY(text("key", kNameBytesMax));
    uint32_t type = TRY(value_type(key));
    if (key == "general.architecture") {
      if (type != kString) return corrupt("{}: {} is not a string", path_, key);
      header_.architecture = TRY(text("value", kNameBytesMax));
      return {};
    }
    if (key == "general.alignment") {
      alignment_ = TRY(integer(key, type));
      if (std::has_single_bit(alignment_) && alignment_ <= kAlignmentMax) return {};
      return corrupt("{}: {} is {}, not a power of two up to {}", path_, key, alignment_,
                     kAlignmentMax);
    }
    if (key == "split.count" && TRY(integer(key, type)) > 1) {
      return unsupported("{}: one of several files; join them with llama-gguf-split --merge",
                         path_);
    }
    if (key == "split.count") return {};
    bool kv = key.ends_with(".attention.head_count_kv");
    if (type != kArray && (kv || key.ends_with(".attention.head_count"))) {
      uint64_t count = TRY(integer(key, type));
      if (count == 0 || count > kRowsMax) return corrupt("{}: {} is {}", path_, key, count);
      (kv ? header_.kv_heads : header_.heads) = static_cast<int64_t>(count);
      return {};
    }
    if (type == kString) return skip_text();
    return type == kArray ? skip_array(key) : skip(1, kValueBytes[type]);
  }

  Status read_tensor() {
    TensorInfo tensor{.name = TRY(text("tensor name", kNameBytesMax)), .dtype = DType::kF32};
    std::string where = fmt::format("{}: tensor {}", path_, quote(tensor.name));
    auto rank = TRY(number<uint32_t>("rank"));
    if (rank < 1 || rank > kDimensionsMax) return corrupt("{}: {} dimensions", where, rank);
    for (uint32_t i = 0; i < rank; ++i) {
      auto extent = TRY(number<uint64_t>("dimension"));
      if (extent < 1 || extent > kRowsMax) return corrupt("{}: a dimension of {}", where, extent);
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(extent));
    }
    auto id = TRY(number<uint32_t>("tensor type"));
    auto type = std::ranges::find(kTensorTypes, id, &TensorType::id);
    if (type == kTensorTypes.end()) {
      return unsupported(
          "{}: tensor type {} is not supported; supported: F32, F16, BF16, Q4_0, "
          "Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, MXFP4",
          where, id);
    }
    tensor.dtype = type->dtype;
    tensor.blocks = type->blocks;
    offsets_.push_back(TRY(number<uint64_t>("offset")));
    sizes_.push_back(TRY(size_of(tensor, where)));
    header_.tensors.push_back(std::move(tensor));
    return {};
  }

  static Result<uint64_t> size_of(const TensorInfo& tensor, std::string_view where) {
    BlockShape block = {1, 0};
    if (tensor.blocks == BlockFormat::kNone) {
      block.bytes = static_cast<int64_t>(dtype_bytes(tensor.dtype));
    } else {
      block = block_shape(tensor.blocks);
    }
    if (tensor.shape.back() % block.numbers != 0) {
      return corrupt("{}: rows of {} in blocks of {}", where, tensor.shape.back(), block.numbers);
    }
    std::optional<int64_t> bytes = checked_elements(tensor.shape);
    if (bytes) bytes = checked_multiply(*bytes / block.numbers, block.bytes);
    if (!bytes) return corrupt("{}: its size overflows", where);
    return static_cast<uint64_t>(*bytes);
  }

  Status place_tensors() {
    uint64_t begin = (at_ + alignment_ - 1) / alignment_ * alignment_;
    uint64_t size = begin <= file_.size() ? file_.size() - begin : 0;
    for (size_t i = 0; i < header_.tensors.size(); ++i) {
      TensorInfo& tensor = header_.tensors[i];
      if (offsets_[i] > size || sizes_[i] > size - offsets_[i]) {
        return corrupt("{}: tensor {} has {} bytes at {} of {}; is the file cut short?", path_,
                       quote(tensor.name), sizes_[i], offsets_[i], size);
      }
      tensor.bytes = file_.subspan(begin + offsets_[i], sizes_[i]);
    }
    std::vector<const TensorInfo*> order;
    for (const TensorInfo& tensor : header_.tensors) order.push_back(&tensor);
    std::ranges::sort(order, {}, [](const TensorInfo* t) { return t->bytes.data(); });
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i - 1]->bytes.data() + order[i - 1]->bytes.size() <= order[i]->bytes.data())
        continue;
      return corrupt("{}: the bytes of tensors {} and {} overlap", path_, quote(order[i - 1]->name),
                     quote(order[i]->name));
    }
    return {};
  }

  static constexpr uint64_t kRowsMax = uint64_t{1} << 40;

  std::span<const std::byte> file_;
  std::string_view path_;
  size_t at_ = 0;
  uint64_t alignment_ = kAlignmentDefault;
  GgufHeader header_;
  std::vector<uint64_t> offsets_, sizes_;
};

constexpr std::array<std::string_view, 3> kArchitectures = {"llama", "qwen2", "qwen3"};

using NamePair = std::pair<std::string_view, std::string_view>;
constexpr std::array kTopNames = {
    NamePair{"token_embd", "model.embed_tokens"}, NamePair{"output_norm", "model.norm"},
    NamePair{"output", "lm_head"},
    NamePair{"rope_freqs", ""},  // what config.json's rope_scaling says
};
constexpr std::array kLayerNames = {
    NamePair{"attn_norm", "input_layernorm"},    NamePair{"ffn_norm", "post_attention_layernorm"},
    NamePair{"attn_q", "self_attn.q_proj"},      NamePair{"attn_k", "self_attn.k_proj"},
    NamePair{"attn_v", "self_attn.v_proj"},      NamePair{"attn_output", "self_attn.o_proj"},
    NamePair{"attn_q_norm", "self_attn.q_norm"}, NamePair{"attn_k_norm", "self_attn.k_norm"},
    NamePair{"ffn_gate", "mlp.gate_proj"},       NamePair{"ffn_up", "mlp.up_proj"},
    NamePair{"ffn_down", "mlp.down_proj"},
};

}  // namespace

Result<GgufHeader> parse_gguf(std::span<const std::byte> file, std::string_view path) {
  return GgufReader(file, path).read();
}

std::string gguf_tensor_name(std::string_view name) {
  size_t dot = name.rfind('.');
  if (dot == name.npos) return std::string(name);
  std::string_view module = name.substr(0, dot), leaf = name.substr(dot);
  for (auto [theirs, ours] : kTopNames) {
    if (module == theirs) return ours.empty() ? "" : fmt::format("{}{}", ours, leaf);
  }
  constexpr std::string_view kLayer = "blk.";
  if (!module.starts_with(kLayer)) return std::string(name);
  std::string_view rest = module.substr(kLayer.size());
  size_t end = std::min(rest.find('.'), rest.size());
  for (auto [theirs, ours] : kLayerNames) {
    if (rest.substr(std::min(end + 1, rest.size())) != theirs) continue;
    return fmt::format("model.layers.{}.{}{}", rest.substr(0, end), ours, leaf);
  }
  return std::string(name);
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  MappedFile map = TRY(MappedFile::open(path));
  GgufHeader header = TRY(parse_gguf(map.bytes(), path));
  if (std::ranges::find(kArchitectures, header.architecture) == kArchitectures.end()) {
    return unsupported("{}: general.architecture {} is not supported; supported: {}", path,
                       quote(header.architecture), fmt::join(kArchitectures, ", "));
  }
  GgufFile file(std::move(map));
  for (TensorInfo& tensor : header.tensors) {
    Entry entry{.tensor = std::move(tensor)};
    std::string& name = entry.tensor.name;
    name = gguf_tensor_name(name);
    if (name.empty()) continue;
    bool q = name.find(".q_proj.") != name.npos, k = name.find(".k_proj.") != name.npos;
    if (header.architecture == "llama" && (q || k)) {
      entry.turned_heads = q || header.kv_heads == 0 ? header.heads : header.kv_heads;
      int64_t rows = entry.tensor.shape[0];
      if (entry.turned_heads == 0 || rows % (2 * entry.turned_heads) != 0) {
        return corrupt("{}: {} has {} rows in {} heads", path, quote(name), rows,
                       entry.turned_heads);
      }
    }
    file.entries_.push_back(std::move(entry));
  }
  std::ranges::sort(file.entries_, {}, &Entry::name);
  auto twice = std::ranges::adjacent_find(file.entries_, {}, &Entry::name);
  if (twice == file.entries_.end()) return file;
  return corrupt("{}: the tensor {} appears twice", path, quote(twice->name()));
}

const TensorInfo* GgufFile::find(std::string_view name) const {
  auto found = std::ranges::lower_bound(entries_, name, {}, &Entry::name);
  return found != entries_.end() && found->name() == name ? &found->tensor : nullptr;
}

std::vector<const TensorInfo*> GgufFile::tensors() const {
  std::vector<const TensorInfo*> tensors;
  for (const Entry& entry : entries_) tensors.push_back(&entry.tensor);
  return tensors;
}

Status GgufFile::read_bytes(const TensorInfo& tensor, size_t offset,
                            std::span<std::byte> to) const {
  auto begin = static_cast<size_t>(tensor.bytes.data() - map_.bytes().data());
  return map_.read(begin + offset, to);
}

// In the file, row 2i + j of a head is row j * half + i of the head as it was.
Status GgufFile::read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const {
  CHECK(offset <= tensor.bytes.size() && to.size() <= tensor.bytes.size() - offset,
        "tensor {}: {} bytes at {} of {}", tensor.name, to.size(), offset, tensor.bytes.size());
  auto entry = std::ranges::lower_bound(entries_, tensor.name, {}, &Entry::name);
  CHECK(entry != entries_.end() && &entry->tensor == &tensor, "{} is not ours", tensor.name);
  if (entry->turned_heads == 0) return read_bytes(tensor, offset, to);
  auto rows = static_cast<size_t>(tensor.shape[0]);
  size_t row_bytes = tensor.bytes.size() / rows;
  size_t head_rows = rows / static_cast<size_t>(entry->turned_heads), half = head_rows / 2;
  while (!to.empty()) {
    size_t row = offset / row_bytes, within = offset % row_bytes;
    size_t i = row % head_rows % half, j = row % head_rows / half;
    size_t stored = row / head_rows * head_rows + 2 * i + j;
    size_t bytes = std::min(to.size(), row_bytes - within);
    TRY(read_bytes(tensor, stored * row_bytes + within, to.first(bytes)));
    to = to.subspan(bytes);
    offset += bytes;
  }
  return {};
}

}  // namespace banyan
