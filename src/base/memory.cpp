#include "base/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"

namespace banyan {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

// The number in a cgroup file; `fallback` where there is none or it says "max".
int64_t read_number(const char* path, int64_t fallback) {
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
  return std::numeric_limits<int64_t>::max();
}

}  // namespace

MemoryBlock::MemoryBlock(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(data != MAP_FAILED, "cannot reserve {} bytes", bytes);
  if (bytes >= kHugePageBytes) ::madvise(data, bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(data);
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
  if (data_ != nullptr) ::munmap(data_, size_);
}

int64_t available_memory_bytes() {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  int64_t limit = read_number("/sys/fs/cgroup/memory.max", kNone);
  int64_t used = read_number("/sys/fs/cgroup/memory.current", 0);
  int64_t in_group = limit == kNone ? kNone : std::max<int64_t>(0, limit - used);
  return std::min(machine_available_bytes(), in_group);
}

}  // namespace banyan
