#include "tier/cache_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "tier/disk/disk_folder.h"
#include "tier/disk/index_file.h"
#include "tier/record_io.h"

namespace banyan {
namespace {

constexpr size_t kBadShown = 20;
constexpr int64_t kNewFor = 86400;  // s; no writer takes longer for a file

// One class of a disk store's digest: its index, and where its records lie.
struct IndexOf {
  std::unique_ptr<StorageFile> file;
  IndexHeader header;
  int64_t slots = 0;
};

std::optional<IndexOf> open_index(Storage& storage, const std::string& path) {
  auto file = storage.open(path, {});
  if (!file) return std::nullopt;
  std::array<std::byte, kIndexHeaderBytes> bytes;
  iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
  IndexOf index;
  if ((*file)->read({&part, 1}, 0) != std::ssize(bytes)) return std::nullopt;
  if (!decode_index_header(bytes, index.header)) return std::nullopt;
  index.slots = ((*file)->size() - kIndexHeaderBytes) / static_cast<int64_t>(kIndexEntryBytes);
  index.file = std::move(*file);
  return index;
}

std::optional<IndexEntry> read_entry(IndexOf& index, int64_t slot) {
  std::array<std::byte, kIndexEntryBytes> bytes;
  iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
  IndexEntry entry;
  int64_t offset = kIndexHeaderBytes + slot * static_cast<int64_t>(kIndexEntryBytes);
  if (index.file->read({&part, 1}, offset) != std::ssize(bytes)) return std::nullopt;
  if (!decode_index_entry(bytes, entry) || !entry.live || entry.slot != slot) return std::nullopt;
  return entry;
}

// The folders of a file store's digest, named by two digits.
bool is_shelf(const StorageEntry& entry) {
  return entry.folder && entry.name.size() == 2 &&
         entry.name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The class in "<page key>-<class>-<rank>-of-<ranks>"; -1 for other names.
int class_in_name(const std::string& name) {
  bool record = name.size() > 34 && name[32] == '-' && name[34] == '-' && name[33] >= '0' &&
                name[33] < '0' + kUnitClassesMax;
  return record ? name[33] - '0' : -1;
}

void read_meta(Storage& storage, CacheDigest& digest) {
  auto text = storage.read_small(digest.path() + "/meta.json");
  if (!text) return;
  auto json = parse_json(*text, "meta.json");
  if (!json || !json->is_object()) return;
  if (auto model = json->find("model"); model != json->end() && model->is_string()) {
    digest.model = model->get<std::string>();
  }
  auto classes = json->find("classes");
  if (classes == json->end() || !classes->is_array()) return;
  for (const Json& c : *classes) {
    if (!c.is_object() || !c.contains("class") || !c["class"].is_number_integer()) continue;
    CacheClass found{.unit_class = c["class"].get<int>()};
    if (c.contains("units") && c["units"].is_string()) found.units_are = c["units"];
    if (c.contains("record_bytes") && c["record_bytes"].is_number_integer()) {
      found.record_bytes = c["record_bytes"].get<int64_t>();
    }
    digest.classes.push_back(std::move(found));
  }
}

CacheClass& class_of(CacheDigest& digest, int unit_class) {
  auto found = std::ranges::find(digest.classes, unit_class, &CacheClass::unit_class);
  if (found != digest.classes.end()) return *found;
  return digest.classes.emplace_back(CacheClass{.unit_class = unit_class});
}

void count_units(Storage& storage, CacheDigest& digest) {
  for (int c = 0; c < kUnitClassesMax; ++c) {
    auto index = open_index(storage, fmt::format("{}/class{}.idx", digest.path(), c));
    if (!index) continue;
    CacheClass& found = class_of(digest, c);
    found.record_bytes = index->header.shape.bytes();
    for (int64_t slot = 0; slot < index->slots; ++slot) {
      if (read_entry(*index, slot)) ++found.units;
    }
  }
}

void count_files(Storage& storage, CacheDigest& digest) {
  auto shelves = storage.list(digest.path());
  if (!shelves) return;
  for (const StorageEntry& shelf : *shelves) {
    if (!is_shelf(shelf)) continue;
    digest.shared = true;
    auto files = storage.list(digest.path() + "/" + shelf.name);
    if (!files) continue;
    for (const StorageEntry& file : *files) {
      digest.bytes += file.bytes;
      digest.used_s = std::max(digest.used_s, file.modified_s);
      if (int c = class_in_name(file.name); c >= 0) ++class_of(digest, c).units;
    }
  }
}

class Verifier {
 public:
  Verifier(Storage& storage, const std::optional<RecordKey>& key,
           const std::function<bool(const CacheCheck&)>& progress)
      : storage_(storage), progress_(progress), io_(key) {}

  const CacheCheck& check() const { return check_; }

  // False stops the walk.
  bool digest(const CacheDigest& digest) {
    for (int c = 0; c < kUnitClassesMax; ++c) {
      auto index = open_index(storage_, fmt::format("{}/class{}.idx", digest.path(), c));
      if (index && !indexed(digest, c, *index)) return false;
    }
    auto shelves = storage_.list(digest.path());
    for (const StorageEntry& shelf : shelves.value_or(std::vector<StorageEntry>())) {
      if (is_shelf(shelf) && !files(digest.path() + "/" + shelf.name)) return false;
    }
    return true;
  }

 private:
  bool indexed(const CacheDigest& digest, int c, IndexOf& index) {
    std::map<int64_t, std::unique_ptr<StorageFile>> slabs;
    for (int64_t slot = 0; slot < index.slots; ++slot) {
      auto entry = read_entry(index, slot);
      if (!entry) continue;
      int64_t slab = slot / index.header.slots_per_slab;
      std::string path = fmt::format("{}/class{}-{:08}.slab", digest.path(), c, slab);
      if (!slabs.contains(slab)) {
        auto file = storage_.open(path, {.direct = true});
        slabs[slab] = file ? std::move(*file) : nullptr;
      }
      int64_t offset = slot % index.header.slots_per_slab * index.header.shape.bytes();
      TierOutcome outcome = slabs[slab] == nullptr
                                ? TierOutcome::kFailed
                                : record(*slabs[slab], offset, index.header.shape, entry->key);
      // A server may have overwritten the record meanwhile.
      auto now = read_entry(index, slot);
      bool same = now && now->write_number == entry->write_number;
      if (outcome != TierOutcome::kDone && same) bad(path, offset, outcome);
      if (!progress_(check_)) return false;
    }
    return true;
  }

  TierOutcome record(StorageFile& file, int64_t offset, const RecordShape& shape,
                     const PageKey& key) {
    RecordHeader header;
    RecordEnd end = io_.verify(file, offset, header);
    file.drop_cache(offset, shape.bytes());
    ++check_.records;
    check_.bytes += end.bytes;
    if (end.outcome != TierOutcome::kDone) return end.outcome;
    return header.key.page == key ? compare(header, shape) : TierOutcome::kIdentity;
  }

  bool files(const std::string& shelf) {
    auto found = storage_.list(shelf);
    for (const StorageEntry& entry : found.value_or(std::vector<StorageEntry>())) {
      if (class_in_name(entry.name) < 0) continue;
      std::string path = shelf + "/" + entry.name;
      auto file = storage_.open(path, {});
      if (!file) continue;  // removed meanwhile
      RecordHeader header;
      RecordEnd end = io_.verify(**file, 0, header);
      (*file)->drop_cache(0, end.bytes);
      ++check_.records;
      check_.bytes += end.bytes;
      if (end.outcome == TierOutcome::kDone && !entry.name.starts_with(header.key.page.hex())) {
        end.outcome = TierOutcome::kIdentity;
      }
      if (end.outcome != TierOutcome::kDone) bad(path, 0, end.outcome);
      if (!progress_(check_)) return false;
    }
    return true;
  }

  void bad(const std::string& path, int64_t offset, TierOutcome outcome) {
    ++check_.bad;
    if (check_.first_bad.size() >= kBadShown) return;
    check_.first_bad.push_back(fmt::format("{} at {}: {}", path, offset, name(outcome)));
  }

  Storage& storage_;
  const std::function<bool(const CacheCheck&)>& progress_;
  RecordIo io_;
  CacheCheck check_;
};

// A file store's records that were not used for `unused_s`.
void remove_old_files(Storage& storage, const CacheDigest& digest, const CacheLimits& limits,
                      int64_t now_s, CacheRemoved& removed) {
  auto shelves = storage.list(digest.path());
  for (const StorageEntry& shelf : shelves.value_or(std::vector<StorageEntry>())) {
    // Left by a writer that was killed.
    if (shelf.name.starts_with("new-") && shelf.modified_s + kNewFor <= now_s) {
      if (!limits.dry_run) (void)storage.remove(digest.path() + "/" + shelf.name);
    }
    if (!is_shelf(shelf)) continue;
    std::string folder = digest.path() + "/" + shelf.name;
    auto files = storage.list(folder);
    for (const StorageEntry& file : files.value_or(std::vector<StorageEntry>())) {
      if (file.folder || file.modified_s + limits.unused_s > now_s) continue;
      if (!limits.dry_run && storage.remove(folder + "/" + file.name) != 0) continue;
      ++removed.files;
      removed.bytes += file.bytes;
    }
  }
}

bool chosen(const CacheDigest& digest, const CacheLimits& limits) {
  bool kept = !limits.keep.empty() && digest.digest.starts_with(limits.keep);
  return digest.digest.starts_with(limits.only) && !kept;
}

}  // namespace

Result<std::vector<CacheDigest>> list_cache(Storage& storage, const std::string& folder) {
  auto entries = storage.list(folder);
  if (!entries && entries.error() == ENOENT) return not_found("{}: no such folder", folder);
  TRY(check_folder(storage, folder));
  std::vector<CacheDigest> digests;
  for (const std::string& rank : rank_folders(storage, folder)) {
    for (const DigestFolder& found : list_digests(storage, rank)) {
      CacheDigest digest{
          .folder = rank, .digest = found.digest, .bytes = found.bytes, .used_s = found.used_s};
      read_meta(storage, digest);
      count_units(storage, digest);
      count_files(storage, digest);
      digests.push_back(std::move(digest));
    }
  }
  std::ranges::stable_sort(digests, std::greater(), &CacheDigest::used_s);
  return digests;
}

Result<CacheCheck> verify_cache(Storage& storage, const std::string& folder,
                                const std::optional<RecordKey>& key,
                                const std::function<bool(const CacheCheck&)>& progress) {
  std::vector<CacheDigest> digests = TRY(list_cache(storage, folder));
  Verifier verifier(storage, key, progress);
  for (const CacheDigest& digest : digests) {
    if (!verifier.digest(digest)) break;
  }
  return verifier.check();
}

Result<CacheRemoved> shrink_cache(Storage& storage, const std::string& folder,
                                  const CacheLimits& limits, int64_t now_s) {
  std::vector<CacheDigest> digests = TRY(list_cache(storage, folder));
  std::vector<FolderLock> locks;
  std::set<std::string> disks;  // of one process each
  for (const CacheDigest& digest : digests) {
    if (!digest.shared) disks.insert(digest.folder);
  }
  for (const std::string& disk : disks) locks.push_back(TRY(FolderLock::take(disk)));
  int64_t left = 0;
  for (const CacheDigest& digest : digests) left += digest.bytes;
  CacheRemoved removed;
  std::ranges::reverse(digests);
  for (const CacheDigest& digest : digests) {
    if (!chosen(digest, limits)) continue;
    bool old = limits.unused_s < 0 || digest.used_s + limits.unused_s <= now_s;
    bool large = limits.size_bytes < 0 || left > limits.size_bytes;
    if (!old || !large) {
      if (limits.unused_s >= 0 && large) {
        remove_old_files(storage, digest, limits, now_s, removed);
      }
      continue;
    }
    if (!limits.dry_run && storage.remove_folder(digest.path()) != 0) {
      return io_error("{}: could not be removed", digest.path());
    }
    left -= digest.bytes;
    removed.bytes += digest.bytes;
    ++removed.digests;
  }
  return removed;
}

}  // namespace banyan
