#include "tier/disk/slab_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <tuple>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

// At most a sixteenth of a class's room stays unused.
constexpr int64_t kSlabsAtLeast = 16;

// All of `bytes`; 0 or errno.
int write_fully(StorageFile& file, std::span<std::byte> bytes, int64_t offset) {
  while (!bytes.empty()) {
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    int64_t count = file.write({&part, 1}, offset);
    if (count <= 0) return count < 0 ? narrow<int>(-count) : EIO;
    offset += count;
    bytes = bytes.subspan(as_size(count));
  }
  return 0;
}

// As many bytes as there are, up to the end of the file.
int64_t read_fully(StorageFile& file, std::span<std::byte> bytes, int64_t offset) {
  size_t done = 0;
  while (done < bytes.size()) {
    iovec part{.iov_base = bytes.data() + done, .iov_len = bytes.size() - done};
    int64_t count = file.read({&part, 1}, offset + done);
    if (count < 0) return count;
    if (count == 0) break;
    done += as_size(count);
  }
  return done;
}

int64_t entry_offset(int64_t slot) {
  return kIndexHeaderBytes + slot * static_cast<int64_t>(kIndexEntryBytes);
}

}  // namespace

SlabClass::SlabClass(Storage& storage, std::string stem, const RecordShape& shape)
    : storage_(&storage), stem_(std::move(stem)), shape_(shape) {}

int64_t SlabClass::slots_max(const RecordShape& shape, int64_t bytes_max) {
  return std::max<int64_t>(0, bytes_max - 2 * kIndexHeaderBytes) /
         (shape.bytes() + static_cast<int64_t>(kIndexEntryBytes));
}

std::expected<SlabClass, int> SlabClass::open(Storage& storage, const std::string& folder,
                                              const RecordShape& shape, int64_t bytes_max,
                                              int64_t slab_bytes) {
  SlabClass files(storage, fmt::format("{}/class{}", folder, shape.unit_class), shape);
  bool sound = false;
  if (int error = files.open_index(sound); error != 0) return std::unexpected(error);
  if (int error = files.open_slabs(bytes_max, slab_bytes, sound); error != 0) {
    return std::unexpected(error);
  }
  if (int error = files.read_entries(sound); error != 0) return std::unexpected(error);
  return files;
}

std::string SlabClass::slab_path(int64_t slab) const {
  return fmt::format("{}-{:08}.slab", stem_, slab);
}

// `sound`: there is an index of this shape, which says how many slots a slab has.
int SlabClass::open_index(bool& sound) {
  auto file = storage_->open(stem_ + ".idx", {.write = true, .create = true});
  if (!file) return file.error();
  index_ = std::move(*file);
  std::array<std::byte, kIndexHeaderBytes> bytes;
  int64_t count = read_fully(*index_, bytes, 0);
  if (count < 0) return narrow<int>(-count);
  IndexHeader header;
  sound =
      decode_index_header(std::span(bytes).first(as_size(count)), header) && header.shape == shape_;
  if (sound) slots_per_slab_ = header.slots_per_slab;
  return 0;
}

// In ascending order: slabs after a missing one are ignored.
int SlabClass::remove_slabs_from(int64_t first) {
  std::filesystem::path stem(stem_);
  auto entries = storage_->list(stem.parent_path().string());
  if (!entries) return entries.error();
  std::vector<std::string> names;
  for (const StorageEntry& entry : *entries) {
    std::string path = (stem.parent_path() / entry.name).string();
    if (path.starts_with(stem_ + "-") && path.ends_with(".slab") && path >= slab_path(first)) {
      names.push_back(path);
    }
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (int error = storage_->remove(name); error != 0) return error;
  }
  return 0;
}

// Without an index, the slabs' own length says how many slots they have.
int64_t SlabClass::longest_slab() const {
  int64_t longest = 0;
  for (int64_t slab = 0; storage_->look(slab_path(slab)); ++slab) {
    auto file = storage_->open(slab_path(slab), {});
    if (file) longest = std::max(longest, (*file)->size());
  }
  return longest;
}

