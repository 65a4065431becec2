// Heap and Dict (value.h), and the makers of values and the budget of a rendering (runtime.h).
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/hash.h"
#include "jinja/library/unicode.h"
#include "jinja/runtime.h"

namespace banyan::jinja {
namespace {

constexpr size_t kBlockBytes = 64 << 10;
constexpr size_t kGrowingBytesMin = 256;  // shorter strings are copied
constexpr int64_t kSmallDict = 8;         // dicts up to this size are searched linearly

uint64_t hash_of_number(const Value& key) {
  double d = key.as_float();
  if (d == 0) d = 0;  // -0.0 equals 0
  return hash_number(std::bit_cast<uint64_t>(d));
}

Result<uint64_t> hash_value(Runtime& rt, const Value& key) {
  switch (key.kind) {
    case Kind::kString:
      TRY(rt.charge_bytes(key.text().size()));
      return hash_bytes(key.text());
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return hash_of_number(key);
    case Kind::kNone:
    case Kind::kUndefined:
      return 7 + static_cast<uint64_t>(key.kind);
    case Kind::kTuple: {
      Nested nested(rt);
      TRY(rt.check_depth());
      TRY(rt.charge(key.items->size + 1));
      uint64_t h = 3;
      for (const Value& item : key.elements()) {
        h = (h ^ TRY(hash_value(rt, item))) * 0x9e3779b97f4a7c15u;
      }
      return h;
    }
    case Kind::kList:
    case Kind::kDict:
    case Kind::kView:
      return invalid_argument("unhashable type: '{}'", type_name(key));
    default:
      return reinterpret_cast<uint64_t>(key.items);
  }
}

void add_slot(Dict& dict, uint64_t hash, int32_t entry) {
  uint64_t mask = static_cast<uint64_t>(dict.slot_count) - 1;
  uint64_t at = hash & mask;
  while (dict.slots[at] != 0) at = (at + 1) & mask;
  dict.slots[at] = entry + 1;
}

void grow(Runtime& rt, Dict& dict) {
  int64_t capacity = std::max<int64_t>(4, dict.capacity * 2);
  auto* entries = rt.heap.make<Dict::Entry>(capacity);
  std::copy_n(dict.entries, dict.size, entries);
  dict.entries = entries;
  dict.capacity = capacity;
  if (capacity <= kSmallDict) return;
  dict.slot_count = capacity * 2;
  dict.slots = rt.heap.make<int32_t>(dict.slot_count);
  for (int64_t i = 0; i < dict.size; ++i) {
    add_slot(dict, dict.entries[i].hash, static_cast<int32_t>(i));
  }
}

// Calls `same(entry)` for entries whose hash is `hash` until it returns true or an error. Charges
// for every entry visited, since keys can be chosen to collide.
template <class Same>
Result<int64_t> probe(Runtime& rt, const Dict& dict, uint64_t hash, Same same) {
  if (dict.slots == nullptr) {
    for (int64_t i = 0; i < dict.size; ++i) {
      if (dict.entries[i].hash == hash && TRY(same(dict.entries[i]))) return i;
    }
    return -1;
  }
  uint64_t mask = static_cast<uint64_t>(dict.slot_count) - 1;
  int64_t passed = 0;
  for (uint64_t at = hash & mask; dict.slots[at] != 0; at = (at + 1) & mask) {
    if (++passed % 8 == 0) TRY(rt.charge());
    int64_t i = dict.slots[at] - 1;
    if (dict.entries[i].hash == hash && TRY(same(dict.entries[i]))) return i;
  }
  return -1;
}

Result<int64_t> find_entry(Runtime& rt, const Dict& dict, const Value& key, uint64_t hash) {
  return probe(rt, dict, hash, [&](const Dict::Entry& entry) -> Result<bool> {
    if (identical(entry.key, key)) return true;
    return equals(rt, entry.key, key);
  });
}

}  // namespace

void* Heap::allocate(size_t size, size_t alignment) {
  size_t padding = (alignment - reinterpret_cast<uintptr_t>(free_) % alignment) % alignment;
  if (padding + size > left_) {
    // A large object gets its own block, so that the rest of the current block is not wasted.
    bool large = size > kBlockBytes / 4;
    size_t block = large ? size : kBlockBytes;
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block));
    bytes_ += block;
    if (large) return blocks_.back().get();
    free_ = blocks_.back().get();
    left_ = block;
    padding = 0;
  }
  void* result = free_ + padding;
  free_ += padding + size;
  left_ -= padding + size;
  return result;
}

