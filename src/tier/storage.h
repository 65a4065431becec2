// What stores need from a file system. An interface, so that tests can replace it by one that
// writes half, loses unsynced data, flips bits, answers late or ends the process. Errors are errno
// values, since the reaction depends on them.
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

// Thread-safe.
class StorageFile {
 public:
  virtual ~StorageFile() = default;
  // The number of bytes moved, which may be less than requested, or -errno.
  virtual int64_t read(std::span<const iovec> to, int64_t offset) = 0;
  virtual int64_t write(std::span<const iovec> from, int64_t offset) = 0;
  // These return 0 or errno.
  virtual int sync() = 0;                   // afterwards the bytes survive a power failure
  virtual int allocate(int64_t bytes) = 0;  // sets the length, and reserves the space if possible
  virtual int truncate(int64_t bytes) = 0;
  virtual int64_t size() = 0;  // or -errno
  // Lets the system drop these bytes from its cache.
  virtual void drop_cache(int64_t offset, int64_t bytes) = 0;
  // Direct reads and writes bypass the system's cache: memory, offsets and lengths must be
  // multiples of kDirectAlignment.
  virtual bool direct() const = 0;
};

inline constexpr size_t kDirectAlignment = 512;

struct OpenHow {
  bool write = false;
  bool create = false;
  bool exclusive = false;  // fails if the file exists
  bool direct = false;     // bypass the system's cache, if the file system can
};

struct StorageEntry {
  std::string name;
  bool folder = false;
  int64_t bytes = 0;       // that it takes in the file system
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
  // These return 0 or errno.
  virtual int make_folders(const std::string& path) = 0;  // readable by its owner only
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int remove(const std::string& path) = 0;         // a file; succeeds if there is none
  virtual int remove_folder(const std::string& path) = 0;  // with its contents
  virtual int sync_folder(const std::string& path) = 0;  // afterwards names survive a power failure
  virtual int set_modified(const std::string& path, int64_t seconds) = 0;
  virtual std::expected<std::vector<StorageEntry>, int> list(const std::string& path) = 0;
  virtual std::expected<StorageEntry, int> look(const std::string& path) = 0;
  virtual std::expected<StorageSpace, int> space(const std::string& path) = 0;

  // Writes a small file that appears whole or not at all. Returns 0 or errno.
  int replace(const std::string& path, std::string_view text);
  std::expected<std::string, int> read_small(const std::string& path, size_t bytes_max = 1 << 20);
};

// The system's own file system.
Storage& system_storage();

}  // namespace banyan
