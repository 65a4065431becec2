#include "hub/download.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/units.h"
#include "hub/blob.h"
#include "hub/cache.h"
#include "hub/gguf_choice.h"
#include "hub/http.h"
#include "hub/plain_path.h"

namespace banyan {
namespace {

namespace fs = std::filesystem;

// Downloaded if the model has them; the weights come afterwards.
constexpr std::array kSmallFiles = {
    "config.json",        "generation_config.json", "tokenizer.json",
    "tiktoken.model",     "tokenizer_config.json",  "special_tokens_map.json",
    "chat_template.json", "chat_template.jinja",    "modules.json",
};
// Of sentence-transformers: how embeddings are pooled. In a folder of its own, "1_Pooling".
constexpr std::string_view kPooling = "_Pooling/config.json";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kAdapterConfig = "adapter_config.json";  // of a LoRA adapter
constexpr const char* kAdapterWeights = "adapter_model.safetensors";
constexpr int64_t kFileBytesMax = int64_t{1} << 43;
constexpr int kRepliesMax = 4;  // from a busy hub

// A lock that makes other programs wait while this one downloads the model.
class RepositoryLock {
 public:
  static Result<RepositoryLock> take(const HubSettings& settings, const HubModel& model) {
    std::string folder = settings.cache + "/.locks/" +
                         fs::path(repository_folder(settings, model)).filename().string();
    std::error_code code;
    fs::create_directories(folder, code);
    std::string path = folder + "/banyan.lock";
    int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) return io_error("{}: {}", path, std::strerror(errno));
    while (flock(descriptor, LOCK_EX) != 0 && errno == EINTR) continue;
    return RepositoryLock(descriptor);
  }
  RepositoryLock(RepositoryLock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  RepositoryLock& operator=(RepositoryLock&&) = delete;
  ~RepositoryLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }

 private:
  explicit RepositoryLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

class Fetch {
 public:
  Fetch(const HubSettings& settings, const HubModel& model, const HubNotice& notice,
        const LoadProgress& progress, const HubFileProgress& of_file)
      : settings_(settings),
        model_(model),
        notice_(notice),
        progress_(progress),
        of_file_(of_file),
        folder_(repository_folder(settings, model)) {}

  Result<std::string> run() {
    TRY(read_listing());
    std::error_code code;
    fs::create_directories(folder_ + "/blobs", code);
    fs::create_directories(snapshot(), code);
    if (code) return io_error("{}: {}", folder_, code.message());
    TRY(plan_files());
    TRY(check_room());
    const char* what = files_.size() == 1 ? "file" : "files";
    if (notice_) notice_(fmt::format("{} {}, {}", files_.size(), what, format_bytes(total_)));
    planned_ = true;
    for (const HubFile& file : files_) TRY(fetch(file));
    TRY(note_files(settings_, model_, commit_, names_));
    TRY(replace_file(folder_ + "/refs/" + model_.revision, commit_));
    return snapshot() + gguf_;
  }

 private:
  std::string snapshot() const { return folder_ + "/snapshots/" + commit_; }

  // A GET that retries while the hub is busy.
  Result<HubReply> ask(HubRequest request) {
    request.token = settings_.token;
    for (int tries = 1;; ++tries) {
      Result<HubReply> reply = send_to_hub(request);
      bool busy = !reply || reply->status >= 500 || reply->status == 429;
      if (!busy || tries == kRepliesMax) return reply;
      std::this_thread::sleep_for(std::chrono::milliseconds(100 << tries));
    }
  }

  std::unexpected<Error> refusal(const HubReply& reply) const {
    std::string code = reply.header("x-error-code");
    std::string page = settings_.endpoint + "/" + model_.repository();
    if (code == "GatedRepo" || reply.status == 403) {
      return not_found(
          "{} asks its users to agree to terms: do so at {} and set HF_TOKEN to a token of your "
          "account",
          model_.repository(), page);
    }
    if (code == "RevisionNotFound") {
      return not_found("{} has no revision {}", model_.repository(), quote(model_.revision));
    }
    if (reply.status == 401) {
      return not_found(
          "{} is unknown to {}, or private; {}", model_.repository(), settings_.endpoint,
          settings_.token.empty() ? "HF_TOKEN, a token of your account, is not set"
                                  : "the token in HF_TOKEN is refused or may not read it");
    }
    if (reply.status == 404 || code == "RepoNotFound") {
      return not_found("{} has no model {}, or none of revision {}", settings_.endpoint,
                       model_.repository(), quote(model_.revision));
    }
    return io_error("{} answers {} when asked for {}", settings_.endpoint, reply.status,
                    model_.repository());
  }

