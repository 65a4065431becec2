// The files of one class of units: slabs of fixed slots, each for one record, and the index of
// their contents. Opens and grows the files and writes index entries; `table` says what is in which
// slot. The store that owns it defines which thread calls what.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "tier/disk/slot_table.h"
#include "tier/record.h"
#include "tier/storage.h"

namespace banyan {

class SlabClass {
 public:
  // The location of a slot's record.
  struct Place {
    std::shared_ptr<StorageFile> file;
    int64_t offset = 0;
  };

  // Opens existing files, and drops slabs beyond `bytes_max`, the limit of the class. The error is
  // an errno.
  static std::expected<SlabClass, int> open(Storage& storage, const std::string& folder,
                                            const RecordShape& shape, int64_t bytes_max,
                                            int64_t slab_bytes);
  // The most slots that fit; 0: not even one record fits.
  static int64_t slots_max(const RecordShape& shape, int64_t bytes_max);

  const RecordShape& shape() const { return shape_; }
  int64_t slot_bytes() const { return shape_.bytes(); }
  int64_t slab_bytes() const { return slots_per_slab_ * slot_bytes(); }
  // Bytes taken by its slabs.
  int64_t bytes() const { return slab_bytes() * std::ssize(slabs_); }
  bool full() const { return std::ssize(slabs_) >= slabs_max_; }

  // Creates one more slab, with free entries in the index; 0 or errno. On success, call add_slab()
  // next.
  int make_slab(std::unique_ptr<StorageFile>& file);
  void add_slab(std::unique_ptr<StorageFile> file);
  Place place(uint32_t slot) const;
  int write_entry(const IndexEntry& entry);
  int sync_index() { return index_->sync(); }
  // Removes all files and starts over; 0 or errno.
  int clear();

  SlotTable table;

 private:
  SlabClass(Storage& storage, std::string stem, const RecordShape& shape);

  std::string slab_path(int64_t slab) const;
  int open_index(bool& sound);
  int open_slabs(int64_t bytes_max, int64_t slab_bytes, bool sound);
  int64_t longest_slab() const;
  int remove_slabs_from(int64_t first);
  int write_header();
  int read_entries(bool sound);

  Storage* storage_;
  std::string stem_;  // of its files: FOLDER/class0
  RecordShape shape_;
  int64_t slots_per_slab_ = 0, slabs_max_ = 0;
  std::vector<std::shared_ptr<StorageFile>> slabs_;
  std::shared_ptr<StorageFile> index_;
};

}  // namespace banyan
