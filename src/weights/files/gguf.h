// The tensors of one GGUF file (version 2 or 3, little endian) under the names that Hugging Face
// checkpoints give them, so that it stands in for a folder's safetensors. Its tokenizer and most of
// its metadata are not used: config.json and the tokenizer come from the checkpoint's folder.
//
//   "GGUF"  u32 version  u64 tensors  u64 pairs
//   pairs:    key (u64 length, bytes)  u32 type  value
//   tensors:  name  u32 rank  u64 dimensions[rank], the fastest first  u32 type  u64 offset
//   data, from the next multiple of `general.alignment` on; offsets count from there
//
// The file is hostile until it is checked: after parsing, every tensor has a known type, 1 to 4
// dimensions whose product is its size, and bytes inside the file, and no two overlap. Time and
// memory are linear in the header's length.
//
// llama.cpp turns the rows of q and k of its "llama" architecture so that rotated pairs lie side by
// side; reading turns them back.
//
// Immutable after open(), so any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/file.h"
#include "weights/files/checkpoint.h"

namespace banyan {

struct GgufHeader {
  std::string architecture;  // general.architecture
  int64_t heads = 0;         // <architecture>.attention.head_count; 0: not given
  int64_t kv_heads = 0;
  std::vector<TensorInfo> tensors;  // under the file's own names, in its order; `bytes` in the file
};

// Messages begin with `path`.
Result<GgufHeader> parse_gguf(std::span<const std::byte> file, std::string_view path);

// What a Hugging Face checkpoint calls the tensor; "" for one that it does not have at all; the
// name itself when it is not known.
std::string gguf_tensor_name(std::string_view name);

class GgufFile final : public WeightSource {
 public:
  // kUnsupported: an architecture, tensor type or version that is not read, named.
  static Result<GgufFile> open(const std::string& path);

  const TensorInfo* find(std::string_view name) const override;
  std::vector<const TensorInfo*> tensors() const override;
  Status read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const override;
  const MappedFile* file_of(const TensorInfo&) const override { return &map_; }

 private:
  struct Entry {
    TensorInfo tensor;
    int64_t turned_heads = 0;  // whose rows are turned; 0: none

    std::string_view name() const { return tensor.name; }
  };

  explicit GgufFile(MappedFile map) : map_(std::move(map)) {}
  Status read_bytes(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const;

  MappedFile map_;
  std::vector<Entry> entries_;  // sorted by name
};

}  // namespace banyan
