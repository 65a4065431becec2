#include "weights/files/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/quote.h"
#include "base/signed.h"
#include "weights/convert.h"
#include "weights/files/gguf_blocks.h"

namespace banyan {
namespace {

constexpr uint64_t kNameBytesMax = 1024;
constexpr uint32_t kDimensionsMax = 4;
constexpr int64_t kAlignmentDefault = 32, kAlignmentMax = 1 << 20;
constexpr int64_t kSplitsMax = 10'000;

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
    TensorType{10, DType::kU8, BlockFormat::kQ2_K},
    TensorType{11, DType::kU8, BlockFormat::kQ3_K},
    TensorType{12, DType::kU8, BlockFormat::kQ4_K},
    TensorType{13, DType::kU8, BlockFormat::kQ5_K},
    TensorType{14, DType::kU8, BlockFormat::kQ6_K},
    TensorType{20, DType::kU8, BlockFormat::kIq4Nl},
    TensorType{23, DType::kU8, BlockFormat::kIq4Xs},
    TensorType{30, DType::kBF16},
    TensorType{39, DType::kU8, BlockFormat::kMxfp4},
};

class GgufReader {
 public:
  GgufReader(std::span<const std::byte> file, std::string_view path) : file_(file), path_(path) {}

  Result<GgufHeader> read() {
    GgufPairs pairs = TRY(GgufPairs::parse(file_, path_));
    header_.architecture = TRY(pairs.text("general.architecture")).value_or("");
    TRY(read_alignment(pairs));
    cursor_.emplace(file_, path_, pairs.end());
    for (uint64_t i = 0; i < pairs.tensors(); ++i) TRY(read_tensor());
    TRY(place_tensors());
    header_.pairs = std::move(pairs);
    return std::move(header_);
  }

 private:
  Status read_alignment(const GgufPairs& pairs) {
    constexpr std::string_view kKey = "general.alignment";
    alignment_ = TRY(pairs.integer(kKey)).value_or(kAlignmentDefault);
    if (alignment_ > 0 && alignment_ <= kAlignmentMax &&
        std::has_single_bit(static_cast<uint64_t>(alignment_))) {
      return {};
    }
    return corrupt("{}: {} is {}, not a power of two up to {}", path_, kKey, alignment_,
                   kAlignmentMax);
  }

  Status read_tensor() {
    TensorInfo tensor{.name = std::string(TRY(cursor_->text("tensor name", kNameBytesMax))),
                      .dtype = DType::kF32};
    std::string where = fmt::format("{}: tensor {}", path_, quote(tensor.name));
    auto rank = TRY(cursor_->number<uint32_t>("rank"));
    if (rank < 1 || rank > kDimensionsMax) return corrupt("{}: {} dimensions", where, rank);
    for (uint32_t i = 0; i < rank; ++i) {
      auto extent = TRY(cursor_->number<uint64_t>("dimension"));
      if (extent < 1 || extent > kRowsMax) return corrupt("{}: a dimension of {}", where, extent);
      tensor.shape.insert(tensor.shape.begin(), extent);
    }
    auto id = TRY(cursor_->number<uint32_t>("tensor type"));
    auto type = std::ranges::find(kTensorTypes, id, &TensorType::id);
    if (type == kTensorTypes.end()) {
      return unsupported(
          "{}: tensor type {} is not supported; supported: F32, F16, BF16, Q4_0, "
          "Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4",
          where, id);
    }
    tensor.dtype = type->dtype;
    tensor.blocks = type->blocks;
    offsets_.push_back(TRY(cursor_->number<uint64_t>("offset")));
    sizes_.push_back(TRY(size_of(tensor, where)));
    header_.tensors.push_back(std::move(tensor));
    return {};
  }

