// The tensors of a GGUF file (version 2 or 3, little endian; possibly split into several files)
// under their Hugging Face names. Replaces a folder of safetensors.
//
//   "GGUF"  u32 version  u64 tensors  u64 pairs
//   pairs:    base/gguf.h
//   tensors:  name  u32 rank  u64 dimensions[rank], the fastest first  u32 type  u64 offset
//   data, from the next multiple of `general.alignment` on; offsets count from there
//
// The file is untrusted. After parsing, every tensor has a known type, 1 to 4 dimensions whose
// product is its size, and bytes inside the file, and no two overlap. Time and memory are linear in
// the header's length.
//
// Reading undoes the changes of llama.cpp's converter. It swaps rows and changes values
// (gguf_rows.h), stacks the matrices of a layer's experts, which appear here one by one, and splits
// the matrix that expands latents to keys and values, which appears here as one. Layers for
// prediction follow the others in the file.
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
#include "base/gguf.h"
#include "weights/files/checkpoint.h"
#include "weights/files/gguf_architectures.h"
#include "weights/files/gguf_rows.h"

namespace banyan {

struct GgufHeader {
  GgufPairs pairs;
  std::string architecture;  // general.architecture
  std::vector<TensorInfo>
      tensors;  // in the file's order, under its own names; `bytes` point into it
};

// Errors begin with `path`.
Result<GgufHeader> parse_gguf(std::span<const std::byte> file, std::string_view path);

class GgufFile final : public WeightSource {
 public:
  // For a split file, pass the first one, FILE-00001-of-0000N.gguf; it opens all. kUnsupported
  // names an unknown architecture, tensor type or version.
  static Result<GgufFile> open(const std::string& path);

  const TensorInfo* find(std::string_view name) const override;
  std::vector<const TensorInfo*> tensors() const override;
  Status read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const override;
  const MappedFile* file_of(const TensorInfo& tensor) const override;

  const GgufPairs& pairs() const { return pairs_; }
  const GgufArchitecture& architecture() const { return *architecture_; }
  // Divisors of the frequency of each pair, as Llama 3's rotation stores them; empty: none.
  const std::vector<float>& rope_factors() const { return rope_factors_; }
  bool has_long_rope() const {
    return has_long_rope_;
  }  // separate factors for short and long contexts

 private:
  struct Entry {
    TensorInfo tensor;
    size_t map = 0;
    RowSwap swap = {};
    ValueChange change = ValueChange::kNone;  // of f32 values
    bool part = false;                        // part of a joined tensor, not a tensor by itself
    bool joined = false;  // keys and values of latents: `bytes` has a size but no data

    std::string_view name() const { return tensor.name; }
  };

  GgufFile(MappedFile first, GgufPairs pairs) : pairs_(std::move(pairs)) {
    maps_.push_back(std::move(first));
  }
  Status open_others(const std::string& path, std::vector<std::vector<TensorInfo>>& tensors);
  Status add(TensorInfo tensor, size_t map);
  Status add_experts(const TensorInfo& tensor, size_t map);
  Status count_layers();
  void name_prediction(std::string& name) const;
  Status join_latents();
  Result<Entry> joined_latents(const Entry& keys) const;
  Status read_joined(const Entry& entry, size_t offset, std::span<std::byte> to) const;
  Status read_floats(const Entry& entry, int64_t begin, int64_t end, float* to) const;
  Status read_rope_factors(const TensorInfo& tensor, size_t map);
  const Entry& entry_of(const TensorInfo& tensor) const;
  Status read_bytes(const Entry& entry, size_t offset, std::span<std::byte> to) const;
  Status read_stored(const Entry& entry, size_t offset, std::span<std::byte> to) const;
  Status read_swapped(const Entry& entry, size_t offset, std::span<std::byte> to) const;
  Status read_changed(const Entry& entry, size_t offset, std::span<std::byte> to) const;

  std::vector<MappedFile> maps_;
  GgufPairs pairs_;  // of the first file
  const GgufArchitecture* architecture_ = nullptr;
  int64_t layers_ = 0;  // without those for prediction, where these have names of their own
  std::vector<float> rope_factors_;
  bool has_long_rope_ = false;
  std::vector<Entry> entries_;  // sorted by name
};

}  // namespace banyan
