// What stores ask of a file system. It is an interface so that tests can put another in its place:
// one that writes half, loses what was not synced, flips bits, answers late or ends the process.
// Errors are those of errno, since what follows depends on which it was.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace banyan {

// Any thread may use a file.
class StorageFile {
 public:
  virtual ~StorageFile() = default;
  // Bytes that were moved, which may be fewer than were asked for, or -errno.
  virtual int64_t read(std::span<const iovec> to, int64_t offset) = 0;
  virtual int64_t write(std::span<const iovec> from, int64_t offset) = 0;
  // These give 0 or errno.
  virtual int sync() = 0;  // the bytes survive a loss of power
  virtual int allocate(
      int64_t bytes) = 0;  // so long from now on, and with room where that is known
  virtual int truncate(int64_t bytes) = 0;
  virtual int64_t size() = 0;  // or -errno
  // These bytes need not stay in the system's cache.
  virtual void drop_cache(int64_t offset, int64_t bytes) = 0;
  // Reads and writes go past the system's cache: memory, offsets and lengths are multiples of
  // kDirectAlignment.
  virtual bool direct() const = 0;
};

inline constexpr size_t kDirectAlignment = 512;

struct OpenHow {
  bool write = false;
  bool create = false;
  bool exclusive = false;  // an error where there is one
  bool direct = false;     // past the system's cache, where the file system takes it
};

struct StorageEntry {
  std::string name;
  bool folder = false;
  int64_t bytes = 0;       // that it takes of the file system
  int64_t modified_s = 0;  // since 1970
};

struct StorageSpace {
  int64_t total = 0, free = 0;  // bytes
};

class Storage {
 public:
  virtual ~Storage() = default;
  virtual std::expected<std::unique_ptr<StorageFile>, int> open(const std::string& path,
                                                                const OpenHow& how) = 0;
  // These give 0 or errno.
  virtual int make_folders(const std::string& path) = 0;  // readable by the owner alone
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int remove(const std::string& path) = 0;         // a file; none is no error
  virtual int remove_folder(const std::string& path) = 0;  // with all that is in it
  virtual int sync_folder(const std::string& path) = 0;    // names survive a loss of power
  virtual int set_modified(const std::string& path, int64_t seconds) = 0;
  virtual std::expected<std::vector<StorageEntry>, int> list(const std::string& path) = 0;
  virtual std::expected<StorageEntry, int> look(const std::string& path) = 0;
  virtual std::expected<StorageSpace, int> space(const std::string& path) = 0;

  // A small file that appears whole or not at all. 0 or errno.
  int replace(const std::string& path, std::string_view text);
  std::expected<std::string, int> read_small(const std::string& path, size_t bytes_max = 1 << 20);
};

// The system's own.
Storage& system_storage();

}  // namespace banyan
