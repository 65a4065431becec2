// What a checkpoint's tensors are, as one digest: the hashes of fixed blocks of each tensor's
// stored bytes, combined in order. Blocks do not depend on files, shards or ranks, so that ranks
// can hash what they read and exchange block hashes, and a checkpoint that is cut into other files
// has the same digest.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "banyan/config.h"
#include "banyan/status.h"
#include "base/digest.h"
#include "base/thread_pool.h"
#include "weights/files/checkpoint.h"

namespace banyan {

inline constexpr size_t kHashBlockBytes = size_t{4} << 20;

// Bytes [offset, offset + bytes) of a tensor; only a tensor's last block is shorter than a whole
// one.
struct WeightBlock {
  const TensorInfo* tensor = nullptr;
  size_t offset = 0, bytes = 0;
};

// The blocks of all tensors in the order in which they are combined.
std::vector<WeightBlock> weight_blocks(const WeightSource& source);

// The hash of each block, read and hashed by all threads. Fails when a block cannot be read.
Status hash_blocks(const WeightSource& source, std::span<const WeightBlock> blocks,
                   ThreadPool& threads, const LoadProgress& progress, std::span<Digest> hashes);

// Names, types and shapes of all tensors with `hashes`, one for each of weight_blocks().
Digest combine_hashes(const WeightSource& source, std::span<const Digest> hashes);

// All of the above. Hashes of files that did not change since an earlier call are taken from
// `cache_folder`, unless it is "".
Result<Digest> weights_digest(const WeightSource& source, const std::string& cache_folder,
                              ThreadPool& threads, const LoadProgress& progress);

}  // namespace banyan
