// Large blocks from the operating system: zeroed, page-aligned, committed on first touch, on huge
// pages if available.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>

namespace banyan {

// The address space is exhausted or limited. what() has the size, the reason and what to do.
class ReservationError : public std::bad_alloc {
 public:
  ReservationError(size_t bytes, int error);  // `error`: an errno
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

// Ends the process with exit code 1 and a message, without destructors: for threads that others
// wait for, so that an exception cannot leave them.
[[noreturn]] void exit_without_memory(const std::exception& error);

// Reserves `bytes` of zeros; null for 0 bytes. Throws ReservationError.
std::byte* reserve_memory(size_t bytes);
void release_memory(std::byte* data, size_t bytes);

// Owns one block. Reserving more memory than the machine has is fine; touching it is not.
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

// Bytes that this process may still allocate: the minimum of the machine's available memory and
// what its own and enclosing cgroups have left.
int64_t available_memory_bytes();

// Bytes left in the cgroup (version 1 or 2) at `folder`; larger than any machine's memory without a
// limit.
int64_t cgroup_available_bytes(const std::string& folder);

}  // namespace banyan
