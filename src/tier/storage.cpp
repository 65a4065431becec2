#include "tier/storage.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <random>
#include <system_error>

#include "base/signed.h"

namespace banyan {
namespace {

// Retries calls that a signal interrupted.
template <class Call>
auto again(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int error_of(int result) {
  return result < 0 ? errno : 0;
}

class SystemFile final : public StorageFile {
 public:
  SystemFile(int descriptor, bool direct) : descriptor_(descriptor), direct_(direct) {}
  ~SystemFile() override { ::close(descriptor_); }

  int64_t read(std::span<const iovec> to, int64_t offset) override {
    int count = narrow<int>(std::min<size_t>(to.size(), IOV_MAX));
    ssize_t done = again([&] { return ::preadv(descriptor_, to.data(), count, offset); });
    return done < 0 ? -errno : done;
  }
  int64_t write(std::span<const iovec> from, int64_t offset) override {
    int count = narrow<int>(std::min<size_t>(from.size(), IOV_MAX));
    ssize_t done = again([&] { return ::pwritev(descriptor_, from.data(), count, offset); });
    return done < 0 ? -errno : done;
  }
  int sync() override {
    return error_of(again([&] { return ::fdatasync(descriptor_); }));
  }
  int allocate(int64_t bytes) override {
    int result = again([&] { return ::fallocate(descriptor_, 0, 0, bytes); });
    if (result == 0 || (errno != EOPNOTSUPP && errno != ENOSYS)) return error_of(result);
    return truncate(bytes);
  }
  int truncate(int64_t bytes) override {
    return error_of(again([&] { return ::ftruncate(descriptor_, bytes); }));
  }
  int64_t size() override {
    struct stat info{};
    return ::fstat(descriptor_, &info) != 0 ? -errno : info.st_size;
  }
  void drop_cache(int64_t offset, int64_t bytes) override {
    if (!direct_) (void)::posix_fadvise(descriptor_, offset, bytes, POSIX_FADV_DONTNEED);
  }
  bool direct() const override { return direct_; }

 private:
  int descriptor_;
  bool direct_;
};

StorageEntry to_entry(std::string name, const struct stat& info) {
  return {.name = std::move(name),
          .folder = S_ISDIR(info.st_mode),
          .bytes = int64_t{info.st_blocks} * 512,
          .modified_s = info.st_mtim.tv_sec};
}

class SystemStorage final : public Storage {
 public:
  std::expected<std::unique_ptr<StorageFile>, int> open(const std::string& path,
                                                        const OpenHow& how) override {
    int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (how.write ? O_RDWR : O_RDONLY);
    if (how.create) flags |= O_CREAT;
    if (how.exclusive) flags |= O_EXCL;
    bool direct = how.direct;
    int descriptor = -1;
    if (direct) descriptor = again([&] { return ::open(path.c_str(), flags | O_DIRECT, 0600); });
    if (descriptor < 0 && (!direct || errno == EINVAL)) {
      direct = false;
      if (how.direct) flags &= ~O_EXCL;  // the refused attempt may have made the file
      descriptor = again([&] { return ::open(path.c_str(), flags, 0600); });
    }
    if (descriptor < 0) return std::unexpected(errno);
    struct stat info{};
    if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(descriptor);
      return std::unexpected(EINVAL);
    }
    return std::make_unique<SystemFile>(descriptor, direct);
  }

  int make_folders(const std::string& path) override {
    std::error_code code;
    if (std::filesystem::is_directory(path, code)) return 0;
    std::filesystem::path parent = std::filesystem::path(path).parent_path();
    if (!parent.empty() && parent != path) {
      if (int error = make_folders(parent.string()); error != 0) return error;
    }
    return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
  }
  int rename(const std::string& from, const std::string& to) override {
    return error_of(::rename(from.c_str(), to.c_str()));
  }
  int remove(const std::string& path) override {
    return ::unlink(path.c_str()) == 0 || errno == ENOENT ? 0 : errno;
  }
  int remove_folder(const std::string& path) override {
    std::error_code code;
    std::filesystem::remove_all(path, code);
    return code.value();
  }
  int sync_folder(const std::string& path) override {
    int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return errno;
    int error = error_of(again([&] { return ::fsync(descriptor); }));
    ::close(descriptor);
    return error;
  }
  int set_modified(const std::string& path, int64_t seconds) override {
    struct timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                {.tv_sec = seconds, .tv_nsec = 0}};
    return error_of(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW));
  }
  std::expected<std::vector<StorageEntry>, int> list(const std::string& path) override {
    DIR* folder = ::opendir(path.c_str());
    if (folder == nullptr) return std::unexpected(errno);
    std::vector<StorageEntry> entries;
    while (const dirent* entry = ::readdir(folder)) {
      std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      struct stat info{};
      if (::fstatat(::dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        entries.push_back(to_entry(std::move(name), info));
      }
    }
    ::closedir(folder);
    return entries;
  }
  std::expected<StorageEntry, int> look(const std::string& path) override {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return std::unexpected(errno);
    return to_entry(path, info);
  }
  std::expected<StorageSpace, int> space(const std::string& path) override {
    struct statvfs info{};
    if (::statvfs(path.c_str(), &info) != 0) return std::unexpected(errno);
    int64_t unit = info.f_frsize;
    return StorageSpace{.total = static_cast<int64_t>(info.f_blocks) * unit,
                        .free = static_cast<int64_t>(info.f_bavail) * unit};
  }
};

}  // namespace

Storage& system_storage() {
  static SystemStorage storage;
  return storage;
}

int Storage::replace(const std::string& path, std::string_view text) {
  // Several processes may replace a file at once, for example on a shared file system.
  std::random_device random;
  std::string temporary = fmt::format("{}.new-{:08x}{:08x}", path, random(), random());
  auto file = open(temporary, {.write = true, .create = true, .exclusive = true});
  if (!file) return file.error();
  for (size_t at = 0; at < text.size();) {
    iovec rest{.iov_base = const_cast<char*>(text.data()) + at, .iov_len = text.size() - at};
    int64_t count = (*file)->write({&rest, 1}, at);
    if (count <= 0) {
      (void)remove(temporary);
      return count < 0 ? narrow<int>(-count) : EIO;
    }
    at += as_size(count);
  }
  int error = (*file)->sync();
  if (error == 0) error = rename(temporary, path);
  if (error != 0) (void)remove(temporary);
  return error;
}

std::expected<std::string, int> Storage::read_small(const std::string& path, size_t bytes_max) {
  auto file = open(path, {});
  if (!file) return std::unexpected(file.error());
  int64_t size = (*file)->size();
  if (size < 0) return std::unexpected(narrow<int>(-size));
  if (as_size(size) > bytes_max) return std::unexpected(EFBIG);
  std::string text(as_size(size), '\0');
  for (size_t at = 0; at < text.size();) {
    iovec rest{.iov_base = text.data() + at, .iov_len = text.size() - at};
    int64_t count = (*file)->read({&rest, 1}, at);
    if (count < 0) return std::unexpected(narrow<int>(-count));
    if (count == 0) return text.substr(0, at);
    at += as_size(count);
  }
  return text;
}

}  // namespace banyan
