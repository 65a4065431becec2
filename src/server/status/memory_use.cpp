#include "server/status/memory_use.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

namespace banyan {
namespace {

constexpr size_t kFreeBytesMax = 16 << 20;  // kept by the allocator
constexpr int kMappedBytesMin = 256 << 10;  // larger blocks are mapped separately
constexpr int kArenasMax = 4;

int64_t resident_bytes() {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/statm", "re"), std::fclose);
  long long total = 0, resident = 0;
  if (!file || std::fscanf(file.get(), "%lld %lld", &total, &resident) != 2) return 0;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

void measure_memory(MemoryUse& use) {
  struct mallinfo2 heap = mallinfo2();
  use.heap_used = heap.uordblks + heap.hblkhd;
  use.heap_free = heap.fordblks;
  use.resident = resident_bytes();
}

void configure_allocator() {
  // By default the threshold grows up to 32 MB when a large mapped block is freed. Later large
  // blocks then come from the heap and leave holes between small long-lived ones.
  (void)mallopt(M_MMAP_THRESHOLD, kMappedBytesMin);
  (void)mallopt(M_TRIM_THRESHOLD, kFreeBytesMax);
  (void)mallopt(M_ARENA_MAX, kArenasMax);
}

bool give_back_memory() {
  if (mallinfo2().fordblks < kFreeBytesMax) return false;
  return malloc_trim(kFreeBytesMax / 4) == 1;
}

}  // namespace banyan
