// Whole small files, and read-only memory maps of large ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

// Reads a regular file of at most `bytes_max` bytes.
Result<std::string> read_file(const std::string& path, size_t bytes_max = 256 << 20);

bool file_exists(const std::string& path);

// Writes a file that appears whole or not at all, readable by its owner alone. Makes its folder.
Status replace_file(const std::string& path, std::string_view bytes);

// Where this program may keep what it can make again: $XDG_CACHE_HOME/banyan or
// $HOME/.cache/banyan; "" when neither is set to an absolute path.
std::string user_cache_folder();

// What changes when a file's bytes do, short of somebody who means to deceive.
struct FileIdentity {
  uint64_t inode = 0, bytes = 0;
  int64_t modified_ns = 0;  // since the epoch
  int64_t changed_ns = 0;   // its inode: also when the time above was set by hand

  bool operator==(const FileIdentity&) const = default;
};

// A read-only private map of a regular file; empty files map to an empty span.
//
// A file that is truncated after it was mapped raises SIGBUS on the missing pages, and no check
// made beforehand closes that window. So bytes that are copied out anyway are read with `read()`,
// which the kernel answers with a short count instead of a signal; those who must use the map long
// after opening call `unchanged()` first, which compares the file's size now.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::string& path() const { return path_; }
  // Copies `to.size()` bytes from `offset`, through a read of the file and not through the map.
  Status read(size_t offset, std::span<std::byte> to) const;
  Status unchanged() const;
  // Of the file that is mapped, whatever the path leads to by now.
  Result<FileIdentity> identity() const;

 private:
  MappedFile() = default;

  std::string path_;
  int descriptor_ = -1;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace banyan