  // Reads the commit and the names of its files.
  Status read_listing() {
    std::string revision = model_.revision;
    for (size_t at = 0; (at = revision.find('/', at)) != revision.npos;) {
      revision.replace(at, 1, "%2F");
    }
    std::string url = fmt::format("{}/api/models/{}/revision/{}", settings_.endpoint,
                                  model_.repository(), revision);
    HubReply reply = TRY(ask({.url = url}));
    if (reply.status != 200) return refusal(reply);
    Json info = TRY(parse_json(reply.body, url));
    bool known = info.is_object() && info.contains("sha") && info["sha"].is_string() &&
                 info.contains("siblings") && info["siblings"].is_array();
    if (!known) return corrupt("{}: not a hub response: \"sha\" or \"siblings\" is missing", url);
    commit_ = info["sha"].get<std::string>();
    if (commit_.size() != 40 || !is_plain_name(commit_)) {
      return corrupt("{}: {} is not a commit hash", url, quote(commit_));
    }
    for (const Json& file : info["siblings"]) {
      bool named = file.is_object() && file.contains("rfilename") && file["rfilename"].is_string();
      if (named) names_.insert(file["rfilename"].get<std::string>());
    }
    return {};
  }

  Status plan_files() {
    bool gguf_alone = !has_safetensors(names_) && !gguf_models(names_).empty();
    if (gguf_alone || !model_.gguf.empty()) return plan_gguf();
    if (names_.contains(kAdapterConfig) && !names_.contains("config.json")) {
      if (!names_.contains(kAdapterWeights)) return no_weights();
      TRY(plan(kAdapterConfig));
      return plan(kAdapterWeights);
    }
    if (!names_.contains("config.json")) {
      return unsupported("{} has no config.json: it is not a model in Hugging Face's layout",
                         model_.repository());
    }
    bool sharded = names_.contains(kIndex);
    if (!sharded && !names_.contains(kWeights)) return no_weights();
    for (const char* name : kSmallFiles) {
      if (names_.contains(name)) TRY(plan(name));
    }
    for (const std::string& name : names_) {
      if (name.ends_with(kPooling) && is_plain_path(name)) TRY(plan(name));
    }
    if (!sharded) return plan(kWeights);
    TRY(plan(kIndex));
    TRY(fetch(files_.back()));  // it names the shards
    std::string text = TRY(read_file(snapshot() + "/" + kIndex, 100'000'000));
    Json index = TRY(parse_json(text, kIndex));
    if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
      return corrupt("{}: {} has no \"weight_map\"", model_.repository(), kIndex);
    }
    std::set<std::string> shards;
    for (const Json& shard : index["weight_map"]) {
      std::string name = shard.is_string() ? shard.get<std::string>() : "";
      if (!is_plain_name(name) || !name.ends_with(".safetensors")) {
        return corrupt("{}: {} names {}, which is not a plain *.safetensors name",
                       model_.repository(), kIndex, quote(name));
      }
      shards.insert(std::move(name));
    }
    for (const std::string& name : shards) TRY(plan(name));
    return {};
  }

  // The GGUF file contains everything else the engine needs.
  Status plan_gguf() {
    GgufModel chosen = TRY(choose_gguf(names_, model_.gguf, model_.repository()));
    if (!is_known_quantization(chosen.quantization)) {
      return unsupported("{} has tensors of {}, which is not supported; take another file of {}",
                         chosen.files.front(), chosen.quantization, model_.repository());
    }
    for (const std::string& file : chosen.files) TRY(plan(file));
    gguf_ = "/" + chosen.files.front();
    return {};
  }

  std::unexpected<Error> no_weights() const {
    std::string other;
    for (const std::string& name : names_) {
      if (name.ends_with(".gguf") || name.ends_with(".bin") || name.ends_with(".pth")) other = name;
    }
    return unsupported("{} has no safetensors{}; its base model may", model_.repository(),
                       other.empty() ? "" : fmt::format(", only files such as {}", quote(other)));
  }

