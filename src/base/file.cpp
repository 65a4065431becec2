#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"

namespace banyan {
namespace {

struct OpenFile {
  int descriptor = -1;
  size_t size = 0;
};

// Opens a regular file for reading; the caller closes the descriptor.
Result<OpenFile> open_regular(const std::string& path) {
  // O_NONBLOCK: opening a pipe without a writer would block forever.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return make_error(code, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  struct stat info{};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return io_error("{}: not a regular file", path);
  }
  return OpenFile{descriptor, as_size(info.st_size)};
}

int64_t nanoseconds(const struct timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Status write_all(int descriptor, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error("{}: {}", path, std::strerror(errno));
    bytes.remove_prefix(as_size(count));
  }
  return {};
}

// The value of an environment variable that is an absolute path, or "".
std::string absolute_path_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

std::unexpected<Error> shrunk(const std::string& path) {
  return io_error("{}: the file was truncated after it was opened", path);
}

}  // namespace

bool file_exists(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Status replace_file(const std::string& path, std::string_view bytes) {
  std::error_code code;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
  std::string temporary = path + ".XXXXXX";
  int descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0) return io_error("{}: {}", temporary, std::strerror(errno));
  Status written = write_all(descriptor, temporary, bytes);
  ::close(descriptor);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = io_error("{}: {}", path, std::strerror(errno));
  }
  if (!written) ::unlink(temporary.c_str());
  return written;
}

std::string user_cache_folder() {
  if (std::string base = absolute_path_in("XDG_CACHE_HOME"); !base.empty()) return base + "/banyan";
  std::string home = absolute_path_in("HOME");
  return home.empty() ? "" : home + "/.cache/banyan";
}

Result<std::string> read_file(const std::string& path, size_t bytes_max) {
  OpenFile file = TRY(open_regular(path));
  if (file.size > bytes_max) {
    ::close(file.descriptor);
    return exhausted("{}: {} bytes, the limit is {}", path, file.size, bytes_max);
  }
  std::string text(file.size, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    ssize_t count = ::read(file.descriptor, text.data() + filled, text.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    filled += as_size(count);
  }
  ::close(file.descriptor);
  if (filled != text.size()) return io_error("{}: read {} of {} bytes", path, filled, file.size);
  return text;
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  OpenFile file = TRY(open_regular(path));
  MappedFile map;
  map.path_ = path;
  map.descriptor_ = file.descriptor;
  if (file.size == 0) return map;
  void* data = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.descriptor, 0);
  if (data == MAP_FAILED) return io_error("{}: mmap: {}", path, std::strerror(errno));
  map.data_ = static_cast<const std::byte*>(data);
  map.size_ = file.size;
  return map;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status MappedFile::read(size_t offset, std::span<std::byte> to) const {
  CHECK(offset <= size_ && to.size() <= size_ - offset, "{}: {} bytes at {} of {}", path_,
        to.size(), offset, size_);
  while (!to.empty()) {
    ssize_t count = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error("{}: {}", path_, std::strerror(errno));
    if (count == 0) return shrunk(path_);
    offset += as_size(count);
    to = to.subspan(as_size(count));
  }
  return {};
}

Result<FileIdentity> MappedFile::identity() const {
  struct stat info{};
  if (::fstat(descriptor_, &info) != 0) return io_error("{}: {}", path_, std::strerror(errno));
  return FileIdentity{.inode = info.st_ino,
                      .bytes = static_cast<uint64_t>(info.st_size),
                      .modified_ns = nanoseconds(info.st_mtim),
                      .changed_ns = nanoseconds(info.st_ctim)};
}

Status MappedFile::unchanged() const {
  struct stat info{};
  if (::fstat(descriptor_, &info) != 0 || as_size(info.st_size) < size_) {
    return shrunk(path_);
  }
  return {};
}

}  // namespace banyan
