#include "weights/builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <ranges>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"
#include "weights/convert.h"
#include "weights/random_weights.h"
#include "weights/shape_text.h"

namespace banyan {
namespace {

constexpr size_t kProblemsShown = 8;
constexpr int64_t kStagingBytes = 32 << 20;  // long copies, soon allocated

int64_t element_count(std::initializer_list<int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t row_count(std::span<const RowRange> ranges) {
  int64_t count = 0;
  for (RowRange range : ranges) count += range.count;
  return count;
}

// The dimensions other than 1.
auto beyond_one(const auto& shape) {
  return shape | std::views::filter([](int64_t extent) { return extent != 1; });
}

// Tensors of quantised checkpoints that belong to no matrix: scales of an fp8 cache, which ours is
// not.
bool is_cache_scale(std::string_view name) {
  constexpr std::array<std::string_view, 6> kLeaves = {
      ".k_scale", ".v_scale", ".q_scale", ".prob_scale", ".output_scale", ".output_zero_point"};
  return std::ranges::any_of(kLeaves, [&](std::string_view leaf) { return name.ends_with(leaf); });
}

// Tensors that a quantised matrix has instead of `weight`.
constexpr std::array<std::string_view, 2> kCodeLeaves = {"weight_packed", "qweight"};
constexpr std::string_view kWeightLeaf = ".weight";

// All tensors that a matrix may consist of. If one is wrong, problems with the others are not
// reported.
constexpr std::array<std::string_view, 14> kMatrixLeaves = {
    "weight",       "weight_packed", "weight_scale",   "weight_scale_inv",    "weight_zero_point",
    "weight_g_idx", "weight_shape",  "weight_scale_2", "weight_global_scale", "qweight",
    "qzeros",       "scales",        "g_idx",          "input_scale"};

// Codes of 4 or 8 bits, even if no kernel takes them directly. fp8 counts as floating point.
bool stores_integers(const StoredMatrix& stored) {
  return !stored.is_plain() && stored.format() != "fp8";
}

}  // namespace

std::byte* WeightStore::allocate(size_t bytes) {
  constexpr size_t kLine = 64, kBlockMin = 64 << 10, kBlockMax = 256 << 20;
  bytes = (bytes + kLine - 1) / kLine * kLine;
  if (blocks_.empty() || blocks_.back().size() - used_ < bytes) {
    // Grow by the amount already reserved, so that small models stay small.
    size_t block = std::max(bytes, std::clamp(reserved_, kBlockMin, kBlockMax));
    blocks_.emplace_back(*queue_, block);
    reserved_ += block;
    used_ = 0;
  }
  std::byte* place = blocks_.back().data() + used_;
  used_ += bytes;
  return place;
}

WeightLoader::WeightLoader(LoadOptions options)
    : options_(std::move(options)),
      store_(*options_.queue),
      staging_(*options_.queue, kStagingBytes) {
  CHECK(options_.dry || options_.kernels->device == &options_.queue->ops(), "{} kernels on {}",
        options_.kernels->name, options_.queue->ops().name);
  if (options_.source == nullptr) return;
  options_.source = &stacked_.emplace(*options_.source);
  for (const TensorInfo* tensor : options_.source->tensors()) {
    bytes_total_ += std::ssize(tensor->bytes);
    ++counts_.tensors;
  }
}

Status WeightLoader::finish() {
  if (options_.source != nullptr) {
    for (const TensorInfo* tensor : options_.source->tensors()) {
      if (used_.contains(tensor->name) || is_zero_bias(*tensor)) continue;
      if (options_.quant.method != QuantMethod::kNone && is_cache_scale(tensor->name)) continue;
      problems_.push_back(fmt::format("{} {} is not used by this architecture", tensor->name,
                                      shape_text(tensor->shape)));
    }
  }
  auto first = [](const std::vector<std::string>& texts) {
    size_t shown = std::min(texts.size(), kProblemsShown);
    std::string list = fmt::format("{}", fmt::join(texts.begin(), texts.begin() + shown, "; "));
    if (texts.size() > shown) list += fmt::format("; and {} more", texts.size() - shown);
    return list;
  };
  if (!undivided_.empty()) {
    return unsupported("{} ranks cannot divide this model: {}", options_.rank.count,
                       first(undivided_));
  }
  if (problems_.empty()) return {};
  return corrupt("the checkpoint does not match its config.json: {}", first(problems_));
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
  auto part = [](int64_t whole, double fraction) { return std::llround(whole * fraction); };
  counts_.parameters_active += part(parameters, share.mean);
  counts_.parameters_active_min += part(parameters, share.min);
  counts_.parameters_active_max += part(parameters, share.max);
  counts_.weight_bytes_streamed += part(bytes, share.mean);
}

std::optional<StoredMatrix> WeightLoader::claim_matrix(const std::string& name, int64_t rows,
                                                       int64_t columns) {
  auto stored = StoredMatrix::find(*options_.source, options_.quant, name, rows, columns);
  if (!stored) {
    problems_.push_back(stored.error().message);
    for (std::string_view leaf : kMatrixLeaves) used_.insert(fmt::format("{}.{}", name, leaf));
    return std::nullopt;
  }
  for (const TensorInfo* tensor : stored->tensors()) {
    if (used_.insert(tensor->name).second) continue;
    problems_.push_back(fmt::format("{} is used twice", tensor->name));
    return std::nullopt;
  }
  return *std::move(stored);
}

// AutoGPTQ and similar tools add a bias to every matrix, filled with zeros if the model has none.
bool WeightLoader::is_zero_bias(const TensorInfo& tensor) const {
  constexpr std::string_view kLeaf = ".bias";
  if (!tensor.name.ends_with(kLeaf) || !is_float_dtype(tensor.dtype)) return false;
  std::string matrix = tensor.name.substr(0, tensor.name.size() - kLeaf.size());
  if (!used_.contains(matrix + ".qweight")) return false;
  std::vector<std::byte> raw(tensor.bytes.size());
  return options_.source->read(tensor, 0, raw) &&
         std::ranges::all_of(raw, [](std::byte b) { return b == std::byte{0}; });
}

void WeightLoader::allocate(PackedMatrix& matrix) {
  if (!options_.dry) matrix.data = store_.allocate(matrix.total_bytes());
}

void WeightLoader::pack(RankPart& part, const PackedMatrix& matrix, int64_t index, MatrixUse use,
                        const TokenShare& share) {
  PackedMatrix one = matrix;
  one.count = 1;
  if (!options_.dry) {
    one.data = static_cast<std::byte*>(matrix.data) + as_size(index) * matrix.bytes;
  }
  record(part, one, use == MatrixUse::kLookUp ? 0 : share.mean);
  counts_.parameters_total += matrix.rows * matrix.columns;
  counts_.weight_bytes += matrix.bytes;
  if (use != MatrixUse::kLookUp) {
    count_active(matrix.rows * matrix.columns, matrix.bytes, share);
  }
  write(part, one);
}

void WeightLoader::write(RankPart& part, const PackedMatrix& matrix) {
  if (options_.dry || !load_stored(part)) return;
  const GemmKernel& kernel = options_.kernels->*matrix.format->kernel;
  PackedMatrix piece = matrix;
  int64_t rows = rows_of_piece(matrix);
  for (int64_t row = 0; row < matrix.rows; row += rows) {
    piece.rows = std::min(rows, matrix.rows - row);
    piece.bytes = kernel.packed_bytes(piece.rows, matrix.columns, matrix.group);
    if (!write_rows(part, row, piece)) return;
    piece.data = static_cast<std::byte*>(piece.data) + piece.bytes;
  }
  for (const MatrixSource& source : part.sources) {
    int64_t bytes = source.rows * matrix.columns * sizeof(float);
    if (source.stored) {
      bytes = 0;
      for (const TensorInfo* t : source.stored->tensors()) bytes += std::ssize(t->bytes);
      bytes = bytes / source.whole_rows * source.rows;
    }
    report_progress(bytes);
  }
}

bool WeightLoader::load_stored(RankPart& part) {
  size_t problems = problems_.size();
  for (MatrixSource& source : part.sources) {
    if (!source.stored) continue;
    if (Status loaded = source.stored->load(); !loaded) {
      problems_.push_back(loaded.error().message);
    }
  }
  return problems_.size() == problems;
}

bool WeightLoader::write_rows(const RankPart& part, int64_t row_begin, PackedMatrix piece) {
  size_t problems = problems_.size();
  piece.data = staging_.begin(piece.data, as_size(piece.bytes));
  int64_t row = -row_begin;
  for (const MatrixSource& source : part.sources) {
    Status packed = pack_rows(source, piece, row, part.columns,
                              options_.kernels->*piece.format->kernel, *options_.threads);
    if (!packed) problems_.push_back(packed.error().message);
    row += source.rows;
  }
  staging_.upload();
  return problems_.size() == problems;
}

int64_t WeightLoader::rows_of_piece(const PackedMatrix& matrix) const {
  const GemmKernel& kernel = options_.kernels->*matrix.format->kernel;
  if (options_.queue->ops().host_memory || kernel.block_rows == nullptr) return matrix.rows;
  int64_t block = kernel.block_rows(matrix.columns, matrix.group);
  if (block == 0) return matrix.rows;
  auto bytes = static_cast<int64_t>(kernel.packed_bytes(block, matrix.columns, matrix.group));
  return std::max<int64_t>(kStagingBytes / bytes, 1) * block;
}

void WeightLoader::record(const RankPart& part, const PackedMatrix& matrix, double share) {
  MatrixRecord record{.matrix = matrix, .column_begin = part.columns.begin, .share = share};
  for (const MatrixSource& source : part.sources) {
    record.parts.push_back({.name = source.name,
                            .rows = source.rows,
                            .first_row = source.first_row,
                            .stored = source.stored ? source.stored->describe() : "random numbers",
                            .keeps_codes = keeps_codes(source, record.form()),
                            .weight_only = source.choice.weight_only,
                            .integers = source.stored && stores_integers(*source.stored)});
  }
  matrices_.push_back(std::move(record));
}

std::vector<RowRange> WeightLoader::rows_of(std::string_view name, int64_t rows,
                                            const Shard& shard) {
  auto ranges = rows_of_rank(name, rows, shard, options_.rank);
  if (ranges) return *std::move(ranges);
  (options_.rank.alone() ? problems_ : undivided_).push_back(ranges.error().message);
  return {};
}

float* WeightLoader::allocate_values(int64_t count, const TokenShare& share) {
  int64_t bytes = count * sizeof(float);
  counts_.weight_bytes += bytes;
  count_active(0, bytes, share);
  if (options_.dry) return nullptr;
  return reinterpret_cast<float*>(store_.allocate(as_size(bytes)));
}

void WeightLoader::count_parameters(int64_t count, const TokenShare& share) {
  counts_.parameters_total += count;
  count_active(count, 0, share);
}

bool WeightLoader::claim_values(const std::string& name, std::initializer_list<int64_t> shape,
                                const TokenShare& share, const TensorInfo*& tensor) {
  tensor = options_.source != nullptr ? claim(name, shape, true) : nullptr;
  if (tensor == nullptr && options_.source != nullptr) return false;
  count_parameters(element_count(shape), share);
  return true;
}

void WeightLoader::fill(const TensorInfo* tensor, const std::string& name, int64_t count,
                        float random_center, float* to) {
  if (tensor == nullptr) return random_elements(name, 0, count, random_center, to);
  std::vector<std::byte> raw(tensor->bytes.size());
  if (Status read = options_.source->read(*tensor, 0, raw); !read) {
    problems_.push_back(read.error().message);
  }
  convert_elements(raw.data(), tensor->dtype, to, DType::kF32, count);
  report_progress(std::ssize(raw));
}

void WeightLoader::fill_rows(const TensorInfo* tensor, const std::string& name, int64_t rows,
                             std::span<const RowRange> ranges, float random_center, float* to) {
  if (ranges.size() == 1 && ranges[0].count == rows) {
    return fill(tensor, name, rows, random_center, to);
  }
  std::vector<float> whole(as_size(rows));
  fill(tensor, name, rows, random_center, whole.data());
  for (RowRange range : ranges) {
    auto from = whole.begin() + range.first;
    to = std::copy(from, from + range.count, to);
  }
}

Builder Builder::operator/(std::string_view name) const {
  return Builder(loader_, full_name(name), share_, adaptable_);
}

Builder Builder::operator/(int64_t index) const {
  return *this / std::to_string(index);
}

Builder Builder::with_share(const TokenShare& share) const {
  return Builder(loader_, scope_, share, adaptable_);
}

std::string Builder::full_name(std::string_view name) const {
  return scope_.empty() ? std::string(name) : fmt::format("{}.{}", scope_, name);
}

MatrixSource Builder::source_of(const MatrixPart& part, MatrixUse use) const {
  loader_->adapter_sites_.others.push_back(full_name(part.name));
  MatrixSource source{.name = full_name(part.name),
                      .rows = part.rows,
                      .whole_rows = part.rows,
                      .shard = part.shard};
  const QuantizationPlan* plan = loader_->options_.plan;
  if (plan != nullptr) source.choice = plan->choose(source.name, use);
  return source;
}

std::vector<MatrixSource> Builder::sources_of(std::initializer_list<MatrixPart> parts,
                                              int64_t columns, MatrixUse use) const {
  const LoadOptions& options = loader_->options_;
  std::vector<MatrixSource> sources;
  bool complete = true;
  for (const MatrixPart& part : parts) {
    MatrixSource source = source_of(part, use);
    if (options.source) source.stored = loader_->claim_matrix(source.name, part.rows, columns);
    complete = complete && (source.stored || options.source == nullptr);
    sources.push_back(std::move(source));
  }
  if (!complete) sources.clear();
  return sources;
}

std::optional<RankPart> Builder::part_of(std::span<const MatrixSource> sources,
                                         int64_t columns) const {
  if (sources.empty()) return std::nullopt;
  const LoadOptions& options = loader_->options_;
  auto form = choose_form(sources, columns, options.format, options.dtype);
  if (!form) {
    loader_->problems_.push_back(form.error().message);
    return std::nullopt;
  }
  auto part = part_of_rank(sources, columns, *form, options.rank);
  // A cut inside a group of a GGUF format with a single scale, or a format without a kernel:
  // unpack.
  bool held = part && (options.kernels->*form->format->kernel).exists();
  if (!held && form->format->blocks != nullptr) {
    part = part_of_rank(sources, columns, {format_of(options.dtype), columns}, options.rank);
  }
  if (part) return *std::move(part);
  (options.rank.alone() ? loader_->problems_ : loader_->undivided_).push_back(part.error().message);
  return std::nullopt;
}

PackedMatrix Builder::shape_of(const RankPart& part) const {
  PackedMatrix matrix{.format = part.form.format,
                      .rows = part.rows,
                      .columns = part.columns.count,
                      .group = part.form.group};
  const GemmKernel& kernel = loader_->options_.kernels->*matrix.format->kernel;
  matrix.bytes = kernel.packed_bytes(matrix.rows, matrix.columns, matrix.group);
  return matrix;
}

PackedMatrix Builder::matrix(const MatrixPart& part_named, int64_t columns, MatrixUse use) const {
  std::optional<RankPart> part = part_of(sources_of({part_named}, columns, use), columns);
  if (!part) return {};
  PackedMatrix matrix = shape_of(*part);
  loader_->allocate(matrix);
  loader_->pack(*part, matrix, 0, use, share_);
  return matrix;
}

PackedMatrix Builder::first_rows(const MatrixPart& whole, int64_t rows, int64_t columns) const {
  CHECK(rank().alone() && rows <= whole.rows, "{} of {} rows", rows, whole.rows);
  const LoadOptions& options = loader_->options_;
  MatrixSource source = source_of(whole, MatrixUse::kMultiply);
  if (options.source) {
    auto stored =
        StoredMatrix::find(*options.source, options.quant, source.name, whole.rows, columns);
    if (!stored) return {};  // loading it whole has recorded the problem
    source.stored = *std::move(stored);
  }
  std::optional<RankPart> part = part_of(std::span(&source, 1), columns);
  if (!part) return {};
  part->sources.front().rows = part->rows = rows;
  PackedMatrix matrix = shape_of(*part);
  loader_->allocate(matrix);
  loader_->counts_.weight_bytes += matrix.bytes;
  loader_->write(*part, matrix);
  return matrix;
}

std::vector<PackedMatrix> Builder::stacked(std::initializer_list<MatrixPart> parts,
                                           int64_t columns) const {
  constexpr MatrixUse kUse = MatrixUse::kMultiply;
  std::vector<MatrixSource> sources = sources_of(parts, columns, kUse);
  std::vector<PackedMatrix> all;
  for (auto run : split_by_form(sources, columns, loader_->options_.format)) {
    std::optional<RankPart> part = part_of(run, columns);
    if (!part) continue;
    all.push_back(shape_of(*part));
    loader_->allocate(all.back());
    loader_->pack(*part, all.back(), 0, kUse, share_);
  }
  return all;
}

PackedMatrix Builder::matrices(int64_t count, std::initializer_list<MatrixPart> parts,
                               int64_t columns) const {
  constexpr MatrixUse kUse = MatrixUse::kMultiply;
  loader_->rows_of(scope_, count, Shard::rows(count));  // rejects too many ranks
  UnitRange own = part(count);
  PackedMatrix all;
  bool alike = true;
  for (int64_t i = 0; i < count; ++i) {
    Builder scope = *this / i;
    std::optional<RankPart> one = scope.part_of(scope.sources_of(parts, columns, kUse), columns);
    if (!one) continue;
    PackedMatrix matrix = shape_of(*one);
    if (all.empty()) {
      all = matrix;
      all.count = own.count;
      loader_->allocate(all);
    }
    alike = alike && matrix.format == all.format && matrix.group == all.group;
    if (alike && own.has(i)) loader_->pack(*one, all, i - own.begin, kUse, share_);
  }
  if (!alike) reject("are stored in different formats, which is not supported");
  return all;
}

Tensor Builder::vector(std::initializer_list<MatrixPart> parts, std::string_view leaf,
                       float random_center, float offset) const {
  const WeightSource* source = loader_->options_.source;
  int64_t size = 0;
  bool complete = true;
  struct Claimed {
    std::string name;
    const TensorInfo* tensor = nullptr;
    int64_t rows = 0;
    bool stored = true;
    std::vector<RowRange> ranges = {};
  };
  std::vector<Claimed> claimed;
  for (const MatrixPart& part : parts) {
    Builder scope = part.name.empty() ? *this : *this / part.name;
    Claimed one{.name = scope.full_name(leaf), .rows = part.rows, .stored = part.has_vector};
    if (source != nullptr && one.stored) one.tensor = loader_->claim(one.name, {part.rows});
    complete = complete && (one.tensor != nullptr || source == nullptr || !one.stored);
    one.ranges = loader_->rows_of(one.name, part.rows, part.shard);
    size += row_count(one.ranges);
    claimed.push_back(std::move(one));
  }
  if (!complete) return {};

  loader_->count_parameters(size, share_);
  float* data = loader_->allocate_values(size, share_);
  if (data == nullptr) return Tensor(nullptr, DType::kF32, {size});
  Staging stage(*loader_->options_.queue, data, as_size(size) * sizeof(float));
  auto* to = stage.as<float>();
  for (const Claimed& one : claimed) {
    if (one.stored) {
      loader_->fill_rows(one.tensor, one.name, one.rows, one.ranges, random_center, to);
    }
    to += row_count(one.ranges);
  }
  for (auto* value = stage.as<float>(); value < to; ++value) *value += offset;
  stage.upload();
  return Tensor(data, DType::kF32, {size});
}

Tensor Builder::vectors(int64_t count, std::initializer_list<MatrixPart> parts,
                        std::string_view leaf, float random_center) const {
  UnitRange own = part(count);
  int64_t size = 0;
  for (const MatrixPart& part : parts) size += part.rows;
  loader_->count_parameters(own.count * size, share_);
  float* data = loader_->allocate_values(own.count * size, share_);
  std::vector<float> all;
  for (int64_t i = 0; i < count; ++i) {
    for (const MatrixPart& part : parts) {
      std::string name = (*this / i / part.name).full_name(leaf);
      const TensorInfo* tensor = nullptr;
      if (loader_->options_.source != nullptr) {
        tensor = loader_->claim(name, {part.rows});
        if (tensor == nullptr) return {};
      }
      if (data == nullptr || !own.has(i)) continue;
      all.resize(all.size() + as_size(part.rows));
      loader_->fill(tensor, name, part.rows, random_center, all.data() + all.size() - part.rows);
    }
  }
  if (data != nullptr) {
    loader_->options_.queue->upload(data, all.data(), all.size() * sizeof(float));
  }
  return Tensor(data, DType::kF32, {own.count, size});
}

void Builder::split(std::string_view name, const StackShape& shape,
                    std::initializer_list<StackPart> parts) const {
  if (loader_->options_.source == nullptr) return;
  const TensorInfo* tensor = loader_->options_.source->find(full_name(name));
  if (tensor == nullptr) return;
  loader_->used_.insert(tensor->name);
  for (const StackPart& part : parts) {
    if (Status status = loader_->stacked_->split(*tensor, scope_, shape, part); !status) {
      loader_->problems_.push_back(status.error().message);
      return;
    }
  }
}

Tensor Builder::values(std::string_view name, std::initializer_list<int64_t> shape,
                       float random_center, const Shard& shard) const {
  CHECK(shape.size() == 1 || shard.cut == Shard::Cut::kNone, "{} is cut", name);
  std::string full = full_name(name);
  const TensorInfo* tensor = nullptr;
  if (!loader_->claim_values(full, shape, share_, tensor)) return {};
  int64_t rows = *shape.begin();
  std::vector<RowRange> ranges = {{0, rows}};
  if (shape.size() == 1) ranges = loader_->rows_of(full, rows, shard);
  int64_t count = element_count(shape) / rows * row_count(ranges);
  float* data = loader_->allocate_values(count, share_);
  if (data != nullptr) {
    Staging stage(*loader_->options_.queue, data, as_size(count) * sizeof(float));
    if (shape.size() == 1) {
      loader_->fill_rows(tensor, full, rows, ranges, random_center, stage.as<float>());
    } else {
      loader_->fill(tensor, full, count, random_center, stage.as<float>());
    }
    stage.upload();
  }
  return shape.size() == 1 ? Tensor(data, DType::kF32, {count}) : Tensor(data, DType::kF32, shape);
}

std::vector<float> Builder::host_values(std::string_view name, std::initializer_list<int64_t> shape,
                                        float random_center, const Shard& shard) const {
  std::string full = full_name(name);
  const TensorInfo* tensor = nullptr;
  if (!loader_->claim_values(full, shape, share_, tensor) || loader_->options_.dry) return {};
  int64_t rows = *shape.begin(), width = element_count(shape) / rows;
  std::vector<float> whole(as_size(rows * width)), taken;
  loader_->fill(tensor, full, std::ssize(whole), random_center, whole.data());
  for (RowRange range : loader_->rows_of(full, rows, shard)) {
    auto from = whole.begin() + range.first * width;
    taken.insert(taken.end(), from, from + range.count * width);
  }
  return taken;
}

Tensor Builder::constant(std::initializer_list<int64_t> shape,
                         std::span<const float> values) const {
  int64_t count = element_count(shape);
  float* data = loader_->allocate_values(count, share_);
  if (data == nullptr || values.empty()) return Tensor(nullptr, DType::kF32, shape);
  CHECK(std::ssize(values) == count, "{} values of {}", values.size(), count);
  loader_->options_.queue->upload(data, values.data(), values.size_bytes());
  return Tensor(data, DType::kF32, shape);
}

StateId Builder::state(StateSpec spec) const {
  spec.name = full_name(spec.name);
  loader_->states_.push_back(std::move(spec));
  return static_cast<StateId>(loader_->states_.size()) - 1;
}

int64_t Builder::expert_layer(int64_t experts, int64_t identity_experts, int64_t top_k) const {
  std::vector<ExpertLayer>& layers = loader_->expert_layers_;
  int64_t begin = 0;
  if (!layers.empty()) {
    const ExpertLayer& last = layers.back();
    begin = last.counts_begin + last.experts + last.identity_experts;
  }
  layers.push_back({scope_, experts, identity_experts, top_k, begin});
  return begin;
}

Rank Builder::rank() const {
  return loader_->options_.rank;
}

// At least one unit: if there are too few, declaring the split tensors fails the load.
UnitRange Builder::part(int64_t units) const {
  UnitRange own = units_of(units, rank());
  return {own.begin, std::max<int64_t>(own.count, 1)};
}

DType Builder::dtype() const {
  return loader_->options_.dtype;
}

DType Builder::page_dtype() const {
  return loader_->options_.page_dtype.value_or(dtype());
}

DType Builder::index_dtype() const {
  if (loader_->options_.index_dtype) return *loader_->options_.index_dtype;
  return is_quantised_state(page_dtype()) ? dtype() : page_dtype();
}

bool Builder::expanded_prefill() const {
  return loader_->options_.expanded_prefill;
}

bool Builder::prediction() const {
  return loader_->options_.prediction;
}

bool Builder::headless() const {
  return loader_->options_.headless;
}

int64_t Builder::draft_vocabulary() const {
  return loader_->options_.draft_vocabulary;
}

int64_t Builder::moba_block_tokens() const {
  return loader_->options_.moba_block_tokens;
}

int64_t Builder::moba_top_k() const {
  return loader_->options_.moba_top_k;
}

std::optional<bool> Builder::moba_decode() const {
  return loader_->options_.moba_decode;
}

bool Builder::has(std::string_view name) const {
  const WeightSource* source = loader_->options_.source;
  if (source == nullptr) return false;
  std::string full = full_name(name);
  if (source->find(full) != nullptr) return true;
  if (!full.ends_with(kWeightLeaf)) return false;
  full.resize(full.size() - kWeightLeaf.size());
  return std::ranges::any_of(kCodeLeaves, [&](std::string_view leaf) {
    return source->find(fmt::format("{}.{}", full, leaf)) != nullptr;
  });
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
