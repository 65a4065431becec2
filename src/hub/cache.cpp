#include "hub/cache.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/space.h"
#include "hub/gguf_choice.h"

namespace banyan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";

bool has(const std::string& folder, const char* name) {
  return file_exists(folder + "/" + name);
}

// Whether every shard in the index is present.
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
  if (has(folder, "adapter_config.json") && !has(folder, "config.json")) {
    return has(folder, "adapter_model.safetensors");
  }
  bool tokenizer = has(folder, "tokenizer.json") || has(folder, "tiktoken.model");
  bool sharded = has(folder, "model.safetensors.index.json");
  bool weights = sharded ? has_shards(folder) : has(folder, "model.safetensors");
  return has(folder, "config.json") && tokenizer && weights;
}

// The existing files of a snapshot, with their names on the hub.
std::set<std::string> files_in(const fs::path& snapshot) {
  std::set<std::string> files;
  std::error_code code;
  for (fs::recursive_directory_iterator it(snapshot, code), end; !code && it != end;
       it.increment(code)) {
    std::error_code ignored;
    // A link may point to a file that is not downloaded yet.
    if (!it->is_regular_file(ignored)) continue;
    files.insert(it->path().lexically_relative(snapshot).string());
  }
  return files;
}

std::vector<fs::path> snapshots_of(const fs::path& repository) {
  std::vector<fs::path> snapshots;
  std::error_code code;
  for (fs::directory_iterator it(repository / "snapshots", code), end; !code && it != end;
       it.increment(code)) {
    snapshots.push_back(it->path());
  }
  std::ranges::sort(snapshots);
  return snapshots;
}

// A file with one name per line. huggingface_hub ignores it, as it does its own ".no_exist".
std::string note_path(const std::string& repository, const std::string& commit) {
  return repository + "/.banyan-files/" + commit;
}

std::set<std::string> read_note(const std::string& path) {
  std::set<std::string> files;
  std::istringstream lines(read_file(path, 64 << 20).value_or(""));
  for (std::string line; std::getline(lines, line);) files.insert(line);
  return files;
}

// The model's GGUF file, or "" if it is not a GGUF model or is incomplete here.
std::string gguf_of(const std::set<std::string>& all, const std::set<std::string>& here,
                    const HubModel& model) {
  if (model.gguf.empty() && has_safetensors(all)) return "";
  Result<GgufModel> chosen = choose_gguf(all, model.gguf, model.repository());
  bool is_here = chosen && std::ranges::includes(here, chosen->files);
  return is_here ? chosen->files.front() : "";
}

int64_t bytes_in(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code code;
  for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code)) {
    std::error_code ignored;
    if (it->is_symlink(ignored) || !it->is_regular_file(ignored)) continue;
    bytes += it->file_size(ignored);
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
    for (const GgufModel& gguf : gguf_models(files_in(snapshot))) {
      if (!gguf.whole) continue;
      complete = true;
      model.ggufs.push_back(gguf.label());
    }
    if (complete || !model.complete) model.folder = snapshot.string();
    model.complete |= complete;
  }
  std::ranges::sort(model.revisions);
  std::ranges::sort(model.ggufs);
  model.ggufs.erase(std::ranges::unique(model.ggufs).begin(), model.ggufs.end());
  return model;
}

// Removes one GGUF model's links in every snapshot, and the blobs that no other link refers to.
Result<int64_t> remove_gguf(const fs::path& repository, const HubModel& model) {
  std::set<fs::path> blobs;
  std::error_code code;
  Result<GgufModel> chosen = not_found("{} has no snapshot here", model.repository());
  int64_t before = bytes_in(repository);
  for (const fs::path& snapshot : snapshots_of(repository)) {
    chosen = choose_gguf(files_in(snapshot), model.gguf, model.repository());
    if (!chosen) continue;
    for (const std::string& file : chosen->files) {
      blobs.insert(fs::weakly_canonical(snapshot / file, code));
      fs::remove(snapshot / file, code);
      if (code) return io_error("{}: {}", (snapshot / file).string(), code.message());
    }
  }
  if (blobs.empty()) return std::unexpected(chosen.error());
  bool is_empty = true;
  for (const fs::path& snapshot : snapshots_of(repository)) {
    for (const std::string& file : files_in(snapshot)) {
      blobs.erase(fs::weakly_canonical(snapshot / file, code));
      is_empty = false;
    }
  }
  fs::path own = fs::weakly_canonical(repository / "blobs", code);
  for (const fs::path& blob : blobs) {
    if (blob.parent_path() == own) fs::remove(blob, code);
  }
  if (is_empty && !code) fs::remove_all(repository, code);
  if (code) return io_error("{}: {}", repository.string(), code.message());
  return before - bytes_in(repository);
}

}  // namespace

std::string repository_folder(const HubSettings& settings, const HubModel& model) {
  return fmt::format("{}/{}{}--{}", settings.cache, kPrefix, model.owner, model.name);
}

std::string cached_model(const HubSettings& settings, const HubModel& model) {
  if (settings.cache.empty()) return "";
  std::string repository = repository_folder(settings, model);
  Result<std::string> ref = read_file(repository + "/refs/" + model.revision, 4096);
  std::string commit = ref ? std::string(trim_space(*ref)) : model.revision;
  if (commit.empty() || commit.find('/') != commit.npos) return "";
  std::string snapshot = repository + "/snapshots/" + commit;
  if (model.gguf.empty() && is_complete(snapshot)) return snapshot;
  std::set<std::string> here = files_in(snapshot), all = read_note(note_path(repository, commit));
  // Downloaded by another program: whether the hub also has safetensors is unknown.
  if (all.empty() && model.gguf.empty() && !settings.offline) return "";
  std::string file = gguf_of(all.empty() ? here : all, here, model);
  if (file.empty() && settings.offline) file = gguf_of(here, here, model);
  return file.empty() ? "" : snapshot + "/" + file;
}

Status note_files(const HubSettings& settings, const HubModel& model, const std::string& commit,
                  const std::set<std::string>& files) {
  return replace_file(note_path(repository_folder(settings, model), commit),
                      fmt::format("{}\n", fmt::join(files, "\n")));
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
  if (!model.gguf.empty()) return remove_gguf(folder, model);
  int64_t bytes = bytes_in(folder);
  fs::remove_all(folder, code);
  if (code) return io_error("{}: {}", folder, code.message());
  std::string name = fs::path(folder).filename().string();
  fs::remove_all(settings.cache + "/.locks/" + name, code);
  return bytes;
}

}  // namespace banyan