std::string_view Heap::copy(std::string_view text) {
  if (text.empty()) return {};
  char* bytes = static_cast<char*>(allocate(text.size(), 1));
  std::memcpy(bytes, text.data(), text.size());
  return {bytes, text.size()};
}

bool Heap::in_place(const void* front, size_t front_bytes, size_t more_bytes) const {
  const std::byte* end = static_cast<const std::byte*>(front) + front_bytes;
  return std::any_of(growing_.begin(), growing_.end(), [&](const Growing& growing) {
    return growing.end == end && growing.left >= more_bytes;
  });
}

std::byte* Heap::extend(const void* front, size_t front_bytes, size_t more_bytes,
                        size_t alignment) {
  auto* begin = static_cast<const std::byte*>(front);
  const size_t size = front_bytes + more_bytes;
  auto growing = std::find_if(growing_.begin(), growing_.end(), [&](const Growing& candidate) {
    return candidate.end == begin + front_bytes;
  });
  const bool grows = growing != growing_.end() && front_bytes > 0;
  if (grows && growing->left >= more_bytes) {
    growing->end += more_bytes;
    growing->left -= more_bytes;
    return const_cast<std::byte*>(begin);
  }
  // A string that is extended a second time gets spare room.
  const size_t room = grows ? size : 0;
  auto* bytes = static_cast<std::byte*>(allocate(size + room, alignment));
  if (front_bytes > 0) std::memcpy(bytes, front, front_bytes);
  if (size < kGrowingBytesMin) return bytes;
  if (!grows) growing = growing_.begin() + (oldest_growing_++ % growing_.size());
  *growing = {bytes + size, room};
  return bytes;
}

Result<const Value*> dict_find(Runtime& rt, const Dict& dict, std::string_view key) {
  TRY(rt.charge_bytes(key.size()));
  int64_t found =
      TRY(probe(rt, dict, hash_bytes(key), [&](const Dict::Entry& entry) -> Result<bool> {
        return entry.key.is_string() && entry.key.text() == key;
      }));
  return found < 0 ? nullptr : &dict.entries[found].value;
}

Result<const Value*> dict_find(Runtime& rt, const Dict& dict, const Value& key) {
  int64_t found = TRY(find_entry(rt, dict, key, TRY(hash_value(rt, key))));
  return found < 0 ? nullptr : &dict.entries[found].value;
}

Status dict_set(Runtime& rt, Dict& dict, const Value& key, const Value& value) {
  TRY(rt.charge());
  uint64_t hash = TRY(hash_value(rt, key));
  int64_t found = TRY(find_entry(rt, dict, key, hash));
  if (found >= 0) {
    dict.entries[found].value = value;
    return {};
  }
  if (dict.size == dict.capacity) grow(rt, dict);
  dict.entries[dict.size] = {key, value, hash};
  if (dict.slots != nullptr) add_slot(dict, hash, static_cast<int32_t>(dict.size));
  ++dict.size;
  return {};
}

std::unexpected<Error> Runtime::out_of_budget(int64_t units) {
  fuel_ = 0;
  if (units > units_max_ || heap.bytes() > memory_bytes_max_) {
    return exhausted("the template needs more than {} bytes of memory", memory_bytes_max_);
  }
  return exhausted("the template takes more than {} evaluation steps", fuel_max_);
}

std::unexpected<Error> Runtime::too_deep() const {
  return exhausted("the template nests or recurses more than {} levels deep", depth_max_);
}

