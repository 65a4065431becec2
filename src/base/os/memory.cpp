#include "base/os/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "base/os/cgroup.h"
#include "base/os/standard_error.h"
#include "base/signed.h"
#include "base/units.h"

namespace banyan {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

// Means no limit; leaves room for arithmetic.
constexpr int64_t kUnlimited = int64_t{1} << 62;

// The number in a cgroup file; `fallback` if the file is missing or says "max".
int64_t read_number(const std::string& path, int64_t fallback) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : fallback;
}

int64_t machine_available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  int64_t kibibytes = 0;
  while (file >> key >> kibibytes >> unit) {
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return kUnlimited;
}

// Page-cache bytes. A cgroup counts them as used, but they are reclaimed before an allocation
// fails; without this, a checkpoint just read would leave no memory for its own weights. Version 1
// also has counters without child groups; `prefix` selects the hierarchical ones.
int64_t cgroup_file_bytes(const std::string& folder, const std::string& prefix) {
  std::ifstream file(folder + "/memory.stat");
  std::string key;
  int64_t value = 0, sum = 0;
  while (file >> key >> value) {
    if (key == prefix + "active_file" || key == prefix + "inactive_file") sum += value;
  }
  return sum;
}

}  // namespace

ReservationError::ReservationError(size_t bytes, int error)
    : message_(fmt::format(
          "cannot reserve {} of address space ({}); choose a smaller --max-total-tokens or "
          "--mem-fraction-static, or raise the limit that `ulimit -v` shows",
          format_bytes(narrow<int64_t>(bytes)), std::strerror(error))) {}

void exit_without_memory(const std::exception& error) {
  write_stderr(fmt::format("banyan: out of memory: {}\n", error.what()));
  flush_stderr();
  std::_Exit(EXIT_FAILURE);
}

std::byte* reserve_memory(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw ReservationError(bytes, errno);
  if (bytes >= kHugePageBytes) ::madvise(data, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

void release_memory(std::byte* data, size_t bytes) {
  if (data != nullptr) ::munmap(data, bytes);
}

MemoryBlock::MemoryBlock(MemoryBlock&& other) noexcept {
  *this = std::move(other);
}

MemoryBlock& MemoryBlock::operator=(MemoryBlock&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MemoryBlock::~MemoryBlock() {
  release_memory(data_, size_);
}

int64_t cgroup_available_bytes(const std::string& folder) {
  bool version1 = std::ifstream(folder + "/memory.limit_in_bytes").good();
  std::string limit_file = version1 ? "/memory.limit_in_bytes" : "/memory.max";
  std::string used_file = version1 ? "/memory.usage_in_bytes" : "/memory.current";
  int64_t limit = read_number(folder + limit_file, kUnlimited);
  if (limit >= kUnlimited) return kUnlimited;
  int64_t used = read_number(folder + used_file, 0);
  used -= cgroup_file_bytes(folder, version1 ? "total_" : "");
  return std::clamp<int64_t>(limit - used, 0, limit);
}

int64_t available_memory_bytes() {
  int64_t available = machine_available_bytes();
  for (const std::string& folder : cgroup_folders("memory")) {
    available = std::min(available, cgroup_available_bytes(folder));
  }
  return available;
}

}  // namespace banyan
