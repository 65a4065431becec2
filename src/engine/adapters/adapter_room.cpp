#include "engine/adapters/adapter_room.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"
#include "base/quote.h"
#include "base/signed.h"
#include "weights/convert.h"
#include "weights/rank_part.h"
#include "weights/shape_text.h"

namespace banyan {
namespace {

// Incremented when the same adapter adds other bits than before: stored prefixes have its digest.
constexpr uint64_t kAdapterRevision = 1;

// The rank of adapters to come, if none is loaded at first.
constexpr int kRankDefault = 16;

// transformers and checkpoints differ in where they put the language model of a multimodal one.
std::string plain_name(std::string_view name) {
  constexpr std::string_view kPart = "language_model.";
  std::string plain(name);
  if (size_t at = plain.find(kPart); at != plain.npos) plain.erase(at, kPart.size());
  return plain;
}

Status check_shape(const std::string& path, const TensorInfo& tensor, int64_t rows,
                   int64_t columns) {
  if (tensor.shape[0] == rows && tensor.shape[1] == columns) return {};
  return corrupt("{}: {} has shape {} where {} is expected", path, tensor.name,
                 shape_text(tensor.shape), shape_text(std::array{rows, columns}));
}

// The elements of `tensor`, whose bytes are hashed.
Result<std::vector<float>> read_floats(const SafetensorsFile& file, const TensorInfo& tensor,
                                       Hasher& hasher) {
  std::vector<std::byte> raw(tensor.bytes.size());
  TRY(file.read(tensor, 0, raw));
  hasher.text(dtype_name(tensor.dtype));
  for (int64_t extent : tensor.shape) hasher.number(as_size(extent));
  hasher.bytes(raw);
  std::vector<float> values(as_size(tensor.shape[0] * tensor.shape[1]));
  convert_elements(raw.data(), tensor.dtype, values.data(), DType::kF32, std::ssize(values));
  return values;
}

Status check_rank(const PeftAdapter& adapter, int64_t rank_max) {
  if (adapter.rank_max() <= rank_max) return {};
  return invalid_argument("{}: its rank is {}, but there is room for rank {} (--max-lora-rank)",
                          adapter.file().path(), adapter.rank_max(), rank_max);
}

}  // namespace

Status choose_adapter_limits(EngineConfig& config) {
  int rank_max = 0;
  for (const AdapterSource& source : config.adapters) {
    PeftAdapter adapter = TRY(PeftAdapter::open(source.path));
    if (config.adapter_rank_max > 0) TRY(check_rank(adapter, config.adapter_rank_max));
    rank_max = std::max(rank_max, narrow<int>(adapter.rank_max()));
  }
  if (config.adapters_max == 0) config.adapters_max = narrow<int>(std::ssize(config.adapters));
  if (config.adapter_rank_max > 0) return {};
  config.adapter_rank_max = rank_max > 0 ? rank_max : kRankDefault;
  return {};
}

AdapterRoom::AdapterRoom(const AdapterSites& sites, DType dtype, const KernelTable& kernels,
                         int64_t slots, int64_t rank)
    : sites_(sites), format_(format_of(dtype)), kernel_(kernels.*format_->kernel) {
  CHECK(slots > 0 && rank > 0, "{} adapters of rank {}", slots, rank);
  table_ = {.slots = slots, .rank = rank};
  auto matrix = [&](int64_t rows, int64_t columns, std::vector<size_t>& offsets) {
    offsets.push_back(slot_bytes_);
    slot_bytes_ += kernel_.packed_bytes(rows, columns, columns);
    return PackedMatrix{
        .format = format_, .count = slots, .rows = rows, .columns = columns, .group = columns};
  };
  for (const AdapterSite& site : sites.sites) {
    std::vector<size_t>& offsets = offsets_.emplace_back();
    AdapterProduct product{.a = matrix(std::ssize(site.parts) * rank, site.columns, offsets)};
    int64_t first = 0;
    for (const AdapterSite::Part& part : site.parts) {
      places_[plain_name(part.name)] = {table_.products.size(), product.parts.size()};
      product.parts.push_back({.b = matrix(part.rows, rank, offsets),
                               .first = first,
                               .used = std::vector<uint8_t>(as_size(slots))});
      first += part.rows;
    }
    table_.products.push_back(std::move(product));
  }
}

void AdapterRoom::reserve(const DeviceQueue& queue) {
  queue_ = &queue;
  memory_ = DeviceBlock(queue, as_size(bytes()));
  for (size_t site = 0; site < table_.products.size(); ++site) {
    AdapterProduct& product = table_.products[site];
    auto place = [&](PackedMatrix& matrix, size_t index) {
      matrix.data = memory_.data() + offsets_[site][index];
      matrix.bytes = slot_bytes_;
    };
    place(product.a, 0);
    for (size_t i = 0; i < product.parts.size(); ++i) place(product.parts[i].b, i + 1);
  }
}

void AdapterRoom::put(int64_t slot, const PackedAdapter& adapter) {
  CHECK(slot >= 0 && slot < table_.slots && adapter.bytes.size() == slot_bytes_);
  queue_->upload(memory_.data() + as_size(slot) * slot_bytes_, adapter.bytes.data(), slot_bytes_);
  for (size_t site = 0; site < table_.products.size(); ++site) {
    std::vector<AdapterProduct::Part>& parts = table_.products[site].parts;
    for (size_t i = 0; i < parts.size(); ++i) at(parts[i].used, slot) = adapter.used[site][i];
  }
}

Result<AdapterRoom::Place> AdapterRoom::place_of(const PeftModule& module,
                                                 const std::string& path) const {
  std::string name = plain_name(module.name);
  if (auto found = places_.find(name); found != places_.end()) return found->second;
  bool there = std::ranges::any_of(sites_.others, [&](const std::string& other) {
    std::string plain = plain_name(other);
    return plain == name || plain.starts_with(name + ".");
  });
  if (there) {
    return unsupported(
        "{}: {}: {} of this model takes no adapter; projections of attention and of recurrent "
        "layers, dense blocks and shared experts do",
        path, module.a->name, module.name);
  }
  return corrupt("{}: {}: this model has no matrix {}", path, module.a->name, module.name);
}

// In the room's type, as `args` say.
void AdapterRoom::pack_rows(std::span<const float> values, PackArgs args) const {
  std::vector<std::byte> elements(values.size() * dtype_bytes(format_->element));
  convert_elements(values.data(), DType::kF32, elements.data(), format_->element,
                   std::ssize(values));
  args.source = elements.data();
  kernel_.pack(args);
}

Status AdapterRoom::pack_a(const PeftAdapter& adapter, const PeftModule& module, Place place,
                           Hasher& hasher, std::byte* slot) const {
  const AdapterSite& site = sites_.sites[place.site];
  TRY(check_shape(adapter.file().path(), *module.a, module.rank(), site.columns));
  std::vector<float> values = TRY(read_floats(adapter.file(), *module.a, hasher));
  values.resize(as_size(table_.rank * site.columns));
  pack_rows(values, {.packed = slot + offsets_[place.site][0],
                     .n = std::ssize(site.parts) * table_.rank,
                     .k = site.columns,
                     .group = site.columns,
                     .row_begin = static_cast<int64_t>(place.part) * table_.rank,
                     .row_count = table_.rank});
  return {};
}

// Rows in the order of y's columns.
Status AdapterRoom::pack_b(const PeftAdapter& adapter, const PeftModule& module, Place place,
                           double scaling, Hasher& hasher, std::byte* slot) const {
  const AdapterSite::Part& part = sites_.sites[place.site].parts[place.part];
  TRY(check_shape(adapter.file().path(), *module.b, part.rows, module.rank()));
  std::vector<float> stored = TRY(read_floats(adapter.file(), *module.b, hasher));
  std::vector<float> values(as_size(part.rows * table_.rank));
  auto to = values.begin();
  for (RowRange range : TRY(rows_of_rank(part.name, part.rows, part.shard, {}))) {
    for (int64_t row = range.first; row < range.first + range.count; ++row) {
      for (int64_t c = 0; c < module.rank(); ++c) {
        to[c] = static_cast<float>(scaling * stored[as_size(row * module.rank() + c)]);
      }
      to += table_.rank;
    }
  }
  pack_rows(values, {.packed = slot + offsets_[place.site][place.part + 1],
                     .n = part.rows,
                     .k = table_.rank,
                     .group = table_.rank,
                     .row_count = part.rows});
  return {};
}

Result<std::shared_ptr<const PackedAdapter>> AdapterRoom::pack(const AdapterSource& source) const {
  PeftAdapter adapter = TRY(PeftAdapter::open(source.path));
  const std::string& path = adapter.file().path();
  TRY(check_rank(adapter, table_.rank));
  auto packed = std::make_shared<PackedAdapter>();
  packed->info = {.name = source.name,
                  .path = source.path,
                  .rank = adapter.rank_max(),
                  .modules = std::ssize(adapter.modules())};
  packed->bytes = DeviceBlock(host_queue(), slot_bytes_);  // zeros, which are packed zeros
  for (const AdapterSite& site : sites_.sites) packed->used.emplace_back(site.parts.size());
  Hasher hasher;
  hasher.number(kAdapterRevision).text(format_->name).number(as_size(table_.rank));
  for (const PeftModule& module : adapter.modules()) {
    Place place = TRY(place_of(module, path));
    uint8_t& used = packed->used[place.site][place.part];
    if (used != 0) return corrupt("{}: {} is adapted twice", path, module.name);
    used = 1;
    double scaling = module.scaling * source.scale;
    hasher.text(module.name).number(std::bit_cast<uint64_t>(scaling));
    TRY(pack_a(adapter, module, place, hasher, packed->bytes.data()));
    TRY(pack_b(adapter, module, place, scaling, hasher, packed->bytes.data()));
  }
  packed->info.digest = hasher.finish().hex();
  return packed;
}

}  // namespace banyan
