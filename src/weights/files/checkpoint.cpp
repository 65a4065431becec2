#include "weights/files/checkpoint.h"

#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "weights/files/model_folder.h"

namespace banyan {
namespace {

using simdjson::dom::element;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr size_t kIndexBytesMax = 100'000'000;  // 90,000 tensors take about 10 MB
constexpr size_t kIndexDepthMax = 16;

bool is_plain_shard_name(std::string_view name) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return name.ends_with(".safetensors") && !name.starts_with('.') &&
         std::ranges::all_of(name, plain);
}

// The error for a folder without readable files, based on the files it has instead.
std::unexpected<Error> nothing_to_read(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code code;
  std::string pickle, gguf, other;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    std::string name = it->path().filename().string();
    std::string suffix = it->path().extension().string();
    if (suffix == ".gguf") gguf = name;
    if (suffix == ".bin" || suffix == ".pt" || suffix == ".pth") pickle = name;
    if (suffix == ".safetensors") other = name;
  }
  if (code) return io_error("{}: {}", folder, code.message());
  std::string missing = fmt::format("{}: no {} and no {}", folder, kSingleFile, kIndexFile);
  if (!other.empty()) {
    return not_found("{}; found {}, but only those two names are read", missing, quote(other));
  }
  if (!pickle.empty()) {
    return unsupported(
        "{}; found {}, but only safetensors is read: convert it with transformers' "
        "save_pretrained(folder, safe_serialization=True)",
        missing, quote(pickle));
  }
  if (!gguf.empty()) {
    return unsupported(
        "{}; found {}: pass that file as the model, or keep the folder and add --gguf {}/{}",
        missing, quote(gguf), folder, gguf);
  }
  return not_found("{}", missing);
}

// The distinct files that `index` names, sorted.
std::vector<std::string_view> shard_names(const ShardIndex& index) {
  std::vector<std::string_view> names;
  for (const auto& [tensor, shard] : index) names.push_back(shard);
  std::ranges::sort(names);
  auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

Result<std::pair<std::string, std::string>> read_index_entry(std::string_view path,
                                                             std::string_view tensor,
                                                             const element& value) {
  std::string_view shard;
  if (value.get(shard) != simdjson::SUCCESS) {
    return corrupt("{}: the file of tensor {} is not a string", path, quote(tensor));
  }
  if (!is_plain_shard_name(shard)) {
    return corrupt("{}: the index places tensor {} in {}, which is not a plain *.safetensors name",
                   path, quote(tensor), quote(shard));
  }
  return std::pair(std::string(tensor), std::string(shard));
}

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text, std::string_view path) {
  simdjson::dom::parser parser;
  element root;
  simdjson::error_code code = parser.allocate(std::max<size_t>(text.size(), 1), kIndexDepthMax);
  if (code == simdjson::SUCCESS) code = parser.parse(text.data(), text.size()).get(root);
  if (code != simdjson::SUCCESS) {
    return corrupt("{}: not valid JSON: {}", path, simdjson::error_message(code));
  }
  if (!root.is_object()) return corrupt("{}: not a JSON object", path);
  std::optional<element> map;
  for (auto [key, value] : simdjson::dom::object(root)) {
    if (key != "weight_map") continue;
    if (map) return corrupt("{}: the key \"weight_map\" appears twice", path);
    map = value;
  }
  if (!map || !map->is_object()) return corrupt("{}: no \"weight_map\" object", path);
  ShardIndex index;
  for (auto [tensor, shard] : simdjson::dom::object(*map)) {
    index.push_back(TRY(read_index_entry(path, tensor, shard)));
  }
  if (index.empty()) return corrupt("{}: \"weight_map\" is empty", path);
  std::ranges::sort(index);
  auto twice = std::ranges::adjacent_find(index, {}, &ShardIndex::value_type::first);
  if (twice != index.end()) {
    return corrupt("{}: the tensor {} appears twice", path, quote(twice->first));
  }
  return index;
}