Value borrow(Runtime& rt, std::string_view text, bool safe) {
  auto* string = rt.heap.make<String>();
  string->text = text;
  string->safe = safe;
  Value value{.kind = Kind::kString, .integer = 0};
  value.string = string;
  return value;
}

Result<Value> make_string(Runtime& rt, std::string_view text, bool safe) {
  TRY(rt.charge_bytes(text.size()));
  return borrow(rt, rt.heap.copy(text), safe);
}

Result<Value> join_strings(Runtime& rt, std::string_view a, std::string_view b, bool safe) {
  if (b.empty()) return borrow(rt, a, safe);
  if (!rt.heap.in_place(a.data(), a.size(), b.size())) TRY(rt.charge_bytes(a.size()));
  TRY(rt.charge_bytes(b.size()));
  std::byte* joined = rt.heap.extend(a.data(), a.size(), b.size(), 1);
  std::memcpy(joined + a.size(), b.data(), b.size());
  return borrow(rt, {reinterpret_cast<const char*>(joined), a.size() + b.size()}, safe);
}

Result<Value> join_lists(Runtime& rt, const Value& a, const Value& b) {
  const size_t size = a.items->size, more = b.items->size;
  const size_t a_bytes = size * sizeof(Value), b_bytes = more * sizeof(Value);
  if (!rt.heap.in_place(a.items->data, a_bytes, b_bytes)) TRY(rt.charge_bytes(a_bytes));
  TRY(rt.charge_bytes(b_bytes));
  std::byte* joined = rt.heap.extend(a.items->data, a_bytes, b_bytes, alignof(Value));
  std::uninitialized_copy_n(b.items->data, more, reinterpret_cast<Value*>(joined + a_bytes));
  auto* items = rt.heap.make<Items>();
  *items = {reinterpret_cast<const Value*>(joined), a.items->size + b.items->size};
  Value value{.kind = a.kind, .integer = 0};
  value.items = items;
  return value;
}

Result<Value> make_list(Runtime& rt, std::span<const Value> items, Kind kind) {
  TRY(rt.charge(items.size() / 4 + 1));
  auto* data = rt.heap.make<Value>(items.size());
  std::copy(items.begin(), items.end(), data);
  auto* list = rt.heap.make<Items>();
  *list = {data, std::ssize(items)};
  Value value{.kind = kind, .integer = 0};
  value.items = list;
  return value;
}

Result<Value> make_generator(Runtime& rt, std::span<const Value> items, const Error* error) {
  Value list = TRY(make_list(rt, items));
  auto* generator = rt.heap.make<Generator>();
  *generator = {*list.items, 0, error};
  Value value{.kind = Kind::kGenerator, .integer = 0};
  value.generator = generator;
  return value;
}

namespace {

Value new_undefined(Runtime& rt, Undefined content) {
  auto* undefined = rt.heap.make<Undefined>();
  *undefined = content;
  Value value{.kind = Kind::kUndefined, .integer = 0};
  value.undefined = undefined;
  return value;
}

}  // namespace

Value make_undefined(Runtime& rt, std::string_view name, std::string_view owner) {
  // Reuses the last one, since templates repeat lookups: is each character of a text an image?
  constexpr size_t kShort = 64;
  if (rt.last_undefined.is_undefined() && name.size() <= kShort) {
    const Undefined& last = *rt.last_undefined.undefined;
    if (last.name == name && last.owner == owner) return rt.last_undefined;
  }
  Value value = new_undefined(rt, {name, owner, false});
  return name.size() <= kShort ? rt.last_undefined = value : value;
}

Value make_undefined_message(Runtime& rt, std::string_view message) {
  return new_undefined(rt, {message, {}, true});
}

Dict* make_dict(Runtime& rt) {
  return rt.heap.make<Dict>();
}

Value dict_value(const Dict* dict) {
  Value value{.kind = Kind::kDict, .integer = 0};
  value.dict = dict;
  return value;
}

}  // namespace banyan::jinja
