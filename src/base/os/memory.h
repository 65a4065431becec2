// Large blocks straight from the operating system: zeroed, page-aligned, committed when touched,
// on huge pages where the system gives them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace banyan {

// Reserves `bytes` of zeros; null for none. Aborts when the address space itself is exhausted.
std::byte* reserve_memory(size_t bytes);
void release_memory(std::byte* data, size_t bytes);

// Owns one block. Reserving more than the machine has is allowed; touching it is not.
class MemoryBlock {
 public:
  MemoryBlock() = default;
  explicit MemoryBlock(size_t bytes) : data_(reserve_memory(bytes)), size_(bytes) {}
  MemoryBlock(MemoryBlock&& other) noexcept;
  MemoryBlock& operator=(MemoryBlock&& other) noexcept;
  ~MemoryBlock();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Bytes that this process may still take: the least of the machine's available memory and what its
// cgroups, its own and those around it, have left.
int64_t available_memory_bytes();

// What the cgroup (version 1 or 2) at `folder` has left; a number beyond any machine's without a
// limit.
int64_t cgroup_available_bytes(const std::string& folder);

}  // namespace banyan