  static Result<uint64_t> size_of(const TensorInfo& tensor, std::string_view where) {
    BlockShape block = {1, 0};
    if (tensor.blocks == BlockFormat::kNone) {
      block.bytes = dtype_bytes(tensor.dtype);
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
    uint64_t alignment = alignment_;
    uint64_t begin = (cursor_->at() + alignment - 1) / alignment * alignment;
    uint64_t size = begin <= file_.size() ? file_.size() - begin : 0;
    for (size_t i = 0; i < header_.tensors.size(); ++i) {
      TensorInfo& tensor = header_.tensors[i];
      if (offsets_[i] > size || sizes_[i] > size - offsets_[i]) {
        return corrupt("{}: tensor {} has {} bytes at {} of {}; is the file truncated?", path_,
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
  std::optional<GgufCursor> cursor_;
  int64_t alignment_ = kAlignmentDefault;
  GgufHeader header_;
  std::vector<uint64_t> offsets_, sizes_;
};

constexpr std::string_view kKeysOfLatents = ".k_b_proj.weight";
constexpr std::string_view kValuesOfLatents = ".v_b_proj.weight";
constexpr std::string_view kJoinedLatents = ".kv_b_proj.weight";

bool is_part_of_latents(std::string_view name) {
  return name.ends_with(kKeysOfLatents) || name.ends_with(kValuesOfLatents);
}

std::string with_end(std::string_view name, std::string_view end, std::string_view other) {
  return fmt::format("{}{}", name.substr(0, name.size() - end.size()), other);
}

// Some shapes differ: a depthwise convolution lacks its middle, a norm of groups is a matrix, and a
// gate of one row is a vector.
void restore_shape(TensorInfo& tensor) {
  std::vector<int64_t>& shape = tensor.shape;
  auto ends = [&](std::string_view end) { return tensor.name.ends_with(end); };
  if (ends("conv.weight") || ends("conv1d.weight")) {
    std::erase(shape, 1);
    if (shape.size() == 2) shape.insert(shape.begin() + 1, 1);
  }
  if (ends("norm.weight") && shape.size() == 2) shape = {shape[0] * shape[1]};
  if (ends("shared_expert_gate.weight") && shape.size() == 1) shape.insert(shape.begin(), 1);
}

// The part of "model-00001-of-00003.gguf" before the number; "" for other names.
std::string split_stem(std::string_view path, int64_t count) {
  std::string end = fmt::format("-00001-of-{:05}.gguf", count);
  return path.ends_with(end) ? std::string(path.substr(0, path.size() - end.size())) : "";
}

}  // namespace

Result<GgufHeader> parse_gguf(std::span<const std::byte> file, std::string_view path) {
  return GgufReader(file, path).read();
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  MappedFile map = TRY(MappedFile::open(path));
  GgufHeader header = TRY(parse_gguf(map.bytes(), path));
  GgufFile file(std::move(map), std::move(header.pairs));
  std::vector<std::vector<TensorInfo>> tensors;
  tensors.push_back(std::move(header.tensors));
  TRY(file.open_others(path, tensors));
  file.architecture_ = TRY(find_gguf_architecture(header.architecture, path));
  if (file.architecture_->names_prediction) TRY(file.count_layers());
  for (size_t map_index = 0; map_index < tensors.size(); ++map_index) {
    for (TensorInfo& tensor : tensors[map_index]) TRY(file.add(std::move(tensor), map_index));
  }
  std::ranges::sort(file.entries_, {}, &Entry::name);
  if (file.architecture_->latent) TRY(file.join_latents());
  auto twice = std::ranges::adjacent_find(file.entries_, {}, &Entry::name);
  if (twice == file.entries_.end()) return file;
  return corrupt("{}: the tensor {} appears twice", path, quote(twice->name()));
}

// The files after the first contain only tensors.
Status GgufFile::open_others(const std::string& path,
                             std::vector<std::vector<TensorInfo>>& tensors) {
  int64_t count = TRY(pairs_.integer("split.count")).value_or(1);
  int64_t number = TRY(pairs_.integer("split.no")).value_or(0);
  if (count <= 1) return {};
  if (count > kSplitsMax) return corrupt("{}: split.count is {}", path, count);
  if (number != 0) {
    return unsupported("{}: the file {} of {}; give the first one, ...-00001-of-{:05}.gguf", path,
                       number + 1, count, count);
  }
  std::string stem = split_stem(path, count);
  if (stem.empty()) {
    return unsupported(
        "{}: part of a model split into {} files; rename it so that it ends in "
        "-00001-of-{:05}.gguf",
        path, count, count);
  }
  size_t total = tensors[0].size();
  for (int64_t i = 1; i < count; ++i) {
    std::string other = fmt::format("{}-{:05}-of-{:05}.gguf", stem, i + 1, count);
    if (!file_exists(other)) return not_found("{}: no such file, one of {}", other, count);
    maps_.push_back(TRY(MappedFile::open(other)));
    GgufHeader header = TRY(parse_gguf(maps_.back().bytes(), other));
    int64_t stated = TRY(header.pairs.integer("split.no")).value_or(-1);
    if (stated != i) return corrupt("{}: split.no is {}, not {}", other, stated, i);
    total += header.tensors.size();
    tensors.push_back(std::move(header.tensors));
  }
  std::optional<int64_t> stated = TRY(pairs_.integer("split.tensors.count"));
  if (!stated || std::cmp_equal(*stated, total)) return {};
  return corrupt("{}: split.tensors.count is {}, but the files have {}", path, *stated, total);
}

Status GgufFile::add(TensorInfo tensor, size_t map) {
  if (tensor.name == "rope_freqs.weight") return read_rope_factors(tensor, map);
  if (tensor.name.starts_with("rope_factors_")) {
    has_long_rope_ = true;
    return {};
  }
  tensor.name = gguf_tensor_name(*architecture_, tensor.name);
  if (tensor.name.empty()) return {};
  if (architecture_->names_prediction) name_prediction(tensor.name);
  if (tensor.name.find(kGgufExpert) != std::string::npos) return add_experts(tensor, map);
  Entry entry{.tensor = std::move(tensor), .map = map};
  restore_shape(entry.tensor);
  entry.part = is_part_of_latents(entry.tensor.name);
  entry.swap = TRY(row_swap_of(*architecture_, pairs_, entry.tensor));
  entry.change = value_change_of(*architecture_, entry.tensor.name);
  if (entry.change != ValueChange::kNone && entry.tensor.dtype != DType::kF32) {
    return unsupported("{}: {} is {}, not F32", pairs_.path(), entry.tensor.name,
                       dtype_name(entry.tensor.dtype));
  }
  entries_.push_back(std::move(entry));
  return {};
}

Status GgufFile::count_layers() {
  auto number = [&](std::string_view leaf) -> Result<int64_t> {
    std::string key = fmt::format("{}.{}", architecture_->name, leaf);
    return TRY(pairs_.integer(key)).value_or(0);
  };
  int64_t all = TRY(number("block_count")), prediction = TRY(number("nextn_predict_layers"));
  if (prediction < 0 || prediction > all) {
    return corrupt("{}: {} layers, and {} of them for prediction", pairs_.path(), all, prediction);
  }
  layers_ = all - prediction;
  return {};
}

// Layers that follow the others are "mtp.layers.<i>", and what surrounds them is below "mtp".
void GgufFile::name_prediction(std::string& name) const {
  constexpr std::array kAround = {
      GgufName{"eh_proj", "fc"}, GgufName{"enorm", "pre_fc_norm_embedding"},
      GgufName{"hnorm", "pre_fc_norm_hidden"}, GgufName{"shared_head.norm", "norm"}};
  std::string_view rest = name;
  std::string layers = fmt::format("{}.layers.", architecture_->scope);
  if (!rest.starts_with(layers)) return;
  rest.remove_prefix(layers.size());
  int64_t layer = -1;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
  if (error != std::errc() || layer < layers_ || !rest.ends_with(".weight")) return;
  rest.remove_prefix(as_size(end - rest.data()));  // ".<module>.weight"
  for (const GgufName& around : kAround) {
    if (rest != fmt::format(".{}.weight", around.theirs)) continue;
    name = fmt::format("mtp.{}.weight", around.ours);
    return;
  }
  name = fmt::format("mtp.layers.{}{}", layer - layers_, rest);
}

// Adds each expert's part of a stacked tensor, or its gate and up apart.
Status GgufFile::add_experts(const TensorInfo& tensor, size_t map) {
  if (tensor.shape.size() < 2) {
    return corrupt("{}: {} has {} dimensions, not those of all experts", pairs_.path(),
                   quote(tensor.name), tensor.shape.size());
  }
  int64_t experts = tensor.shape[0];
  if (experts > (int64_t{1} << 16)) {
    return corrupt("{}: {} is of {} experts", pairs_.path(), quote(tensor.name), experts);
  }
  std::vector<std::string> names = {tensor.name};
  if (size_t both = tensor.name.find(kGgufGateUp); both != std::string::npos) {
    names.push_back(tensor.name);
    names[0].replace(both, 1, architecture_->experts.gate);
    names[1].replace(both, 1, architecture_->experts.up);
  }
  std::vector<int64_t> shape(tensor.shape.begin() + 1, tensor.shape.end());
  if (shape[0] % std::ssize(names) != 0) {
    return corrupt("{}: {} has {} rows, which are not gate's and up's", pairs_.path(),
                   quote(tensor.name), shape[0]);
  }
  shape[0] /= std::ssize(names);
  size_t bytes = tensor.bytes.size() / as_size(experts) / names.size();
  for (size_t part = 0; part < as_size(experts) * names.size(); ++part) {
    Entry entry{.tensor = tensor, .map = map};
    std::string name = names[part % names.size()];
    name.replace(name.find(kGgufExpert), 1, std::to_string(part / names.size()));
    entry.tensor.name = std::move(name);
    entry.tensor.shape = shape;
    entry.tensor.bytes = tensor.bytes.subspan(part * bytes, bytes);
    entries_.push_back(std::move(entry));
  }
  return {};
}

// Keys of latents are stored as [heads, rank, key columns], values as [heads, columns, rank]. The
// original matrix has, for each head, the rows of its keys and then those of its values.
Status GgufFile::join_latents() {
  std::vector<Entry> joined;
  for (const Entry& entry : entries_) {
    if (entry.name().ends_with(kKeysOfLatents)) joined.push_back(TRY(joined_latents(entry)));
  }
  std::ranges::move(joined, std::back_inserter(entries_));
  std::ranges::sort(entries_, {}, &Entry::name);
  return {};
}

Result<GgufFile::Entry> GgufFile::joined_latents(const Entry& keys) const {
  std::string other = with_end(keys.name(), kKeysOfLatents, kValuesOfLatents);
  const TensorInfo* values = find(other);
  if (values == nullptr) return not_found("{}: {} is missing", pairs_.path(), other);
  const std::vector<int64_t>& k = keys.tensor.shape;
  const std::vector<int64_t>& v = values->shape;
  bool fit = k.size() == 3 && v.size() == 3 && k[0] == v[0] && k[1] == v[2];
  std::optional<int64_t> rows;
  if (fit) rows = checked_multiply(k[0], k[2] + v[1]);
  std::optional<int64_t> count = rows ? checked_multiply(*rows, k[1]) : std::nullopt;
  if (!count || *count > (int64_t{1} << 40)) {
    return corrupt("{}: {} and {} do not fit", pairs_.path(), keys.name(), other);
  }
  Entry entry{.tensor = keys.tensor, .map = keys.map, .joined = true};
  bool plain = keys.tensor.blocks == BlockFormat::kNone && keys.tensor.dtype == values->dtype;
  entry.tensor.name = with_end(keys.name(), kKeysOfLatents, kJoinedLatents);
  entry.tensor.dtype = plain ? keys.tensor.dtype : DType::kF32;
  entry.tensor.blocks = BlockFormat::kNone;
  entry.tensor.shape = {*rows, k[1]};
  entry.tensor.bytes = {keys.tensor.bytes.data(),
                        as_size(*count) * dtype_bytes(entry.tensor.dtype)};
  return entry;
}

// Reads rows of the last dimension as f32.
Status GgufFile::read_floats(const Entry& entry, int64_t begin, int64_t end, float* to) const {
  TensorInfo flat = entry.tensor;
  int64_t columns = flat.shape.back();
  if (flat.blocks != BlockFormat::kNone) {
    return read_block_floats(*this, entry.tensor, begin, end, to);
  }
  size_t row_bytes = as_size(columns) * dtype_bytes(flat.dtype);
  std::vector<std::byte> raw(as_size(end - begin) * row_bytes);
  TRY(read_bytes(entry, as_size(begin) * row_bytes, raw));
  convert_elements(raw.data(), flat.dtype, to, DType::kF32, (end - begin) * columns);
  return {};
}

// Head by head: callers read whole rows, usually all of them.
Status GgufFile::read_joined(const Entry& entry, size_t offset, std::span<std::byte> to) const {
  std::string_view name = entry.name();
  const Entry& keys = entry_of(*find(with_end(name, kJoinedLatents, kKeysOfLatents)));
  const Entry& values = entry_of(*find(with_end(name, kJoinedLatents, kValuesOfLatents)));
  int64_t rank = keys.tensor.shape[1], nope = keys.tensor.shape[2], wide = values.tensor.shape[1];
  std::vector<float> transposed(as_size(rank * nope));
  std::vector<float> head(as_size((nope + wide) * rank));
  size_t element = dtype_bytes(entry.tensor.dtype);
  std::vector<std::byte> raw(head.size() * element);
  while (!to.empty()) {
    int64_t h = offset / raw.size();
    TRY(read_floats(keys, h * rank, (h + 1) * rank, transposed.data()));
    for (int64_t row = 0; row < nope; ++row) {
      for (int64_t c = 0; c < rank; ++c) head[row * rank + c] = transposed[c * nope + row];
    }
    TRY(read_floats(values, h * wide, (h + 1) * wide, head.data() + nope * rank));
    convert_elements(head.data(), DType::kF32, raw.data(), entry.tensor.dtype, std::ssize(head));
    size_t within = offset % raw.size(), bytes = std::min(to.size(), raw.size() - within);
    std::memcpy(to.data(), raw.data() + within, bytes);
    to = to.subspan(bytes);
    offset += bytes;
  }
  return {};
}

Status GgufFile::read_rope_factors(const TensorInfo& tensor, size_t map) {
  if (tensor.dtype != DType::kF32 || tensor.shape.size() != 1 || tensor.shape[0] > 4096) {
    return corrupt("{}: {} is not a list of f32", pairs_.path(), tensor.name);
  }
  rope_factors_.resize(as_size(tensor.shape[0]));
  return read_bytes({.tensor = tensor, .map = map}, 0,
                    std::as_writable_bytes(std::span(rope_factors_)));
}

const TensorInfo* GgufFile::find(std::string_view name) const {
  auto found = std::ranges::lower_bound(entries_, name, {}, &Entry::name);
  return found != entries_.end() && found->name() == name ? &found->tensor : nullptr;
}

std::vector<const TensorInfo*> GgufFile::tensors() const {
  std::vector<const TensorInfo*> tensors;
  for (const Entry& entry : entries_) {
    if (!entry.part) tensors.push_back(&entry.tensor);
  }
  return tensors;
}

const GgufFile::Entry& GgufFile::entry_of(const TensorInfo& tensor) const {
  auto entry = std::ranges::lower_bound(entries_, tensor.name, {}, &Entry::name);
  CHECK(entry != entries_.end() && &entry->tensor == &tensor, "{} is not ours", tensor.name);
  return *entry;
}

const MappedFile* GgufFile::file_of(const TensorInfo& tensor) const {
  return &maps_[entry_of(tensor).map];
}

Status GgufFile::read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const {
  CHECK(offset <= tensor.bytes.size() && to.size() <= tensor.bytes.size() - offset,
        "tensor {}: {} bytes at {} of {}", tensor.name, to.size(), offset, tensor.bytes.size());
  const Entry& entry = entry_of(tensor);
  if (entry.joined) return read_joined(entry, offset, to);
  if (entry.change != ValueChange::kNone) return read_changed(entry, offset, to);
  return read_stored(entry, offset, to);
}

Status GgufFile::read_stored(const Entry& entry, size_t offset, std::span<std::byte> to) const {
  return entry.swap.none() ? read_bytes(entry, offset, to) : read_swapped(entry, offset, to);
}

Status GgufFile::read_bytes(const Entry& entry, size_t offset, std::span<std::byte> to) const {
  const MappedFile& map = maps_[entry.map];
  auto begin = as_size(entry.tensor.bytes.data() - map.bytes().data());
  return map.read(begin + offset, to);
}

// Vectors are small, so the whole vector is read for any part of it.
Status GgufFile::read_changed(const Entry& entry, size_t offset, std::span<std::byte> to) const {
  std::vector<float> values(entry.tensor.bytes.size() / sizeof(float));
  std::span<std::byte> bytes = std::as_writable_bytes(std::span(values));
  TRY(read_stored(entry, 0, bytes));
  undo_change(entry.change, values);
  std::memcpy(to.data(), bytes.data() + offset, to.size());
  return {};
}

Status GgufFile::read_swapped(const Entry& entry, size_t offset, std::span<std::byte> to) const {
  size_t row_bytes = entry.tensor.bytes.size() / as_size(entry.tensor.shape[0]);
  while (!to.empty()) {
    int64_t row = offset / row_bytes;
    size_t stored = as_size(entry.swap.stored(row)), within = offset % row_bytes;
    size_t bytes = std::min(to.size(), row_bytes - within);
    TRY(read_bytes(entry, stored * row_bytes + within, to.first(bytes)));
    to = to.subspan(bytes);
    offset += bytes;
  }
  return {};
}

}  // namespace banyan
