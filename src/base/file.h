// Reads and writes small files; maps large ones read-only.
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

// Writes a file atomically, readable only by its owner. Creates its folder.
Status replace_file(const std::string& path, std::string_view bytes);

// The folder for data that can be recreated: $XDG_CACHE_HOME/banyan or $HOME/.cache/banyan; "" if
// neither is set to an absolute path.
std::string user_cache_folder();

// Changes when a file's bytes change, unless somebody fakes it deliberately.
struct FileIdentity {
  uint64_t inode = 0, bytes = 0;
  int64_t modified_ns = 0;  // since the epoch
  int64_t changed_ns = 0;   // inode change time: set even if modified_ns was set by hand

  bool operator==(const FileIdentity&) const = default;
};

// A read-only private map of a regular file; empty files map to an empty span.
//
// Truncating a mapped file raises SIGBUS on access to the missing pages, and no earlier check can
// rule that out. Callers that copy bytes use `read()`, which returns a short count instead of a
// signal. Callers that use the map long after opening call `unchanged()` first, which checks the
// file's size.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::string& path() const { return path_; }
  // Copies `to.size()` bytes from `offset` by reading the file, not through the map.
  Status read(size_t offset, std::span<std::byte> to) const;
  Status unchanged() const;
  // Of the mapped file, even if the path now leads to another file.
  Result<FileIdentity> identity() const;

 private:
  MappedFile() = default;

  std::string path_;
  int descriptor_ = -1;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace banyan