int SlabClass::open_slabs(int64_t bytes_max, int64_t slab_bytes, bool sound) {
  int64_t slots = slots_max(shape_, bytes_max);
  if (!sound) slots_per_slab_ = longest_slab() / slot_bytes();
  if (slots_per_slab_ < 1 || slots_per_slab_ > slots) {
    // There are no slabs, or too little room for one of that size.
    if (int error = remove_slabs_from(0); error != 0) return error;
    slots_per_slab_ =
        std::max<int64_t>(1, std::min(slab_bytes / slot_bytes(), slots / kSlabsAtLeast));
    sound = false;
  }
  slabs_max_ = slots / slots_per_slab_;
  while (std::ssize(slabs_) < slabs_max_ && storage_->look(slab_path(std::ssize(slabs_)))) {
    auto file = storage_->open(slab_path(std::ssize(slabs_)), {.write = true, .direct = true});
    if (!file) return file.error();
    int64_t size = (*file)->size();
    // A slab whose creation was interrupted.
    if (size < this->slab_bytes() && (*file)->allocate(this->slab_bytes()) != 0) break;
    slabs_.push_back(std::move(*file));
  }
  if (int error = remove_slabs_from(std::ssize(slabs_)); error != 0) return error;
  if (int error = sound ? 0 : write_header(); error != 0) return error;
  // No entry may name a slot of a missing slab.
  return index_->truncate(entry_offset(slots_per_slab_ * std::ssize(slabs_)));
}

int SlabClass::write_header() {
  std::array<std::byte, kIndexHeaderBytes> bytes;
  encode_index_header({.shape = shape_, .slots_per_slab = slots_per_slab_}, bytes);
  return write_fully(*index_, bytes, 0);
}

int SlabClass::read_entries(bool sound) {
  int64_t slots = slots_per_slab_ * std::ssize(slabs_);
  table.grow(slots, true);
  std::vector<std::byte> bytes(as_size(slots) * kIndexEntryBytes);
  int64_t count = sound ? read_fully(*index_, bytes, kIndexHeaderBytes) : 0;
  if (count < 0) count = 0;  // then all headers are read
  std::vector<IndexEntry> live;
  for (int64_t slot = 0; (slot + 1) * static_cast<int64_t>(kIndexEntryBytes) <= count; ++slot) {
    IndexEntry entry;
    auto at = std::span(bytes).subspan(as_size(slot) * kIndexEntryBytes);
    if (!decode_index_entry(at.first<kIndexEntryBytes>(), entry) || entry.slot != slot) continue;
    if (entry.live) {
      live.push_back(entry);
    } else {
      table.give_up(narrow<uint32_t>(slot));
    }
  }
  // For uses within one second, pages are evicted before their ancestors.
  std::ranges::sort(
      live, {}, [](const IndexEntry& e) { return std::tuple(e.used_s, -e.end, e.write_number); });
  for (const IndexEntry& entry : live) (void)table.put(entry);
  return 0;
}

int SlabClass::make_slab(std::unique_ptr<StorageFile>& made) {
  std::string path = slab_path(std::ssize(slabs_));
  auto file = storage_->open(path, {.write = true, .create = true, .direct = true});
  if (!file) return file.error();
  int error = (*file)->allocate(slab_bytes());
  int64_t first = slots_per_slab_ * std::ssize(slabs_);
  std::vector<std::byte> entries(as_size(slots_per_slab_) * kIndexEntryBytes);
  for (int64_t i = 0; i < slots_per_slab_; ++i) {
    auto at = std::span(entries).subspan(as_size(i) * kIndexEntryBytes);
    encode_index_entry({.slot = narrow<uint32_t>(first + i)}, at.first<kIndexEntryBytes>());
  }
  if (error == 0) error = write_fully(*index_, entries, entry_offset(first));
  if (error != 0) {
    (void)storage_->remove(path);
  } else {
    made = std::move(*file);
  }
  return error;
}

void SlabClass::add_slab(std::unique_ptr<StorageFile> file) {
  slabs_.push_back(std::move(file));
  table.grow(slots_per_slab_ * std::ssize(slabs_), false);
}

SlabClass::Place SlabClass::place(uint32_t slot) const {
  return {.file = slabs_[as_size(slot / slots_per_slab_)],
          .offset = slot % slots_per_slab_ * slot_bytes()};
}

int SlabClass::write_entry(const IndexEntry& entry) {
  std::array<std::byte, kIndexEntryBytes> bytes;
  encode_index_entry(entry, bytes);
  return write_fully(*index_, bytes, entry_offset(entry.slot));
}

int SlabClass::clear() {
  table = {};
  slabs_.clear();
  // The index is removed last: without one, slabs would be scanned for their records.
  if (int error = remove_slabs_from(0); error != 0) return error;
  if (int error = index_->truncate(0); error != 0) return error;
  return write_header();
}

}  // namespace banyan
