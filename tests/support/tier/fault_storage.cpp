#include "support/tier/fault_storage.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>

namespace banyan::test {
namespace {

constexpr size_t kSector = 512;

int64_t total_bytes(std::span<const iovec> parts) {
  int64_t bytes = 0;
  for (const iovec& part : parts) bytes += static_cast<int64_t>(part.iov_len);
  return bytes;
}

// The first `bytes` of them.
std::vector<iovec> first_bytes(std::span<const iovec> parts, int64_t bytes) {
  std::vector<iovec> kept;
  for (iovec part : parts) {
    part.iov_len = std::min(part.iov_len, static_cast<size_t>(bytes));
    bytes -= static_cast<int64_t>(part.iov_len);
    if (part.iov_len > 0) kept.push_back(part);
  }
  return kept;
}

class FaultFile final : public StorageFile {
 public:
  FaultFile(FaultStorage& storage, std::string path, std::unique_ptr<StorageFile> file)
      : storage_(storage), path_(std::move(path)), file_(std::move(file)) {}

  int64_t read(std::span<const iovec> to, int64_t offset) override {
    FaultPlan plan = storage_.plan();
    delay(plan);
    if (storage_.chance(plan.read_errors)) return -EIO;
    std::vector<iovec> parts(to.begin(), to.end());
    if (storage_.chance(plan.short_moves)) parts = shortened(to);
    int64_t count = file_->read(parts, offset);
    if (count > 0 && storage_.chance(plan.flipped_reads)) flip(parts, count);
    return count;
  }

  int64_t write(std::span<const iovec> from, int64_t offset) override {
    FaultPlan plan = storage_.plan();
    delay(plan);
    if (plan.every_change != 0) return -plan.every_change;
    if (plan.off) return total_bytes(from);
    if (plan.full) return -ENOSPC;
    if (storage_.chance(plan.write_errors)) return -EIO;
    std::vector<iovec> parts(from.begin(), from.end());
    bool ends = storage_.ends_now(), torn = storage_.chance(plan.torn_writes);
    if (ends || torn || storage_.chance(plan.short_moves)) parts = shortened(from);
    keep_undo(total_bytes(parts), offset);
    int64_t count = flipped_write(parts, offset, storage_.chance(plan.flipped_writes));
    if (ends) std::raise(SIGKILL);
    return torn && count > 0 ? total_bytes(from) : count;
  }

  int sync() override {
    if (int error = storage_.plan().every_change; error != 0) return error;
    if (storage_.plan().off) return 0;
    int error = file_->sync();
    if (error == 0) storage_.forget(path_);
    return error;
  }
  int allocate(int64_t bytes) override {
    if (int error = storage_.plan().every_change; error != 0) return error;
    if (storage_.plan().off) return 0;
    if (storage_.ends_now()) std::raise(SIGKILL);
    int64_t more = bytes - std::max<int64_t>(0, file_->size());
    if (int error = storage_.take_room(std::max<int64_t>(0, more)); error != 0) return error;
    return file_->allocate(bytes);
  }
  int truncate(int64_t bytes) override {
    if (int error = storage_.plan().every_change; error != 0) return error;
    if (storage_.plan().off) return 0;
    if (storage_.ends_now()) std::raise(SIGKILL);
    return file_->truncate(bytes);
  }
  int64_t size() override { return file_->size(); }
  void drop_cache(int64_t offset, int64_t bytes) override { file_->drop_cache(offset, bytes); }
  bool direct() const override { return file_->direct(); }

 private:
  void delay(const FaultPlan& plan) {
    if (!storage_.chance(plan.delays)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + storage_.number(5)));
  }

  // At least one piece, at most all but one where there are several.
  std::vector<iovec> shortened(std::span<const iovec> parts) {
    int64_t unit = file_->direct() ? static_cast<int64_t>(kSector) : 1;
    int64_t units = total_bytes(parts) / unit;
    if (units < 2) return {parts.begin(), parts.end()};
    auto below = static_cast<uint64_t>(units - 1);
    return first_bytes(parts, unit * (1 + static_cast<int64_t>(storage_.number(below))));
  }

  void flip(std::span<const iovec> parts, int64_t count) {
    auto at = static_cast<int64_t>(storage_.number(static_cast<uint64_t>(count)));
    for (const iovec& part : parts) {
      if (at < static_cast<int64_t>(part.iov_len)) {
        static_cast<uint8_t*>(part.iov_base)[at] ^= static_cast<uint8_t>(1 << storage_.number(8));
        return;
      }
      at -= static_cast<int64_t>(part.iov_len);
    }
  }

