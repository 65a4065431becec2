// The key-value pairs at the start of a GGUF file (version 2 or 3, little endian), which describe
// the model and its tokenizer:
//
//   "GGUF"  u32 version  u64 tensors  u64 pairs
//   pairs:    key (u64 length, bytes)  u32 type  value
//
// The list of tensors follows; weights/files/gguf.h reads it.
//
// The file is untrusted. Parsing checks that every value lies in the file and that keys are unique,
// in time and memory linear in the header's length. The pairs point into the file, which must
// outlive them. Immutable; any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/error.h"
#include "base/json.h"

namespace banyan {

// Whether the path is a regular file that starts with the GGUF magic.
bool is_gguf_file(const std::string& path);

// Reads numbers and strings sequentially from an offset of a GGUF file. Errors begin with the path.
class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> file, std::string_view path, size_t at = 0)
      : file_(file), path_(path), at_(at) {}

  size_t at() const { return at_; }

  template <class T>
  Result<T> number(std::string_view what) {
    T value;
    if (file_.size() - at_ < sizeof(T)) return cut(what);
    std::memcpy(&value, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  Result<std::string_view> text(std::string_view what, uint64_t bytes_max = UINT64_MAX);
  Status skip(uint64_t count, uint64_t bytes_each);

 private:
  std::unexpected<Error> cut(std::string_view what) const;

  std::span<const std::byte> file_;
  std::string_view path_;
  size_t at_;
};

class GgufPairs {
 public:
  // `path` names the file in errors.
  static Result<GgufPairs> parse(std::span<const std::byte> file, std::string_view path);

  const std::string& path() const { return path_; }
  uint64_t tensors() const { return tensors_; }  // the count that the file states
  size_t end() const { return end_; }            // offset of their list

  bool has(std::string_view key) const { return find(key) != nullptr; }
  std::vector<std::string_view> keys() const;  // sorted

  // Returns nothing, or an empty list, if the key is absent; kCorrupt with the key and its value or
  // type if it has another type. An integer may have any integer type; a number also any of these.
  // An f32 is read as the shortest decimal that rounds to it, as config.json had it before
  // conversion.
  Result<std::optional<std::string_view>> text(std::string_view key) const;  // valid UTF-8
  Result<std::optional<int64_t>> integer(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> flag(std::string_view key) const;
  // A string, number or flag as JSON; null if the key is absent.
  Result<Json> value(std::string_view key) const;
  // Lists. A single number is a list of one; flags are 0 and 1.
  Result<std::vector<std::string_view>> texts(std::string_view key) const;  // any bytes
  Result<std::vector<int64_t>> integers(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;

 private:
  struct Pair {
    std::string_view key;
    uint32_t type = 0;  // type of the value, or of an array's elements
    bool is_array = false;
    uint64_t count = 1;
    size_t at = 0;  // file offset of the first value
  };

  const Pair* find(std::string_view key) const;
  Status read_pair(GgufCursor& cursor);
  GgufCursor cursor_of(const Pair& pair) const { return {file_, path_, pair.at}; }
  Result<int64_t> read_integer(GgufCursor& cursor, const Pair& pair) const;
  Result<double> read_number(GgufCursor& cursor, const Pair& pair) const;
  std::unexpected<Error> wrong(const Pair& pair, std::string_view expected) const;

  std::span<const std::byte> file_;
  std::string path_;
  uint64_t tensors_ = 0;
  size_t end_ = 0;
  std::vector<Pair> pairs_;  // sorted by key
};

}  // namespace banyan
