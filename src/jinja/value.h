// Values of the template language: Python's, as far as templates can see them.
//
// A Value is 16 bytes and trivially copyable. Everything it points to lives in a Heap and is freed
// with it at once. This avoids reference counts, leaks from cycles, and deep recursion in
// destructors when a hostile template nests values. Lists, tuples, dicts and strings are immutable
// once a template can reach them (the sandbox rejects append, update, ...), so they are shared
// freely. Only namespaces, cyclers, joiners, loops and generators have state.
//
// Not thread-safe. A Heap filled while parsing is only read while rendering.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "banyan/status.h"

namespace banyan::jinja {

class Runtime;
struct Stmt;
struct Scope;
struct Dict;
struct Loop;

enum class Kind : uint8_t {
  kAbsent,  // internal: an argument that was not given
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kView,
  kRange,
  kGenerator,
  kNamespace,
  kFunction,
  kMacro,
  kLoop,
  kCycler,
  kJoiner,
};

struct Undefined {
  std::string_view name;   // the name looked up; with is_message, the whole message
  std::string_view owner;  // the type in which it was looked up; empty for a variable
  bool is_message = false;
};

struct String {
  std::string_view text;        // UTF-8
  bool safe = false;            // a Markup, made by |safe or |escape
  mutable int64_t length = -1;  // in code points; -1 until computed
};

struct Value;

struct Items {
  const Value* data = nullptr;
  int64_t size = 0;
  bool group = false;  // a pair from groupby, with the attributes grouper and list
};

struct View {
  enum class What : uint8_t { kKeys, kValues, kItems };
  const Dict* dict = nullptr;
  What what = What::kKeys;
};

struct Range {
  int64_t start = 0, stop = 0, step = 1, size = 0;

  // Element `i` < size, or the position just before or after. Computed so that only a result that
  // exceeds 64 bits would overflow, not step * i.
  int64_t at(int64_t i) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
  }
};

// The result of map, select, batch, ...: evaluated eagerly, but readable once and without a length,
// like Python's generators. An error is reported when the reader reaches it.
struct Generator {
  Items items;
  int64_t next = 0;
  const Error* error = nullptr;
};

struct Namespace {
  Dict* attributes = nullptr;
};

struct Builtin;

struct Macro {
  std::string_view name;
  const Stmt* definition = nullptr;
  Scope* closure = nullptr;
};

struct Cycler {
  Items items;
  int64_t position = 0;
};

struct Joiner {
  const String* separator = nullptr;
  bool used = false;
};

struct Function;

struct Value {
  Kind kind = Kind::kAbsent;
  union {
    bool boolean;
    int64_t integer = 0;
    double real;
    const Undefined* undefined;
    const String* string;
    const Items* items;  // list or tuple
    const Dict* dict;
    const View* view;
    const Range* range;
    Generator* generator;
    Namespace* name_space;
    const Function* function;
    const Macro* macro;
    Loop* loop;
    Cycler* cycler;
    Joiner* joiner;
  };

  bool is(Kind k) const { return kind == k; }
  bool absent() const { return kind == Kind::kAbsent; }
  bool is_undefined() const { return kind == Kind::kUndefined; }
  bool is_none() const { return kind == Kind::kNone; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
  bool is_integral() const { return kind == Kind::kInt || kind == Kind::kBool; }
  bool is_number() const { return is_integral() || kind == Kind::kFloat; }

  // REQUIRES: is_string().
  std::string_view text() const { return string->text; }
  bool safe() const { return string->safe; }
  // REQUIRES: is_sequence().
  std::span<const Value> elements() const { return std::span(items->data, items->size); }
  // REQUIRES: is_integral() and is_number().
  int64_t as_int() const { return kind == Kind::kBool ? int64_t{boolean} : integer; }
  double as_float() const { return kind == Kind::kFloat ? real : as_int(); }
};

inline Value make_none() {
  return {.kind = Kind::kNone, .integer = 0};
}
inline Value make_bool(bool b) {
  Value value{.kind = Kind::kBool, .integer = 0};
  value.boolean = b;
  return value;
}
inline Value make_int(int64_t i) {
  return {.kind = Kind::kInt, .integer = i};
}
inline Value make_float(double d) {
  Value value{.kind = Kind::kFloat, .integer = 0};
  value.real = d;
  return value;
}

// A method or function with `self` bound ("abc".upper; self is absent for globals).
struct Function {
  const Builtin* builtin = nullptr;
  Value self;
};

struct Keyword {
  std::string_view name;
  Value value;
};

struct Args {
  std::span<const Value> positional;
  std::span<const Keyword> keywords;

  const Value& operator[](size_t i) const { return positional[i]; }
  bool given(size_t i) const { return !positional[i].absent(); }
};

// A host function. `parameters` are names separated by spaces, of which the first `required` are
// mandatory. The method gets exactly one entry per name (absent if not given). A leading "/" makes
// them positional only; "*" passes the arguments through. A null method marks a Python function
// that chat templates do not need: calling it is an error with its name.
struct Builtin {
  std::string_view name;
  std::string_view parameters;
  int required = 0;
  Result<Value> (*method)(Runtime&, const Value& self, const Args&) = nullptr;
};

// Bump-allocated memory of one template or one rendering, freed at once.
class Heap {
 public:
  Heap() = default;
  Heap(Heap&&) = default;
  Heap& operator=(Heap&&) = default;

  // `count` value-initialised objects; T is never destroyed.
  template <class T>
  T* make(size_t count = 1) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* first = static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
    for (size_t i = 0; i < count; ++i) new (first + i) T();
    return first;
  }
  std::string_view copy(std::string_view text);
  // Returns the `front_bytes` bytes at `front` followed by `more_bytes` bytes for the caller to
  // fill. Extends `front` in place if it was extended recently and has room, so that building a
  // text piece by piece is linear in time and memory; `in_place()` reports it.
  std::byte* extend(const void* front, size_t front_bytes, size_t more_bytes, size_t alignment);
  bool in_place(const void* front, size_t front_bytes, size_t more_bytes) const;
  const Error* keep(Error error) {
    bytes_ += sizeof error + error.message.capacity();
    return &errors_.emplace_back(std::move(error));
  }
  size_t bytes() const { return bytes_; }

 private:
  // An allocation that may grow at its end.
  struct Growing {
    const std::byte* end = nullptr;
    size_t left = 0;
  };

  void* allocate(size_t size, size_t alignment);

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::deque<Error> errors_;
  std::array<Growing, 8> growing_;  // most recently extended
  size_t oldest_growing_ = 0;
  std::byte* free_ = nullptr;
  size_t left_ = 0;
  size_t bytes_ = 0;
};

// An insertion-ordered map with Python's key equality (1, 1.0 and True are one key).
struct Dict {
  struct Entry {
    Value key, value;
    uint64_t hash = 0;
  };
  Entry* entries = nullptr;
  int64_t size = 0;
  int64_t capacity = 0;
  int32_t* slots = nullptr;  // open addressing over entries; null while the dict is small
  int64_t slot_count = 0;

  std::span<const Entry> all() const { return std::span(entries, size); }
};

}  // namespace banyan::jinja
