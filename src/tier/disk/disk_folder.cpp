#include "tier/disk/disk_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/json_text.h"
#include "tier/record.h"

namespace banyan {
namespace {

constexpr std::string_view kFolderFormat = "banyan cache 1\n";

// Distinguishes a wrong path from a device that is temporarily unavailable.
std::unexpected<Error> folder_error(const std::string& path, int error) {
  bool wrong = error == EACCES || error == EPERM || error == ENOTDIR || error == ENAMETOOLONG ||
               error == ELOOP || error == EINVAL || error == EFBIG;
  return make_error(wrong ? ErrorCode::kInvalidArgument : ErrorCode::kIo,
                    fmt::format("{}: {}", path, std::strerror(error)));
}

}  // namespace

Result<FolderLock> FolderLock::take(const std::string& folder) {
  std::string path = folder + "/LOCK";
  int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return folder_error(path, errno);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return FolderLock(descriptor);
  int error = errno;
  ::close(descriptor);
  if (error != EWOULDBLOCK) return io_error("{}: flock: {}", path, std::strerror(error));
  return exhausted("{}: another process has it open; give each server a folder of its own", folder);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string rank_folder(const std::string& folder, int rank, int ranks) {
  return ranks == 1 ? folder : fmt::format("{}/rank-{}-of-{}", folder, rank, ranks);
}

std::vector<std::string> rank_folders(Storage& storage, const std::string& folder) {
  std::vector<std::string> folders = {folder};
  if (auto entries = storage.list(folder)) {
    for (const StorageEntry& entry : *entries) {
      if (entry.folder && entry.name.starts_with("rank-")) {
        folders.push_back(folder + "/" + entry.name);
      }
    }
  }
  std::ranges::sort(folders);
  return folders;
}

Status check_folder(Storage& storage, const std::string& folder) {
  std::string path = folder + "/FORMAT";
  auto text = storage.read_small(path);
  if (text && *text == kFolderFormat) return {};
  if (text) {
    return unsupported("{} is the folder of another version of Banyan; name a new folder", path);
  }
  if (text.error() == ENOENT) {
    return invalid_argument("{} is not a folder of cached states; name a new or an empty one",
                            folder);
  }
  return folder_error(path, text.error());
}

Status prepare_folder(Storage& storage, const std::string& folder) {
  if (int error = storage.make_folders(folder); error != 0) return folder_error(folder, error);
  auto entries = storage.list(folder);
  if (!entries) return folder_error(folder, entries.error());
  // Files that an interrupted start leaves, and those that file systems create.
  bool empty = std::ranges::all_of(*entries, [](const StorageEntry& entry) {
    return entry.name == "LOCK" || entry.name.starts_with("FORMAT.new") ||
           entry.name == "lost+found" || entry.name.starts_with("rank-");
  });
  if (!empty) return check_folder(storage, folder);
  std::string path = folder + "/FORMAT";
  if (int error = storage.replace(path, kFolderFormat); error != 0) {
    return folder_error(path, error);
  }
  return {};
}

bool is_digest(std::string_view name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == name.npos;
}

std::vector<DigestFolder> list_digests(Storage& storage, const std::string& folder) {
  std::vector<DigestFolder> digests;
  auto entries = storage.list(folder);
  if (!entries) return digests;
  for (const StorageEntry& entry : *entries) {
    if (!entry.folder || !is_digest(entry.name)) continue;
    DigestFolder digest{.digest = entry.name, .used_s = entry.modified_s};
    auto files = storage.list(folder + "/" + entry.name);
    if (files) {
      for (const StorageEntry& file : *files) {
        digest.bytes += file.bytes;
        digest.used_s = std::max(digest.used_s, file.modified_s);
      }
    }
    digests.push_back(std::move(digest));
  }
  std::ranges::sort(digests, {},
                    [](const DigestFolder& d) { return std::tie(d.used_s, d.digest); });
  return digests;
}

std::string describe_states(const TierConfig& config, const TierStates& states) {
  Json classes = Json::array(), parts = Json::object();
  for (int c = 0; c < states.classes.count; ++c) {
    RecordShape shape = record_shape(config, states, c);
    if (shape.payload_bytes == 0) continue;
    classes.push_back({{"class", c},
                       {"units", describe(states.classes[c])},
                       {"unit_bytes", shape.payload_bytes},
                       {"record_bytes", shape.bytes()}});
  }
  for (const auto& [name, value] : states.parts) parts[name] = value;
  return dump_json({{"model", states.model},
                    {"digest", states.digest.value().hex()},
                    {"page_size", states.classes.page_size_tokens},
                    {"rank", config.rank},
                    {"ranks", config.ranks},
                    {"classes", std::move(classes)},
                    {"parts", std::move(parts)}}) +
         "\n";
}

}  // namespace banyan
