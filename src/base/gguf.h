// The key-value pairs at the beginning of a GGUF file (version 2 or 3, little endian), which say
// what its model and its tokenizer are:
//
//   "GGUF"  u32 version  u64 tensors  u64 pairs
//   pairs:    key (u64 length, bytes)  u32 type  value
//
// The list of tensors comes next, which weights/files/gguf.h reads.
//
// The file is hostile until it is checked: after parsing, every value lies in the file and no key
// is there twice. Time and memory are linear in the header's length. The pairs look into the file,
// which must outlive them. Immutable; any thread may read.
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

// Whether the path leads to a regular file that begins as a GGUF file does.
bool is_gguf_file(const std::string& path);

// Reads numbers and strings from a place in a GGUF file on. Messages begin with the path.
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
  // `path` names the file in messages.
  static Result<GgufPairs> parse(std::span<const std::byte> file, std::string_view path);

  const std::string& path() const { return path_; }
  uint64_t tensors() const { return tensors_; }  // how many the file says it has
  size_t end() const { return end_; }            // where their list begins

  bool has(std::string_view key) const { return find(key) != nullptr; }
  std::vector<std::string_view> keys() const;  // sorted

  // Nothing, or an empty list, where the key is absent; kCorrupt, with the key and its value or
  // type, where it is something else. An integer may be of any integer type, and a number any of
  // these too. An f32 is the shortest decimal number that rounds to it, which is what a config.json
  // had before it was stored.
  Result<std::optional<std::string_view>> text(std::string_view key) const;  // valid UTF-8
  Result<std::optional<int64_t>> integer(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> flag(std::string_view key) const;
  // A string, number or flag as JSON has it; null where the key is absent.
  Result<Json> value(std::string_view key) const;
  // Lists; of numbers, one alone is a list of one, and flags are 0 and 1.
  Result<std::vector<std::string_view>> texts(std::string_view key) const;  // any bytes
  Result<std::vector<int64_t>> integers(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;

 private:
  struct Pair {
    std::string_view key;
    uint32_t type = 0;  // of the value, or of an array's elements
    bool is_array = false;
    uint64_t count = 1;
    size_t at = 0;  // the first value's place in the file
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
