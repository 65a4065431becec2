// One safetensors file: a JSON header that gives the location of each tensor, then the data.
//
//   [8 bytes: header length n, little endian][n bytes: header][data]
//   header: {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
//            "__metadata__": {"key": "value", ...}}          offsets count from the data's start
//
// The file is untrusted. After open(), every tensor has a known dtype, a shape whose product is its
// byte count, and bytes inside the file. Tensors do not overlap and cover the data without holes
// (as the reference implementation requires). A tensor may start at any byte: readers must not
// assume alignment.
//
// Immutable after open(), so any thread may read. The file owns the map that `bytes` points into.
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

// Numbers stored in blocks with their own scales (weights/files/gguf_blocks.h).
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
  BlockFormat blocks = BlockFormat::kNone;  // only in GGUF files
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // sorted by name, so a lookup is a binary search
  std::map<std::string, std::string> metadata;
};

// Validates `file`, the bytes of a whole file, and lists its tensors; their `bytes` are views into
// `file`. Time is O(n log n) and memory O(n) in the header's length, for any header. kCorrupt: the
// header violates the format or contradicts the file's size; kUnsupported: an unknown dtype. Errors
// begin with `path`.
Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file, std::string_view path);

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::string& path);

  const std::string& path() const { return map_.path(); }
  const MappedFile& map() const { return map_; }
  std::span<const TensorInfo> tensors() const { return header_.tensors; }  // sorted by name
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  // nullptr if there is no tensor of that name.
  const TensorInfo* find(std::string_view name) const;

  // Copies `to.size()` bytes of `tensor` (one of ours) from byte `offset`. kIo if the file was
  // truncated after it was opened; reading `bytes` directly would raise SIGBUS.
  Status read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const;

 private:
  SafetensorsFile(MappedFile map, SafetensorsHeader header)
      : map_(std::move(map)), header_(std::move(header)) {}

  MappedFile map_;
  SafetensorsHeader header_;
};

}  // namespace banyan
