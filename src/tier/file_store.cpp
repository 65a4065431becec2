#include "tier/file_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signed.h"
#include "tier/breaker.h"
#include "tier/disk/disk_folder.h"
#include "tier/queued_store.h"
#include "tier/record_io.h"

namespace banyan {
namespace {

constexpr int kFileThreads = 4;  // a network's latency, not a device's queue
constexpr int kFileWriters = 2;
constexpr int64_t kFileTouchedAfter = 3600;  // s; a file's time is not updated more often
constexpr size_t kFileTouchesMax = 4096;

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class FileStore final : public QueuedStore {
 public:
  FileStore(const TierConfig& config, const TierStates& states, Storage& storage)
      : QueuedStore(kFileThreads, kFileWriters, config.write_share),
        config_(config),
        states_(states),
        storage_(storage),
        own_(config.directory + "/" + states.digest.value().hex()),
        breaker_("the file store") {
    for (int i = 0; i < kFileThreads; ++i) io_.emplace_back(config.key);
    std::array<char, 256> host = {};
    (void)::gethostname(host.data(), host.size() - 1);
    // Containers may share a host name and a process number.
    std::random_device random;
    writer_ = fmt::format("{}-{}-{:08x}{:08x}", host.data(), ::getpid(), random(), random());
  }
  ~FileStore() override { stop(); }

  Status open();

  std::string_view name() const override { return "file"; }
  void touch(std::span<const TierKey> keys) override;
  void sync() override;
  void clear() override;
  TierStats stats() const override;

 private:
  Ended find_now(int worker, std::span<const TierKey> keys, std::vector<uint8_t>& found) override;
  Ended read_now(int worker, const TierJob& job) override;
  Ended write_now(int worker, const TierJob& job) override;
  Clock::time_point idle(int worker) override;

  std::string folder_of(const PageKey& page) const;
  std::string path_of(const TierKey& key) const;
  RecordShape shape_of(const TierKey& key) const;
  bool has_room();
  int write_file(int worker, const TierJob& job, const std::string& path, int64_t& bytes);
  void count(int error);

  const TierConfig config_;
  const TierStates states_;
  Storage& storage_;
  const std::string own_;
  std::string writer_;        // part of the names of incomplete files
  std::vector<RecordIo> io_;  // one for each thread
  std::atomic<uint64_t> written_ = 0;
  Breaker breaker_;

  std::mutex mutex_;
  std::vector<TierKey> touches_;
};

Status FileStore::open() {
  Status prepared = prepare_folder(storage_, config_.directory);
  if (!prepared && prepared.error().code != ErrorCode::kIo) return prepared;
  int error = storage_.make_folders(own_);
  if (error == 0 && !storage_.look(own_ + "/meta.json")) {
    error = storage_.replace(own_ + "/meta.json", describe_states(config_, states_));
  }
  if (error != 0) spdlog::warn("the file store {}: {}", own_, std::strerror(error));
  start();
  return {};
}

std::string FileStore::folder_of(const PageKey& page) const {
  return fmt::format("{}/{:02x}", own_, page.bytes[0]);
}

std::string FileStore::path_of(const TierKey& key) const {
  return fmt::format("{}/{}-{}-{}-of-{}", folder_of(key.page), key.page.hex(), key.unit_class,
                     config_.rank, config_.ranks);
}

RecordShape FileStore::shape_of(const TierKey& key) const {
  return record_shape(config_, states_, key.unit_class);
}

void FileStore::count(int error) {
  if (error == 0) {
    breaker_.succeeded();
  } else {
    breaker_.failed(fmt::format("{}: {}", own_, std::strerror(error)));
  }
}

FileStore::Ended FileStore::find_now(int, std::span<const TierKey> keys,
                                     std::vector<uint8_t>& found) {
  found.assign(keys.size(), 0);
  for (size_t i = 0; i < keys.size() && breaker_.closed(); ++i) {
    auto entry = storage_.look(path_of(keys[i]));
    found[i] = entry.has_value();
    if (!entry && entry.error() != ENOENT && entry.error() != ENOTDIR) count(entry.error());
  }
  return {};
}

FileStore::Ended FileStore::read_now(int worker, const TierJob& job) {
  if (!breaker_.closed()) return {TierOutcome::kFailed};
  std::string path = path_of(job.record.key);
  auto file = storage_.open(path, {});
  if (!file) {
    bool absent = file.error() == ENOENT || file.error() == ENOTDIR;
    count(absent ? 0 : file.error());
    return {absent ? TierOutcome::kAbsent : TierOutcome::kFailed};
  }
  RecordEnd end = at(io_, worker).read(**file, 0, shape_of(job.record.key), job.record, job.pieces);
  // ESTALE: another machine removed the file.
  if (end.error == ESTALE) end = {.outcome = TierOutcome::kAbsent, .bytes = end.bytes};
  count(end.error);
  if (end.outcome == TierOutcome::kChecksum || end.outcome == TierOutcome::kIdentity) {
    (void)storage_.remove(path);
  }
  return {end.outcome, end.bytes};
}

bool FileStore::has_room() {
  auto space = storage_.space(config_.directory);
  if (!space) return true;  // then the write itself will fail
  int64_t keep = config_.min_free_bytes;
  if (keep < 0) keep = std::min<int64_t>(space->total / 20, 10'000'000'000);
  return space->free >= keep;
}

int FileStore::write_file(int worker, const TierJob& job, const std::string& path, int64_t& bytes) {
  std::string temporary = fmt::format("{}/new-{}-{}", own_, writer_, written_++);
  auto file = storage_.open(temporary, {.write = true, .create = true, .exclusive = true});
  if (!file) return file.error();
  RecordEnd end =
      at(io_, worker).write(**file, 0, shape_of(job.record.key), job.record, job.pieces, written_);
  bytes = end.bytes;
  int error = end.error;
  // NFS reports failed writes here.
  if (error == 0) error = (*file)->sync();
  file->reset();
  if (error == 0) error = storage_.rename(temporary, path);
  if (error != 0) (void)storage_.remove(temporary);
  return error;
}

FileStore::Ended FileStore::write_now(int worker, const TierJob& job) {
  if (!breaker_.closed() || !has_room()) return {TierOutcome::kRefused};
  std::string path = path_of(job.record.key);
  if (storage_.look(path)) return {};
  int64_t bytes = 0;
  int error = write_file(worker, job, path, bytes);
  if (error == ENOENT) {  // its folder does not exist yet, or was removed
    error = storage_.make_folders(folder_of(job.record.key.page));
    if (error == 0) error = write_file(worker, job, path, bytes);
  }
  count(error);
  return {error == 0 ? TierOutcome::kDone : TierOutcome::kFailed, bytes};
}

void FileStore::touch(std::span<const TierKey> keys) {
  {
    std::lock_guard lock(mutex_);
    size_t room = kFileTouchesMax - std::min(kFileTouchesMax, touches_.size());
    std::ranges::copy(keys.last(std::min(room, keys.size())), std::back_inserter(touches_));
  }
  idle_by(Clock::now());
}

// The time that `gc` goes by.
FileStore::Clock::time_point FileStore::idle(int) {
  std::vector<TierKey> touches;
  {
    std::lock_guard lock(mutex_);
    touches.swap(touches_);
  }
  int64_t now = unix_seconds();
  for (const TierKey& key : touches) {
    std::string path = path_of(key);
    auto entry = storage_.look(path);
    if (!entry || entry->modified_s + kFileTouchedAfter > now) continue;
    if (int error = storage_.set_modified(path, now); error != 0) count(error);
  }
  return Clock::now() + std::chrono::hours(1);
}

// Files are synced when they are written; this syncs their names.
void FileStore::sync() {
  drain();
  auto folders = storage_.list(own_);
  if (!folders) return;
  for (const StorageEntry& folder : *folders) {
    if (folder.folder) count(storage_.sync_folder(own_ + "/" + folder.name));
  }
}

void FileStore::clear() {
  WritesHeld held(*this);
  auto folders = storage_.list(own_);
  if (!folders) return;
  for (const StorageEntry& folder : *folders) {
    if (folder.folder) (void)storage_.remove_folder(own_ + "/" + folder.name);
  }
}

TierStats FileStore::stats() const {
  std::string trouble = breaker_.trouble();
  return {.health = trouble.empty() ? TierHealth::kOn : TierHealth::kOff, .trouble = trouble};
}

}  // namespace

Result<std::unique_ptr<TierStore>> open_file_store(const TierConfig& config,
                                                   const TierStates& states, Storage& storage) {
  if (config.directory.empty()) return invalid_argument("a file store needs a folder");
  auto store = std::make_unique<FileStore>(config, states, storage);
  TRY(store->open());
  return store;
}

Result<std::unique_ptr<TierStore>> make_file_store(const TierConfig& config,
                                                   const TierStates& states) {
  return open_file_store(config, states, system_storage());
}

}  // namespace banyan
