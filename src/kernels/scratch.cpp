#include "kernels/scratch.h"

#include "base/os/memory.h"

namespace banyan {
namespace {

float* at_least(MemoryBlock& block, size_t floats) {
  size_t bytes = floats * sizeof(float);
  // Grow by half, so that a context that grows token by token rarely reallocates.
  if (block.size() < bytes) block = MemoryBlock(bytes + bytes / 2);
  return reinterpret_cast<float*>(block.data());
}

}  // namespace

float* worker_scratch(size_t floats) {
  thread_local MemoryBlock block;
  return at_least(block, floats);
}

float* shared_scratch(size_t floats) {
  thread_local MemoryBlock block;
  return at_least(block, floats);
}

}  // namespace banyan