  // Requests a file's size and hash, without its contents.
  Status plan(const std::string& name) {
    std::string url =
        fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, model_.repository(), commit_, name);
    std::string place = url;
    HubReply reply;
    for (int hops = 0; hops < 5; ++hops) {
      reply = TRY(ask({.url = place, .head = true, .follow = false}));
      std::string to = reply.header("location");
      bool moved = reply.status / 100 == 3 && reply.header("x-linked-etag").empty();
      if (!moved || !to.starts_with('/')) break;  // other hosts do not send the hub's etag
      place = settings_.endpoint + to;
    }
    if (reply.status / 100 != 2 && reply.status / 100 != 3) return refusal(reply);
    HubFile file{.name = name, .url = url, .token = settings_.token};
    file.etag = reply.header("x-linked-etag");
    if (file.etag.empty()) file.etag = reply.header("etag");
    if (file.etag.starts_with("W/")) file.etag.erase(0, 2);
    std::erase(file.etag, '"');
    if (!is_plain_name(file.etag)) {
      return corrupt("{}: invalid ETag {}", url, quote(file.etag));
    }
    std::string size = reply.header("x-linked-size");
    if (size.empty()) size = reply.header("content-length");
    auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), file.bytes);
    bool whole = error == std::errc() && end == size.data() + size.size();
    if (!whole || file.bytes < 0 || file.bytes > kFileBytesMax) {
      return corrupt("{}: invalid file size {}", url, quote(size));
    }
    total_ += file.bytes;
    files_.push_back(std::move(file));
    return {};
  }

  Status check_room() const {
    std::error_code code;
    fs::space_info space = fs::space(folder_, code);
    int64_t needed = 0;
    for (const HubFile& file : files_) {
      if (!file_exists(folder_ + "/blobs/" + file.etag)) needed += file.bytes;
    }
    if (code || needed <= static_cast<int64_t>(space.available)) return {};
    return exhausted("{} needs {}, but only {} are free in {}; point HF_HUB_CACHE at another disk",
                     model_.repository(), format_bytes(needed), format_bytes(space.available),
                     settings_.cache);
  }

  // Downloads the blob and links to it from the snapshot.
  Status fetch(const HubFile& file) {
    std::string path = snapshot() + "/" + file.name;
    int64_t here = 0;
    TRY(fetch_blob(file, folder_ + "/blobs", [&](int64_t bytes) {
      here += bytes;
      return !planned_ || tell(file, here, bytes);
    }));
    std::error_code code;
    std::string made = path + ".banyan-link", up = "../../";
    for (char c : file.name) up += c == '/' ? "../" : "";
    fs::create_directories(fs::path(path).parent_path(), code);
    fs::remove(made, code);
    fs::create_symlink(up + "blobs/" + file.etag, made, code);
    if (!code) fs::rename(made, path, code);
    if (code) return io_error("{}: {}", path, code.message());
    return {};
  }

  // Reports `bytes` more of a file, `here` bytes in total.
  bool tell(const HubFile& file, int64_t here, int64_t bytes) {
    done_ += bytes;
    if (progress_) progress_(std::min(done_, total_), total_);
    return !of_file_ || of_file_(file.etag, here, file.bytes);
  }

  const HubSettings& settings_;
  const HubModel& model_;
  const HubNotice& notice_;
  const LoadProgress& progress_;
  const HubFileProgress& of_file_;
  const std::string folder_;
  std::string commit_;
  std::set<std::string> names_;
  std::string gguf_;  // "/" and the GGUF file that is the model, if any
  std::vector<HubFile> files_;
  bool planned_ = false;  // the sizes of all files are known
  int64_t total_ = 0, done_ = 0;
};

}  // namespace

Result<std::string> download_model(const HubSettings& settings, const HubModel& model,
                                   const HubNotice& notice, const LoadProgress& progress,
                                   const HubFileProgress& of_file) {
  if (settings.cache.empty()) {
    return invalid_argument("no cache folder for models: set HF_HOME or HOME");
  }
  if (settings.offline) {
    return not_found("{} is not cached in {}, and HF_HUB_OFFLINE is set", model.text(),
                     settings.cache);
  }
  RepositoryLock lock = TRY(RepositoryLock::take(settings, model));
  return Fetch(settings, model, notice, progress, of_file).run();
}

}  // namespace banyan
