// One safetensors file: a JSON header that says where each tensor's bytes lie, then the bytes.
//
//   [8 bytes: header length n, little endian][n bytes: header][data]
//   header: {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
//            "__metadata__": {"key": "value", ...}}          offsets count from the data's start
//
// The file is hostile until it is checked: after open() succeeds, every tensor has a known dtype,
// a shape whose product is its byte count, and bytes inside the file; tensors do not overlap, and
// together they cover the data without a hole (as the format's reference implementation demands).
// A tensor may start at any byte: readers must not assume that it is aligned.
//
// Immutable after open(), so any thread may read. The file owns the map that `bytes` look into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/file.h"
#include "tensor/dtype.h"

namespace banyan {

// Numbers that lie in blocks with scales of their own (weights/files/gguf_blocks.h).
enum class BlockFormat : uint8_t {
  kNone,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kMxfp4,
  kQ2_K,
  kQ3_K,
  kIq4Nl,
  kIq4Xs,
};

struct TensorInfo {
  std::string name;
  DType dtype;                              // U8 for blocks
  std::vector<int64_t> shape;               // empty for a scalar; a dimension may be 0
  std::span<const std::byte> bytes;         // row major, little endian; a view into the map
  BlockFormat blocks = BlockFormat::kNone;  // other than safetensors files have
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // sorted by name, so a lookup is a binary search
  std::map<std::string, std::string> metadata;
};

// Checks `file`, the bytes of a whole file, and lists its tensors; their `bytes` are views into
// `file`. Time is O(n log n) and memory O(n) in the header's length, whatever the header says.
// kCorrupt: the header contradicts the format or the file's size; kUnsupported: a dtype that this
// build does not know. Messages begin with `path`.
Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file, std::string_view path);

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::string& path);

  const std::string& path() const { return map_.path(); }
  const MappedFile& map() const { return map_; }
  std::span<const TensorInfo> tensors() const { return header_.tensors; }  // sorted by name
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  // nullptr when there is no tensor of that name.
  const TensorInfo* find(std::string_view name) const;

  // Copies `to.size()` bytes of `tensor`, one of ours, from its byte `offset` on. kIo when the
  // file was truncated since it was opened; reading `bytes` directly would then raise SIGBUS.
  Status read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const;

 private:
  SafetensorsFile(MappedFile map, SafetensorsHeader header)
      : map_(std::move(map)), header_(std::move(header)) {}

  MappedFile map_;
  SafetensorsHeader header_;
};

}  // namespace banyan