Result<Checkpoint> Checkpoint::open(const std::string& folder) {
  TRY(check_model_folder(folder));
  std::string single = folder + "/" + kSingleFile;
  if (file_exists(single)) {
    std::vector<SafetensorsFile> files;
    files.push_back(TRY(SafetensorsFile::open(single)));
    return merge(std::move(files));
  }
  if (file_exists(folder + "/" + kIndexFile)) return open_shards(folder);
  return nothing_to_read(folder);
}

Result<Checkpoint> Checkpoint::open_shards(const std::string& folder) {
  std::string index_path = folder + "/" + kIndexFile;
  ShardIndex index = TRY(parse_shard_index(TRY(read_file(index_path, kIndexBytesMax)), index_path));
  std::vector<SafetensorsFile> files;
  for (std::string_view shard : shard_names(index)) {
    std::string path = fmt::format("{}/{}", folder, shard);
    if (!file_exists(path)) {
      return not_found("{}: no such file, but {} names it", path, kIndexFile);
    }
    files.push_back(TRY(SafetensorsFile::open(path)));
  }
  Checkpoint checkpoint = TRY(merge(std::move(files)));
  TRY(checkpoint.check_against(index, index_path));
  return checkpoint;
}

Result<Checkpoint> Checkpoint::merge(std::vector<SafetensorsFile> files) {
  Checkpoint checkpoint;
  checkpoint.files_ = std::move(files);
  std::vector<Entry>& entries = checkpoint.entries_;
  for (size_t file = 0; file < checkpoint.files_.size(); ++file) {
    for (const TensorInfo& tensor : checkpoint.files_[file].tensors()) {
      entries.push_back({&tensor, file});
    }
  }
  std::ranges::sort(entries, {}, &Entry::name);
  auto twice = std::ranges::adjacent_find(entries, {}, &Entry::name);
  if (twice != entries.end()) {
    return corrupt("tensor {} is both in {} and in {}", quote(twice->name()),
                   checkpoint.files_[twice->file].path(),
                   checkpoint.files_[std::next(twice)->file].path());
  }
  return checkpoint;
}

// Both lists are sorted by name, so one walk finds the first difference.
Status Checkpoint::check_against(const ShardIndex& index, const std::string& index_path) const {
  auto entry = entries_.begin();
  for (const auto& [tensor, shard] : index) {
    if (entry != entries_.end() && entry->name() < tensor) break;
    if (entry == entries_.end() || entry->name() != tensor) {
      return corrupt("{}: the index places tensor {} in {}, but no file contains it", index_path,
                     quote(tensor), quote(shard));
    }
    const std::string& path = files_[entry->file].path();
    if (!path.ends_with("/" + shard)) {
      return corrupt("{}: the index places tensor {} in {}, but it is in {}", index_path,
                     quote(tensor), quote(shard), path);
    }
    ++entry;
  }
  if (entry == entries_.end()) return {};
  return corrupt("{}: tensor {} of {} is not in the index", index_path, quote(entry->name()),
                 files_[entry->file].path());
}

const Checkpoint::Entry* Checkpoint::find_entry(std::string_view name) const {
  auto found = std::ranges::lower_bound(entries_, name, {}, &Entry::name);
  return found != entries_.end() && found->name() == name ? &*found : nullptr;
}

const TensorInfo* Checkpoint::find(std::string_view name) const {
  const Entry* entry = find_entry(name);
  return entry == nullptr ? nullptr : entry->tensor;
}

std::vector<const TensorInfo*> Checkpoint::tensors() const {
  std::vector<const TensorInfo*> tensors;
  for (const Entry& entry : entries_) tensors.push_back(entry.tensor);
  return tensors;
}

const SafetensorsFile& Checkpoint::file_with(const TensorInfo& tensor) const {
  const Entry* entry = find_entry(tensor.name);
  CHECK(entry != nullptr && entry->tensor == &tensor, "{} is not ours", tensor.name);
  return files_[entry->file];
}

Status Checkpoint::read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const {
  return file_with(tensor).read(tensor, offset, to);
}

const MappedFile* Checkpoint::file_of(const TensorInfo& tensor) const {
  return &file_with(tensor).map();
}

}  // namespace banyan
