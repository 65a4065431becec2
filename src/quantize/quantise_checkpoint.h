// Writes a quantised copy of a checkpoint: Hugging Face layout, compressed-tensors naming.
//
// The codes equal those of quantization at load time, so a model loaded from the copy computes the
// same bits. Matrices that stay unquantized, norms and biases are copied.
#pragma once

#include <string>
#include <vector>

#include "banyan/config.h"
#include "banyan/status.h"
#include "base/threads/thread_pool.h"
#include "models/registry.h"

namespace banyan {

struct QuantiseOptions {
  std::string folder;                  // an unquantised checkpoint
  std::string out;                     // must be empty or not exist
  std::string format;                  // int8, int4, fp8, mxfp4
  std::vector<std::string> overrides;  // as in EngineConfig::quantization_overrides
  int64_t shard_bytes_max = int64_t{5} << 30;
  ThreadPool* threads = nullptr;
  LoadProgress progress;
};

struct QuantiseResult {
  int64_t bytes_read = 0, bytes_written = 0;  // bytes of tensors
};

// Creates `out` atomically: it is replaced only when everything is complete and flushed to disk,
// and is untouched after an error. Errors: those of loading; a checkpoint that is already
// quantised; a file that cannot be written, with its name.
Result<QuantiseResult> quantise_checkpoint(const QuantiseOptions& options);

}  // namespace banyan
