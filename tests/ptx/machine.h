// Runs an entry of a module on the host. Addresses of global memory are addresses of the host.
//
// The order in which warps get on is random, from a seed, so that what depends on it, such as a
// missing barrier, gives different results for different seeds. Shared memory begins as NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ptx/journal.h"
#include "ptx/module.h"

namespace banyan::ptx {

struct Launch {
  uint32_t blocks = 1, threads = 128;
  uint32_t cluster = 1;     // blocks of a cluster; divides `blocks`
  size_t shared_bytes = 0;  // of the dynamic array
  std::vector<std::byte> parameters;
  uint64_t seed = 1;
  Journal* journal = nullptr;                      // null: writes are not noted
  uint32_t resident_blocks = 4;                    // about: whole clusters, at least one
  uint64_t instructions_max = uint64_t{20} << 30;  // of all warps; more is an error
};

// What a launch did.
struct Ran {
  uint64_t instructions = 0;  // of warps
  uint64_t slices = 0;        // the most that they could have run
};

// Throws Error if the kernel does what a kernel must not; it names the line and the thread.
Ran launch(const Module& module, const std::string& entry, const Launch& launch);

// The parameter block of a kernel with these parameters: each at a multiple of its alignment.
template <class... Parameters>
std::vector<std::byte> parameter_block(const Parameters&... parameters) {
  std::vector<std::byte> block;
  auto append = [&]<class T>(const T& value) {
    block.resize((block.size() + alignof(T) - 1) / alignof(T) * alignof(T) + sizeof(T));
    std::memcpy(block.data() + block.size() - sizeof(T), &value, sizeof(T));
  };
  (append(parameters), ...);
  return block;
}

}  // namespace banyan::ptx
