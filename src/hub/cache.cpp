#include "hub/cache.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/space.h"

namespace banyan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";

bool has(const std::string& folder, const char* name) {
  return file_exists(folder + "/" + name);
}

// Every shard that the index names.
bool has_shards(const std::string& folder) {
  Result<std::string> text = read_file(folder + "/model.safetensors.index.json", 100'000'000);
  if (!text) return false;
  Result<Json> index = parse_json(*text, "the index");
  if (!index || !index->is_object() || !index->contains("weight_map")) return false;
  const Json& map = (*index)["weight_map"];
  return map.is_object() && std::ranges::all_of(map, [&](const Json& shard) {
           return shard.is_string() && has(folder, shard.get_ref<const std::string&>().c_str());
         });
}

bool is_complete(const std::string& folder) {
  bool tokenizer = has(folder, "tokenizer.json") || has(folder, "tiktoken.model");
  bool sharded = has(folder, "model.safetensors.index.json");
  bool weights = sharded ? has_shards(folder) : has(folder, "model.safetensors");
  return has(folder, "config.json") && tokenizer && weights;
}

int64_t bytes_in(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code code;
  for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code)) {
    std::error_code ignored;
    if (it->is_symlink(ignored) || !it->is_regular_file(ignored)) continue;
    bytes += static_cast<int64_t>(it->file_size(ignored));
  }
  return bytes;
}

CachedModel describe(const fs::path& repository) {
  std::string name = repository.filename().string().substr(kPrefix.size());
  size_t separator = name.find("--");
  CachedModel model{.repository = name.substr(0, separator) + "/" + name.substr(separator + 2),
                    .folder = repository.string(),
                    .bytes = bytes_in(repository)};
  fs::path refs = repository / "refs";
  std::error_code code;
  for (fs::recursive_directory_iterator it(refs, code), end; !code && it != end;
       it.increment(code)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    std::string commit(trim_space(read_file(it->path().string(), 4096).value_or("")));
    fs::path snapshot = repository / "snapshots" / commit;
    if (commit.empty() || commit.find('/') != commit.npos || !fs::is_directory(snapshot, ignored)) {
      continue;
    }
    model.revisions.push_back(it->path().lexically_relative(refs).string() + " " + commit);
    bool complete = is_complete(snapshot.string());
    if (complete || !model.complete) model.folder = snapshot.string();
    model.complete |= complete;
  }
  std::ranges::sort(model.revisions);
  return model;
}

}  // namespace

std::string repository_folder(const HubSettings& settings, const HubModel& model) {
  return fmt::format("{}/{}{}--{}", settings.cache, kPrefix, model.owner, model.name);
}

std::string cached_snapshot(const HubSettings& settings, const HubModel& model) {
  if (settings.cache.empty()) return "";
  std::string repository = repository_folder(settings, model);
  Result<std::string> ref = read_file(repository + "/refs/" + model.revision, 4096);
  std::string commit = ref ? std::string(trim_space(*ref)) : model.revision;
  if (commit.empty() || commit.find('/') != commit.npos) return "";
  std::string snapshot = repository + "/snapshots/" + commit;
  return is_complete(snapshot) ? snapshot : "";
}

Result<std::vector<CachedModel>> cached_models(const HubSettings& settings) {
  std::vector<CachedModel> models;
  std::error_code code;
  if (settings.cache.empty() || !fs::exists(settings.cache, code)) return models;
  for (fs::directory_iterator it(settings.cache, code), end; !code && it != end;
       it.increment(code)) {
    std::string name = it->path().filename().string();
    bool named = name.starts_with(kPrefix) && name.find("--", kPrefix.size()) != name.npos;
    if (named) models.push_back(describe(it->path()));
  }
  if (code) return io_error("{}: {}", settings.cache, code.message());
  std::ranges::sort(models, {}, &CachedModel::repository);
  return models;
}

Result<int64_t> remove_cached(const HubSettings& settings, const HubModel& model) {
  std::string folder = repository_folder(settings, model);
  std::error_code code;
  if (settings.cache.empty() || !fs::is_directory(folder, code)) {
    return not_found("{} is not in {}; `banyan list` shows what is", model.repository(),
                     settings.cache);
  }
  int64_t bytes = bytes_in(folder);
  fs::remove_all(folder, code);
  if (code) return io_error("{}: {}", folder, code.message());
  std::string name = fs::path(folder).filename().string();
  fs::remove_all(settings.cache + "/.locks/" + name, code);
  return bytes;
}

}  // namespace banyan
