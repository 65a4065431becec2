#include "tier/disk/disk_store.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signed.h"
#include "tier/disk/disk_folder.h"
#include "tier/disk/room.h"
#include "tier/disk/slab_class.h"
#include "tier/disk/write_budget.h"
#include "tier/queued_store.h"
#include "tier/record_io.h"

namespace banyan {
namespace {

constexpr int kDiskThreads = 4;  // more, or io_uring, reads records of some 100 kB no faster
constexpr int64_t kSyncBytes = 64 << 20;
constexpr auto kSyncAfter = std::chrono::seconds(1);
constexpr auto kTouchedAfter = std::chrono::seconds(30);  // until uses are written to the index
constexpr auto kGrowAgainAfter = std::chrono::seconds(60);
constexpr int kHeadersAtOnce = 64;  // read between two jobs
constexpr int kReadErrorsMax = 5;   // consecutive ones, then the device is given up
constexpr auto kReadAgainAfter = std::chrono::seconds(60);  // until a failed read is tried again
constexpr int64_t kFreeBytesMin = 10'000'000'000;

uint32_t seconds_now() {
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

class DiskStore final : public QueuedStore {
 public:
  DiskStore(const TierConfig& config, const TierStates& states, Storage& storage);
  ~DiskStore() override;

  Status open();
  void turn(TierHealth health, const std::string& trouble);

  std::string_view name() const override { return "disk"; }
  void find(const TierQuestion& question) override;
  void touch(std::span<const TierKey> keys) override;
  void sync() override;
  void clear() override;
  TierStats stats() const override;

 private:
  using Class = std::optional<SlabClass>;

  Ended find_now(int worker, std::span<const TierKey> keys, std::vector<uint8_t>& found) override;
  Ended read_now(int worker, const TierJob& job) override;
  Ended write_now(int worker, const TierJob& job) override;
  Clock::time_point idle(int worker) override;

  Status open_classes();
  Class& files_of(const TierKey& key);
  bool writable() const;
  void after_read(const TierJob& job, const RecordEnd& end, uint32_t slot, uint64_t epoch);
  Ended write_record(int worker, const TierJob& job, SlabClass& files, uint32_t slot);
  std::optional<uint32_t> take_slot(SlabClass& files);
  std::optional<uint32_t> evict(SlabClass& files);
  void grow(SlabClass& files);
  bool make_room(int64_t bytes);
  int64_t own_bytes() const;
  void write_entry(SlabClass& files, const IndexEntry& entry);
  void note_written(const SlabClass::Place& place, int64_t bytes);
  void sync_files();
  void write_touched();
  void read_headers(SlabClass& files, RecordIo& io);
  int read_unknown(SlabClass& files, RecordIo& io, uint32_t slot);
  void count_read(int error);
  Clock::time_point scan(RecordIo& io);
  void failed_write(int error);

  const TierConfig config_;
  const TierStates states_;
  Storage& storage_;
  const std::string folder_;  // of the rank
  const std::string own_;     // of the digest
  bool opened_ = false;
  std::optional<FolderLock> lock_;
  std::vector<RecordIo> io_;  // one for each thread
  std::optional<WriteBudget> budget_;

  mutable std::mutex mutex_;  // guards what follows
  std::array<Class, kUnitClassesMax> classes_;
  uint64_t epoch_ = 0;  // counts clear()
  TierHealth health_ = TierHealth::kOn;
  std::string trouble_;
  int64_t evicted_ = 0;
  int read_errors_ = 0;
  bool touched_ = false;

  // Used by the one thread that writes or is idle, and by those that stop writes.
  std::vector<DigestFolder> others_;
  struct Written {
    SlabClass::Place place;
    int64_t bytes = 0;
  };
  std::vector<Written> unsynced_;
  int64_t unsynced_bytes_ = 0;
  Clock::time_point sync_due_ = Clock::time_point::max();
  Clock::time_point touched_due_ = Clock::time_point::max();
  Clock::time_point grow_next_ = {};
  std::vector<std::pair<int64_t, uint32_t>> scanned_;     // ends and slots of the class being read
  std::array<uint32_t, kUnitClassesMax> scan_next_ = {};  // the slot whose header is read next
  size_t scan_class_ = 0;
  Clock::time_point scan_due_ = {};
};

DiskStore::DiskStore(const TierConfig& config, const TierStates& states, Storage& storage)
    : QueuedStore(kDiskThreads, 1, config.write_share),
      config_(config),
      states_(states),
      storage_(storage),
      folder_(rank_folder(config.directory, config.rank, config.ranks)),
      own_(folder_ + "/" + states.digest.value().hex()) {
  for (int i = 0; i < kDiskThreads; ++i) io_.emplace_back(config.key);
}

DiskStore::~DiskStore() {
  stop();
  if (!opened_ || health_ == TierHealth::kOff) return;
  write_touched();
  sync_files();
  (void)storage_.set_modified(own_ + "/meta.json", seconds_now());
}

// If a restart may fix the error, serving begins with the store off.
Status DiskStore::open() {
  Status status = [&]() -> Status {
    TRY(prepare_folder(storage_, config_.directory));
    if (folder_ != config_.directory) TRY(prepare_folder(storage_, folder_));
    lock_ = TRY(FolderLock::take(folder_));
    return open_classes();
  }();
  if (!status && status.error().code != ErrorCode::kIo) return status;
  if (!status) turn(TierHealth::kOff, status.error().message);
  opened_ = true;
  start();
  return {};
}

Status DiskStore::open_classes() {
  if (int error = storage_.make_folders(own_); error != 0) {
    return io_error("{}: {}", own_, std::strerror(error));
  }
  std::string meta = own_ + "/meta.json";
  if (int error = storage_.replace(meta, describe_states(config_, states_)); error != 0) {
    return io_error("{}: {}", meta, std::strerror(error));
  }
  budget_.emplace(storage_, folder_ + "/WRITTEN", config_.write_budget_bytes_per_day);
  PerClass<int64_t> shares = divide_room(config_, states_);
  for (int c = 0; c < states_.classes.count; ++c) {
    RecordShape shape = record_shape(config_, states_, c);
    if (shape.payload_bytes == 0) continue;
    int64_t share = at(shares, c);
    if (SlabClass::slots_max(shape, share) < 1) {
      return invalid_argument(
          "a store of {} bytes has {} for {}, but one of these takes {}: give it a larger size",
          config_.size_bytes, share, describe(states_.classes[c]), shape.bytes());
    }
    auto files = SlabClass::open(storage_, own_, shape, share, config_.slab_bytes);
    if (!files) return io_error("{}: {}", own_, std::strerror(files.error()));
    at(classes_, c) = *std::move(files);
  }
  others_ = list_digests(storage_, folder_);
  std::erase_if(others_, [&](const DigestFolder& digest) {
    // A file store's folders look alike, but its records are not ours to remove.
    auto files = storage_.list(folder_ + "/" + digest.digest);
    bool has_index = files && std::ranges::any_of(*files, [](const StorageEntry& file) {
                       return file.name.ends_with(".idx");
                     });
    return !has_index || digest.digest == states_.digest.value().hex();
  });
  return {};
}

void DiskStore::turn(TierHealth health, const std::string& trouble) {
  {
    std::lock_guard lock(mutex_);
    if (health <= health_) return;  // it only gets worse
    health_ = health;
    trouble_ = trouble;
  }
  spdlog::warn("the disk store is {}: {}", banyan::name(health), trouble);
}

DiskStore::Class& DiskStore::files_of(const TierKey& key) {
  CHECK(key.unit_class >= 0 && key.unit_class < kUnitClassesMax, "class {}", key.unit_class);
  return at(classes_, key.unit_class);
}

void DiskStore::find(const TierQuestion& question) {
  TierDone done{.id = question.id, .operation = TierOperation::kFind, .work = {{{.done = true}}}};
  (void)find_now(0, question.keys, done.found);
  finish(std::move(done));
}

DiskStore::Ended DiskStore::find_now(int, std::span<const TierKey> keys,
                                     std::vector<uint8_t>& found) {
  std::lock_guard lock(mutex_);
  found.assign(keys.size(), 0);
  if (health_ == TierHealth::kOff) return {};
  for (size_t i = 0; i < keys.size(); ++i) {
    Class& files = files_of(keys[i]);
    found[i] = files && files->table.find(keys[i].page);
  }
  return {};
}

DiskStore::Ended DiskStore::read_now(int worker, const TierJob& job) {
  SlabClass::Place place;
  RecordShape shape;
  uint32_t slot = 0;
  uint64_t epoch = 0;
  {
    std::lock_guard lock(mutex_);
    if (health_ == TierHealth::kOff) return {TierOutcome::kFailed};
    Class& files = files_of(job.record.key);
    auto found = files ? files->table.find(job.record.key.page) : std::nullopt;
    if (!found) return {TierOutcome::kAbsent};
    slot = *found;
    files->table.pin(slot);
    place = files->place(slot);
    shape = files->shape();
    epoch = epoch_;
  }
  RecordEnd end = at(io_, worker).read(*place.file, place.offset, shape, job.record, job.pieces);
  place.file->drop_cache(place.offset, shape.bytes());
  after_read(job, end, slot, epoch);
  return {end.outcome, end.bytes};
}

// A record that is not what it should be is dropped, so that it is written again. A slot that could
// not be read is set aside: its bytes may be intact, and it is read again later.
void DiskStore::after_read(const TierJob& job, const RecordEnd& end, uint32_t slot,
                           uint64_t epoch) {
  bool given_up = false, set_aside = false;
  SlabClass* files = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (epoch == epoch_) {
      files = &*files_of(job.record.key);
      if (end.outcome != TierOutcome::kDone && files->table.find(job.record.key.page) == slot) {
        set_aside = end.outcome == TierOutcome::kFailed;
        given_up = !set_aside;
        if (set_aside) files->table.set_aside(slot);
        if (given_up) files->table.give_up(slot);
      }
      files->table.unpin(slot);
    }
  }
  if (given_up) write_entry(*files, {.slot = slot});
  if (set_aside) idle_by(Clock::now() + kReadAgainAfter);
  count_read(end.outcome == TierOutcome::kFailed ? end.error : 0);
}

// Records the outcome of a read: 0 or errno. A device that cannot be read is given up.
void DiskStore::count_read(int error) {
  {
    std::lock_guard lock(mutex_);
    read_errors_ = error != 0 ? read_errors_ + 1 : 0;
    if (read_errors_ < kReadErrorsMax) return;
  }
  turn(TierHealth::kOff, fmt::format("reading {}: {}", own_, std::strerror(error)));
}

bool DiskStore::writable() const {
  std::lock_guard lock(mutex_);
  return health_ == TierHealth::kOn;
}

DiskStore::Ended DiskStore::write_now(int worker, const TierJob& job) {
  Class& files = files_of(job.record.key);
  if (!files || !writable()) return {TierOutcome::kRefused};
  {
    std::lock_guard lock(mutex_);
    if (auto slot = files->table.find(job.record.key.page)) {
      files->table.touch(*slot, seconds_now());
      return {};
    }
  }
  if (!budget_->take(files->slot_bytes(), seconds_now())) return {TierOutcome::kRefused};
  auto slot = take_slot(*files);
  if (!slot) {
    budget_->give_back(files->slot_bytes());
    return {TierOutcome::kRefused};
  }
  return write_record(worker, job, *files, *slot);
}

DiskStore::Ended DiskStore::write_record(int worker, const TierJob& job, SlabClass& files,
                                         uint32_t slot) {
  IndexEntry entry{.key = job.record.key.page,
                   .parent = job.record.parent,
                   .end = job.record.end,
                   .slot = slot,
                   .used_s = seconds_now(),
                   .live = true};
  SlabClass::Place place;
  {
    std::lock_guard lock(mutex_);
    entry.write_number = files.table.take_write_number();
    place = files.place(slot);
  }
  RecordEnd end = at(io_, worker)
                      .write(*place.file, place.offset, files.shape(), job.record, job.pieces,
                             entry.write_number);
  {
    std::lock_guard lock(mutex_);
    if (end.outcome == TierOutcome::kDone) {
      (void)files.table.put(entry);
    } else {
      files.table.give_up(slot);
    }
  }
  if (end.outcome != TierOutcome::kDone) {
    failed_write(end.error);
    return {TierOutcome::kFailed, end.bytes};
  }
  write_entry(files, entry);
  note_written(place, files.slot_bytes());
  return {TierOutcome::kDone, end.bytes};
}

void DiskStore::failed_write(int error) {
  turn(TierHealth::kReadOnly, fmt::format("writing {}: {}", own_, std::strerror(error)));
}

// Writes entries of the index. A reader may run concurrently; at worst a hint is lost.
void DiskStore::write_entry(SlabClass& files, const IndexEntry& entry) {
  if (int error = files.write_entry(entry); error != 0) failed_write(error);
}

std::optional<uint32_t> DiskStore::take_slot(SlabClass& files) {
  std::unique_lock lock(mutex_);
  if (auto slot = files.table.take_free()) return slot;
  bool full = files.full();
  lock.unlock();
  if (!full) grow(files);
  lock.lock();
  if (auto slot = files.table.take_free()) return slot;
  lock.unlock();
  return evict(files);
}

// Units that are useless without an evicted page are dropped with it.
std::optional<uint32_t> DiskStore::evict(SlabClass& files) {
  std::vector<std::pair<SlabClass*, uint32_t>> gone;
  std::optional<uint32_t> taken;
  {
    std::lock_guard lock(mutex_);
    auto oldest = files.table.oldest();
    if (!oldest) return std::nullopt;
    PageKey page = files.table.entry(*oldest).key;
    gone.emplace_back(&files, *oldest);
    for (Class& other : classes_) {
      if (!other || files.shape().unit_class != kPathClass || &*other == &files) continue;
      if (auto slot = other->table.find(page)) gone.emplace_back(&*other, *slot);
    }
    for (auto [of, slot] : gone) of->table.give_up(slot);
    evicted_ += std::ssize(gone);
    taken = files.table.take_free();
  }
  for (auto [of, slot] : gone) write_entry(*of, {.slot = slot});
  return taken;
}

int64_t DiskStore::own_bytes() const {
  int64_t bytes = 0;
  for (const Class& files : classes_) {
    if (files) bytes += files->bytes();
  }
  return bytes;
}

// Removes other digests' folders until this many bytes fit, least recently used first.
bool DiskStore::make_room(int64_t bytes) {
  while (true) {
    int64_t used = own_bytes();
    for (const DigestFolder& other : others_) used += other.bytes;
    auto space = storage_.space(folder_);
    if (!space) return false;
    int64_t keep = config_.min_free_bytes;
    if (keep < 0) keep = std::min(space->total / 20, kFreeBytesMin);
    if (used + bytes <= config_.size_bytes && space->free - bytes >= keep) return true;
    if (others_.empty()) return false;
    (void)storage_.remove_folder(folder_ + "/" + others_.front().digest);
    others_.erase(others_.begin());
  }
}

void DiskStore::grow(SlabClass& files) {
  if (Clock::now() < grow_next_) return;
  std::unique_ptr<StorageFile> slab;
  int error = make_room(files.slab_bytes()) ? files.make_slab(slab) : ENOSPC;
  if (error == 0) {
    std::lock_guard lock(mutex_);
    files.add_slab(std::move(slab));
    return;
  }
  grow_next_ = Clock::now() + kGrowAgainAfter;
  // When the disk is full, existing slots can still be overwritten.
  if (error != ENOSPC && error != EDQUOT) failed_write(error);
}

void DiskStore::note_written(const SlabClass::Place& place, int64_t bytes) {
  if (unsynced_.empty()) {
    sync_due_ = Clock::now() + kSyncAfter;
    idle_by(sync_due_);
  }
  unsynced_.push_back({place, bytes});
  unsynced_bytes_ += bytes;
  if (unsynced_bytes_ >= kSyncBytes) sync_files();
}

void DiskStore::sync_files() {
  sync_due_ = Clock::time_point::max();
  if (!unsynced_.empty()) {
    std::set<StorageFile*> files;
    for (const Written& written : unsynced_) files.insert(written.place.file.get());
    int error = 0;
    for (StorageFile* file : files) error = std::max(error, file->sync());
    for (Class& of : classes_) {
      if (of) error = std::max(error, of->sync_index());
    }
    error = std::max(error, budget_->save());
    for (const Written& written : unsynced_) {
      written.place.file->drop_cache(written.place.offset, written.bytes);
    }
    unsynced_.clear();
    unsynced_bytes_ = 0;
    if (error != 0) failed_write(error);
  }
  auto meta = storage_.look(own_ + "/meta.json");
  if (!meta && meta.error() == ENOENT) turn(TierHealth::kOff, own_ + ": the folder was removed");
}

void DiskStore::write_touched() {
  touched_due_ = Clock::time_point::max();
  std::vector<std::pair<SlabClass*, IndexEntry>> entries;
  {
    std::lock_guard lock(mutex_);
    touched_ = false;
    for (Class& files : classes_) {
      if (!files) continue;
      for (uint32_t slot : files->table.take_touched()) {
        entries.emplace_back(&*files, files->table.entry(slot));
      }
    }
  }
  for (const auto& [files, entry] : entries) write_entry(*files, entry);
  (void)storage_.set_modified(own_ + "/meta.json", seconds_now());
}

// Reads the header of a slot that the index does not know. Returns 0 or errno; on an error the slot
// stays unknown.
int DiskStore::read_unknown(SlabClass& files, RecordIo& io, uint32_t slot) {
  SlabClass::Place place;
  {
    std::lock_guard lock(mutex_);
    place = files.place(slot);
  }
  RecordHeader header;
  RecordEnd end = io.read_header(*place.file, place.offset, files.shape().header_bytes(), header);
  if (end.outcome == TierOutcome::kFailed) return end.error;
  if (end.outcome == TierOutcome::kDone) end.outcome = compare(header, files.shape());
  IndexEntry entry{.slot = slot};
  {
    std::lock_guard lock(mutex_);
    if (end.outcome != TierOutcome::kDone) {
      files.table.give_up(slot);
    } else {
      entry = {.key = header.key.page,
               .parent = header.parent,
               .end = header.end,
               .slot = slot,
               .used_s = seconds_now(),
               .write_number = header.write_number,
               .live = true};
      if (files.table.put(entry)) {
        scanned_.emplace_back(header.end, slot);
      } else {
        entry = {.slot = slot};
      }
    }
  }
  write_entry(files, entry);
  return 0;
}

// Reads some of the slots that the index does not know.
void DiskStore::read_headers(SlabClass& files, RecordIo& io) {
  uint32_t& next = at(scan_next_, files.shape().unit_class);
  for (int count = 0; count < kHeadersAtOnce; ++count) {
    std::optional<uint32_t> slot;
    {
      std::lock_guard lock(mutex_);
      if (health_ == TierHealth::kOff) return;
      slot = files.table.next_unknown(next);
    }
    if (!slot) {
      next = 0;
      break;
    }
    next = *slot + 1;
    count_read(read_unknown(files, io, *slot));
  }
  if (next > 0) return;
  std::lock_guard lock(mutex_);
  // A page is evicted before its ancestors.
  std::ranges::sort(scanned_, std::greater());
  for (auto [end, slot] : scanned_) files.table.touch(slot, seconds_now());
  scanned_.clear();
}

// When to continue reading slots that the index does not know.
DiskStore::Clock::time_point DiskStore::scan(RecordIo& io) {
  Clock::time_point now = Clock::now();
  if (now < scan_due_) return scan_due_;
  for (; scan_class_ < classes_.size(); ++scan_class_) {
    Class& files = classes_[scan_class_];
    if (!files) continue;
    {
      std::lock_guard lock(mutex_);
      if (files->table.unknown() == 0) continue;
    }
    read_headers(*files, io);
    if (scan_next_[scan_class_] > 0) return now;
  }
  scan_class_ = 0;
  scan_due_ = now + kReadAgainAfter;
  std::lock_guard lock(mutex_);
  bool left = std::ranges::any_of(
      classes_, [](const Class& files) { return files && files->table.unknown() > 0; });
  return left ? scan_due_ : Clock::time_point::max();
}

DiskStore::Clock::time_point DiskStore::idle(int worker) {
  Clock::time_point now = Clock::now();
  {
    std::lock_guard lock(mutex_);
    if (health_ == TierHealth::kOff) return now + std::chrono::hours(1);
    if (touched_ && touched_due_ == Clock::time_point::max()) touched_due_ = now + kTouchedAfter;
  }
  if (now >= sync_due_) sync_files();
  if (now >= touched_due_) write_touched();
  Clock::time_point scan_next = scan(at(io_, worker));
  return std::min({sync_due_, touched_due_, scan_next, now + std::chrono::hours(1)});
}

void DiskStore::touch(std::span<const TierKey> keys) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    uint32_t now = seconds_now();
    for (const TierKey& key : keys) {
      Class& files = files_of(key);
      if (!files) continue;
      if (auto slot = files->table.find(key.page)) files->table.touch(*slot, now);
    }
    first = !std::exchange(touched_, true);
  }
  if (first) idle_by(Clock::now());
}

