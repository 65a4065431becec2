// Writes a checkpoint's tensors as one safetensors file, or as shards with an index, in one pass.
// The tensors are declared first; their bytes then arrive in order and are not buffered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "tensor/dtype.h"

namespace banyan {

struct OutputTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;

  int64_t bytes() const;
};

class CheckpointWriter {
 public:
  // Starts a new shard before a tensor that would make the current one exceed `shard_bytes_max`.
  CheckpointWriter(std::string folder, std::vector<OutputTensor> tensors, int64_t shard_bytes_max);
  ~CheckpointWriter();

  // Appends the next bytes, one tensor after the other. kIo names the file.
  Status write(std::span<const std::byte> bytes);
  // Call after the last byte: flushes everything to disk and writes the index.
  Status finish();

  int64_t bytes_total() const { return bytes_total_; }

 private:
  struct Shard {
    std::string name;
    size_t first = 0, count = 0;  // tensors of the shard
    int64_t bytes = 0;
  };

  Status begin_shard();
  Status end_shard();
  Status put(const void* data, size_t bytes);
  std::string header_of(const Shard& shard) const;
  Status write_index() const;

  std::string folder_;
  std::vector<OutputTensor> tensors_;
  std::vector<Shard> shards_;
  int64_t bytes_total_ = 0;
  size_t shard_ = 0;        // the current shard
  int64_t shard_left_ = 0;  // bytes still missing in it
  std::FILE* file_ = nullptr;
};

// Writes a whole file; it is on disk when this returns.
Status write_file(const std::string& path, std::string_view text);

}  // namespace banyan
