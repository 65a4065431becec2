// A digest that identifies a checkpoint's tensors: hashes of fixed-size blocks of each tensor's
// stored bytes, combined in order. Blocks do not depend on files, shards or ranks. Ranks can
// therefore hash what they read and exchange block hashes, and resharded checkpoints have the same
// digest.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "banyan/config.h"
#include "banyan/status.h"
#include "base/digest.h"
#include "base/threads/thread_pool.h"
#include "weights/files/checkpoint.h"

namespace banyan {

inline constexpr size_t kHashBlockBytes = size_t{4} << 20;

// Bytes [offset, offset + bytes) of a tensor; only a tensor's last block may be shorter.
struct WeightBlock {
  const TensorInfo* tensor = nullptr;
  size_t offset = 0, bytes = 0;
};

// The blocks of all tensors, in the order in which they are combined.
std::vector<WeightBlock> weight_blocks(const WeightSource& source);

// The hash of each block, read and hashed by all threads. Fails if a block cannot be read.
Status hash_blocks(const WeightSource& source, std::span<const WeightBlock> blocks,
                   ThreadPool& threads, const LoadProgress& progress, std::span<Digest> hashes);

// Combines the names, types and shapes of all tensors with `hashes`, one per weight_blocks().
Digest combine_hashes(const WeightSource& source, std::span<const Digest> hashes);

// Runs all steps above. Reuses hashes in `cache_folder` (unless "") for files that have not
// changed.
Result<Digest> weights_digest(const WeightSource& source, const std::string& cache_folder,
                              ThreadPool& threads, const LoadProgress& progress);

}  // namespace banyan