void DiskStore::sync() {
  drain();
  WritesHeld held(*this);
  write_touched();
  sync_files();
}

void DiskStore::clear() {
  WritesHeld held(*this);
  std::lock_guard lock(mutex_);
  ++epoch_;
  unsynced_.clear();
  unsynced_bytes_ = 0;
  scanned_.clear();
  scan_next_ = {};
  scan_class_ = 0;
  for (Class& files : classes_) {
    if (!files) continue;
    if (int error = files->clear(); error != 0) {
      health_ = TierHealth::kOff;
      trouble_ = fmt::format("clearing {}: {}", own_, std::strerror(error));
    }
  }
}

TierStats DiskStore::stats() const {
  std::lock_guard lock(mutex_);
  TierStats stats{.health = health_,
                  .trouble = trouble_,
                  .capacity_bytes = config_.size_bytes,
                  .evicted_units = evicted_};
  for (size_t c = 0; c < classes_.size(); ++c) {
    if (!classes_[c]) continue;
    stats.units[c] = classes_[c]->table.live();
    stats.bytes[c] = stats.units[c] * classes_[c]->slot_bytes();
  }
  return stats;
}

}  // namespace

Result<std::unique_ptr<TierStore>> open_disk_store(const TierConfig& config,
                                                   const TierStates& states, Storage& storage) {
  if (config.directory.empty()) return invalid_argument("a disk store needs a folder");
  if (config.size_bytes <= 0) {
    return invalid_argument("the size of the disk store is {} bytes; it must be above 0",
                            config.size_bytes);
  }
  TRY(check_division(config, states));
  auto store = std::make_unique<DiskStore>(config, states, storage);
  TRY(store->open());
  return store;
}

Result<std::unique_ptr<TierStore>> make_disk_store(const TierConfig& config,
                                                   const TierStates& states) {
  return open_disk_store(config, states, system_storage());
}

}  // namespace banyan
