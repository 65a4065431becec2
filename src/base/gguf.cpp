#include "base/gguf.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/checked_math.h"
#include "base/quote.h"

namespace banyan {
namespace {

constexpr uint64_t kKeyBytesMax = 1024;

// Types of values.
enum GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
  kTypes
};
struct TypeFacts {
  const char* name;
  uint64_t bytes;  // 0: string or array
};
constexpr std::array<TypeFacts, kTypes> kTypeFacts = {{{"u8", 1},
                                                       {"i8", 1},
                                                       {"u16", 2},
                                                       {"i16", 2},
                                                       {"u32", 4},
                                                       {"i32", 4},
                                                       {"f32", 4},
                                                       {"bool", 1},
                                                       {"string", 0},
                                                       {"array", 0},
                                                       {"u64", 8},
                                                       {"i64", 8},
                                                       {"f64", 8}}};

double shortest_decimal(float value) {
  char text[64];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  double number = value;
  if (error == std::errc() && std::isfinite(value)) std::from_chars(text, end, number);
  return number;
}

}  // namespace

bool is_gguf_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream stream(path, std::ios::binary);
  char head[4] = {};
  return stream.read(head, sizeof head) && std::string_view(head, sizeof head) == "GGUF";
}

Result<std::string_view> GgufCursor::text(std::string_view what, uint64_t bytes_max) {
  auto bytes = TRY(number<uint64_t>(what));
  if (bytes > file_.size() - at_) return cut(what);
  if (bytes > bytes_max) {
    return corrupt("{}: a {} of {} bytes exceeds the limit of {}", path_, what, bytes, bytes_max);
  }
  std::string_view value(reinterpret_cast<const char*>(file_.data() + at_), bytes);
  at_ += bytes;
  return value;
}

Status GgufCursor::skip(uint64_t count, uint64_t bytes_each) {
  std::optional<uint64_t> bytes = checked_multiply(count, bytes_each);
  if (!bytes || *bytes > file_.size() - at_) return cut("value");
  at_ += *bytes;
  return {};
}

std::unexpected<Error> GgufCursor::cut(std::string_view what) const {
  return corrupt("{}: ends inside a {} at byte {}; is the file truncated?", path_, what, at_);
}

Result<GgufPairs> GgufPairs::parse(std::span<const std::byte> file, std::string_view path) {
  if (file.size() < 4 || std::memcmp(file.data(), "GGUF", 4) != 0) {
    return corrupt("{}: not a GGUF file", path);
  }
  GgufPairs pairs;
  pairs.file_ = file;
  pairs.path_ = path;
  GgufCursor cursor(file, pairs.path_, 4);
  auto version = TRY(cursor.number<uint32_t>("version"));
  if (version != 2 && version != 3) {
    return unsupported("{}: GGUF version {} is not supported; supported: 2, 3", path, version);
  }
  pairs.tensors_ = TRY(cursor.number<uint64_t>("number of tensors"));
  auto count = TRY(cursor.number<uint64_t>("number of key-value pairs"));
  for (uint64_t i = 0; i < count; ++i) TRY(pairs.read_pair(cursor));
  pairs.end_ = cursor.at();
  std::ranges::sort(pairs.pairs_, {}, &Pair::key);
  auto twice = std::ranges::adjacent_find(pairs.pairs_, {}, &Pair::key);
  if (twice == pairs.pairs_.end()) return pairs;
  return corrupt("{}: the key {} appears twice", path, quote(twice->key));
}

Status GgufPairs::read_pair(GgufCursor& cursor) {
  Pair pair{.key = TRY(cursor.text("key", kKeyBytesMax))};
  auto read_type = [&]() -> Result<uint32_t> {
    auto type = TRY(cursor.number<uint32_t>("value type"));
    if (type < kTypes) return type;
    return corrupt("{}: the value of {} has the unknown type {}", path_, quote(pair.key), type);
  };
  pair.type = TRY(read_type());
  pair.is_array = pair.type == kArray;
  if (pair.is_array) {
    pair.type = TRY(read_type());
    pair.count = TRY(cursor.number<uint64_t>("array length"));
    if (pair.type == kArray) {
      return unsupported("{}: {} is an array of arrays", path_, quote(pair.key));
    }
  }
  pair.at = cursor.at();
  if (pair.type == kString) {
    for (uint64_t i = 0; i < pair.count; ++i) TRY(cursor.text("string"));  // at least 8 bytes each
  } else {
    TRY(cursor.skip(pair.count, kTypeFacts[pair.type].bytes));
  }
  pairs_.push_back(pair);
  return {};
}

const GgufPairs::Pair* GgufPairs::find(std::string_view key) const {
  auto found = std::ranges::lower_bound(pairs_, key, {}, &Pair::key);
  return found != pairs_.end() && found->key == key ? &*found : nullptr;
}

std::vector<std::string_view> GgufPairs::keys() const {
  std::vector<std::string_view> keys;
  for (const Pair& pair : pairs_) keys.push_back(pair.key);
  return keys;
}

std::unexpected<Error> GgufPairs::wrong(const Pair& pair, std::string_view expected) const {
  std::string type = kTypeFacts[pair.type].name;
  if (pair.is_array) type = fmt::format("an array of {} of type {}", pair.count, type);
  return corrupt("{}: {} is {}, not {}", path_, quote(pair.key), type, expected);
}