  // The caller's memory stays as it is.
  int64_t flipped_write(std::span<const iovec> parts, int64_t offset, bool flipped) {
    if (!flipped) return file_->write(parts, offset);
    auto bytes = static_cast<size_t>(total_bytes(parts));
    std::unique_ptr<uint8_t, void (*)(void*)> copy(
        static_cast<uint8_t*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)), std::free);
    uint8_t* to = copy.get();
    for (const iovec& part : parts) {
      to = std::copy_n(static_cast<const uint8_t*>(part.iov_base), part.iov_len, to);
    }
    iovec whole{.iov_base = copy.get(), .iov_len = bytes};
    flip({&whole, 1}, static_cast<int64_t>(bytes));
    return file_->write({&whole, 1}, offset);
  }

  // Through a file of its own, which needs no alignment.
  void keep_undo(int64_t bytes, int64_t offset) {
    auto file = system_storage().open(path_, {});
    if (!file) return;
    FaultStorage::Undo undo{.offset = offset,
                            .before = std::vector<std::byte>(static_cast<size_t>(bytes))};
    iovec part{.iov_base = undo.before.data(), .iov_len = undo.before.size()};
    int64_t count = (*file)->read({&part, 1}, offset);
    undo.before.resize(static_cast<size_t>(std::max<int64_t>(0, count)));
    storage_.note(path_, std::move(undo));
  }

  FaultStorage& storage_;
  const std::string path_;
  std::unique_ptr<StorageFile> file_;
};

}  // namespace

void FaultStorage::set(const FaultPlan& plan) {
  std::lock_guard lock(mutex_);
  plan_ = plan;
}

FaultPlan FaultStorage::plan() {
  std::lock_guard lock(mutex_);
  return plan_;
}

bool FaultStorage::chance(double of) {
  if (of == 0) return false;
  std::lock_guard lock(mutex_);
  return std::uniform_real_distribution<>(0, 1)(random_) < of;
}

uint64_t FaultStorage::number(uint64_t below) {
  std::lock_guard lock(mutex_);
  return random_() % below;
}

bool FaultStorage::ends_now() {
  return changes_++ == plan().kill_at;
}

int FaultStorage::take_room(int64_t bytes) {
  std::lock_guard lock(mutex_);
  if (plan_.room < 0) return 0;
  if (plan_.room < bytes) return ENOSPC;
  plan_.room -= bytes;
  return 0;
}

void FaultStorage::note(const std::string& path, Undo undo) {
  std::lock_guard lock(mutex_);
  undo_[path].push_back(std::move(undo));
}

void FaultStorage::forget(const std::string& path) {
  std::lock_guard lock(mutex_);
  undo_.erase(path);
}

void FaultStorage::lose_power() {
  for (auto& [path, undos] : undo_) {
    auto file = system_storage().open(path, {.write = true});
    if (!file) continue;
    for (auto undo = undos.rbegin(); undo != undos.rend(); ++undo) {
      for (size_t at = 0; at < undo->before.size(); at += kSector) {
        if (number(2) == 0) continue;
        iovec part{.iov_base = undo->before.data() + at,
                   .iov_len = std::min(kSector, undo->before.size() - at)};
        (void)(*file)->write({&part, 1}, undo->offset + static_cast<int64_t>(at));
      }
    }
  }
  undo_.clear();
}

// Of names: the process ends before it.
int FaultStorage::before_change() {
  if (ends_now()) std::raise(SIGKILL);
  return plan().every_change;
}

std::expected<std::unique_ptr<StorageFile>, int> FaultStorage::open(const std::string& path,
                                                                    const OpenHow& how) {
  if (how.create) {
    if (int error = before_change(); error != 0) return std::unexpected(error);
  }
  auto file = system_storage().open(path, how);
  if (!file) return file;
  return std::make_unique<FaultFile>(*this, path, *std::move(file));
}

int FaultStorage::make_folders(const std::string& path) {
  int error = before_change();
  return error != 0 ? error : system_storage().make_folders(path);
}

int FaultStorage::rename(const std::string& from, const std::string& to) {
  int error = before_change();
  return error != 0 || plan().off ? error : system_storage().rename(from, to);
}

int FaultStorage::remove(const std::string& path) {
  int error = before_change();
  return error != 0 || plan().off ? error : system_storage().remove(path);
}

int FaultStorage::remove_folder(const std::string& path) {
  int error = before_change();
  return error != 0 || plan().off ? error : system_storage().remove_folder(path);
}

int FaultStorage::sync_folder(const std::string& path) {
  int error = plan().every_change;
  return error != 0 ? error : system_storage().sync_folder(path);
}

int FaultStorage::set_modified(const std::string& path, int64_t seconds) {
  return plan().off ? 0 : system_storage().set_modified(path, seconds);
}

std::expected<std::vector<StorageEntry>, int> FaultStorage::list(const std::string& path) {
  return system_storage().list(path);
}

std::expected<StorageEntry, int> FaultStorage::look(const std::string& path) {
  return system_storage().look(path);
}

std::expected<StorageSpace, int> FaultStorage::space(const std::string& path) {
  return system_storage().space(path);
}

}  // namespace banyan::test
