// Writes a checkpoint's tensors as one safetensors file, or as shards and their index, in one pass:
// what they are is known before their bytes, which come in order and are kept nowhere.
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
  // Begins a new shard before a tensor that would make the last one larger than `shard_bytes_max`.
  CheckpointWriter(std::string folder, std::vector<OutputTensor> tensors, int64_t shard_bytes_max);
  ~CheckpointWriter();

  // The next bytes of the tensors' bytes, one tensor after the other. kIo names the file.
  Status write(std::span<const std::byte> bytes);
  // After the last byte: makes sure that all is on the disk and writes the index.
  Status finish();

  int64_t bytes_total() const { return bytes_total_; }

 private:
  struct Shard {
    std::string name;
    size_t first = 0, count = 0;  // of the tensors
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
  size_t shard_ = 0;        // being written
  int64_t shard_left_ = 0;  // bytes that it still wants
  std::FILE* file_ = nullptr;
};

// Writes `text` as a whole file that is on the disk when this returns.
Status write_file(const std::string& path, std::string_view text);

}  // namespace banyan
