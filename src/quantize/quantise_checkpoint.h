// Writes a quantised copy of a checkpoint: Hugging Face layout, compressed-tensors naming.
//
// It has the codes that quantising while loading makes, so that a model loaded from it computes the
// same bits. Matrices that are left as they are, norms and biases are copied.
#pragma once

#include <string>
#include <vector>

#include "banyan/config.h"
#include "banyan/status.h"
#include "base/thread_pool.h"
#include "models/registry.h"

namespace banyan {

struct QuantiseOptions {
  std::string folder;                  // a plain checkpoint
  std::string out;                     // must not exist, or be empty
  std::string format;                  // int8, int4, fp8, mxfp4
  std::vector<std::string> overrides;  // as in EngineConfig::quantization_overrides
  int64_t shard_bytes_max = int64_t{5} << 30;
  ThreadPool* threads = nullptr;
  LoadProgress progress;
};

struct QuantiseResult {
  int64_t bytes_read = 0, bytes_written = 0;  // of tensors
};

// The folder `out` appears when everything in it is complete and on the disk; until then, and after
// an error, it is as it was. Errors: those of loading; a checkpoint that is quantised already; a
// file that cannot be written, named.
Result<QuantiseResult> quantise_checkpoint(const QuantiseOptions& options);

}  // namespace banyan