Result<std::optional<std::string_view>> GgufPairs::text(std::string_view key) const {
  const Pair* pair = find(key);
  if (pair == nullptr) return std::nullopt;
  if (pair->is_array || pair->type != kString) return wrong(*pair, "a string");
  GgufCursor cursor = cursor_of(*pair);
  std::string_view text = TRY(cursor.text("value"));
  if (!simdjson::validate_utf8(text.data(), text.size()))
    return corrupt("{}: {} is not UTF-8", path_, quote(key));
  return text;
}

Result<int64_t> GgufPairs::read_integer(GgufCursor& cursor, const Pair& pair) const {
  switch (pair.type) {
    case kU8:
      return TRY(cursor.number<uint8_t>("value"));
    case kI8:
      return TRY(cursor.number<int8_t>("value"));
    case kU16:
      return TRY(cursor.number<uint16_t>("value"));
    case kI16:
      return TRY(cursor.number<int16_t>("value"));
    case kU32:
      return TRY(cursor.number<uint32_t>("value"));
    case kI32:
      return TRY(cursor.number<int32_t>("value"));
    case kI64:
      return TRY(cursor.number<int64_t>("value"));
    case kU64: {
      auto value = TRY(cursor.number<uint64_t>("value"));
      if (std::in_range<int64_t>(value)) return static_cast<int64_t>(value);
      return corrupt("{}: {} is {}, which is too large for a signed 64-bit integer", path_,
                     quote(pair.key), value);
    }
    default:
      return wrong(pair, "an integer");
  }
}

Result<double> GgufPairs::read_number(GgufCursor& cursor, const Pair& pair) const {
  double value = 0;
  if (pair.type == kF32) {
    value = shortest_decimal(TRY(cursor.number<float>("value")));
  } else if (pair.type == kF64) {
    value = TRY(cursor.number<double>("value"));
  } else {
    return TRY(read_integer(cursor, pair));
  }
  if (std::isfinite(value)) return value;
  return corrupt("{}: {} is {}", path_, quote(pair.key), value);
}

Result<Json> GgufPairs::value(std::string_view key) const {
  const Pair* pair = find(key);
  if (pair == nullptr) return Json();
  if (pair->is_array) return wrong(*pair, "a single value");
  if (pair->type == kString) return Json(*TRY(text(key)));
  if (pair->type == kBool) return Json(*TRY(flag(key)));
  if (pair->type == kF32 || pair->type == kF64) return Json(*TRY(number(key)));
  return Json(*TRY(integer(key)));
}

Result<std::optional<int64_t>> GgufPairs::integer(std::string_view key) const {
  const Pair* pair = find(key);
  if (pair == nullptr) return std::nullopt;
  if (pair->is_array) return wrong(*pair, "an integer");
  GgufCursor cursor = cursor_of(*pair);
  return TRY(read_integer(cursor, *pair));
}

Result<std::optional<double>> GgufPairs::number(std::string_view key) const {
  const Pair* pair = find(key);
  if (pair == nullptr) return std::nullopt;
  if (pair->is_array || pair->type == kBool || pair->type == kString) {
    return wrong(*pair, "a number");
  }
  GgufCursor cursor = cursor_of(*pair);
  return TRY(read_number(cursor, *pair));
}

Result<std::optional<bool>> GgufPairs::flag(std::string_view key) const {
  const Pair* pair = find(key);
  if (pair == nullptr) return std::nullopt;
  if (pair->is_array || pair->type != kBool) return wrong(*pair, "a bool");
  GgufCursor cursor = cursor_of(*pair);
  return TRY(cursor.number<uint8_t>("value")) != 0;
}

Result<std::vector<std::string_view>> GgufPairs::texts(std::string_view key) const {
  std::vector<std::string_view> list;
  const Pair* pair = find(key);
  if (pair == nullptr) return list;
  if (!pair->is_array || pair->type != kString) return wrong(*pair, "an array of strings");
  list.reserve(pair->count);
  GgufCursor cursor = cursor_of(*pair);
  for (uint64_t i = 0; i < pair->count; ++i) list.push_back(TRY(cursor.text("value")));
  return list;
}

Result<std::vector<int64_t>> GgufPairs::integers(std::string_view key) const {
  std::vector<int64_t> list;
  const Pair* pair = find(key);
  if (pair == nullptr) return list;
  GgufCursor cursor = cursor_of(*pair);
  for (uint64_t i = 0; i < pair->count; ++i) {
    bool flag = pair->type == kBool;
    list.push_back(flag ? TRY(cursor.number<uint8_t>("value")) != 0
                        : TRY(read_integer(cursor, *pair)));
  }
  return list;
}

Result<std::vector<double>> GgufPairs::numbers(std::string_view key) const {
  std::vector<double> list;
  const Pair* pair = find(key);
  if (pair == nullptr) return list;
  if (pair->type == kBool || pair->type == kString) return wrong(*pair, "an array of numbers");
  GgufCursor cursor = cursor_of(*pair);
  list.reserve(pair->count);
  for (uint64_t i = 0; i < pair->count; ++i) list.push_back(TRY(read_number(cursor, *pair)));
  return list;
}

}  // namespace banyan
