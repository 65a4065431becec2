// The tensors of a Hugging Face checkpoint folder: `model.safetensors`, or the shards that
// `model.safetensors.index.json` names. This only checks that the index and its shards list the
// same tensors; the Builder checks which tensors a model needs.
//
// Immutable after open(), so any thread may read. The checkpoint owns the maps that every
// TensorInfo points into; a TensorInfo stays valid when the Checkpoint is moved.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "banyan/status.h"
#include "weights/files/safetensors.h"

namespace banyan {

// The source of a Builder's tensors: a checkpoint, or a substitute in tests and benchmarks.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // nullptr if there is no tensor of that name.
  virtual const TensorInfo* find(std::string_view name) const = 0;
  // Every tensor once, sorted by name.
  virtual std::vector<const TensorInfo*> tensors() const = 0;
  // Copies `to.size()` bytes of `tensor` (one of ours) from byte `offset`. Loaders use this instead
  // of `tensor.bytes`, so that a file truncated meanwhile is an error and not a SIGBUS.
  virtual Status read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const = 0;
  // The file that contains `tensor` (one of ours); null if it is in no file.
  virtual const MappedFile* file_of(const TensorInfo&) const { return nullptr; }
};

// The index of a sharded checkpoint: pairs of tensor name and file name, sorted by tensor. A file
// name is a single component ending in .safetensors, never a path.
using ShardIndex = std::vector<std::pair<std::string, std::string>>;
Result<ShardIndex> parse_shard_index(std::string_view text, std::string_view path);

class Checkpoint final : public WeightSource {
 public:
  // kNotFound names the missing file; kUnsupported: the folder has weights of another format;
  // kCorrupt: a file violates its format, or the index contradicts the shards.
  static Result<Checkpoint> open(const std::string& folder);

  const TensorInfo* find(std::string_view name) const override;
  std::vector<const TensorInfo*> tensors() const override;
  Status read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const override;
  const MappedFile* file_of(const TensorInfo& tensor) const override;

  std::span<const SafetensorsFile> files() const { return files_; }  // sorted by path

 private:
  struct Entry {
    const TensorInfo* tensor;  // in files_[file]
    size_t file;

    std::string_view name() const { return tensor->name; }
  };

  // Fails if two files have a tensor of the same name.
  static Result<Checkpoint> merge(std::vector<SafetensorsFile> files);
  static Result<Checkpoint> open_shards(const std::string& folder);
  Status check_against(const ShardIndex& index, const std::string& index_path) const;
  const Entry* find_entry(std::string_view name) const;
  const SafetensorsFile& file_with(const TensorInfo& tensor) const;

  std::vector<SafetensorsFile> files_;
  std::vector<Entry> entries_;  // sorted by name
};

}  // namespace banyan
