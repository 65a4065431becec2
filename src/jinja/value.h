// Values of the template language: Python's, as far as templates can see them.
//
// A Value is 16 bytes and trivially copyable; whatever it points to lives in a Heap and is freed
// with it, all at once. So there are no reference counts, cycles cost nothing, and no destructor
// recurses however deep a hostile template nests. Lists, tuples, dicts and strings never change
// once they are reachable from a template (the sandbox refuses append, update, ...), so they are
// shared freely; only namespaces, cyclers, joiners, loops and generators have state.
//
// Not thread-safe. A Heap made while parsing is only read while rendering.
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
  std::string_view name;   // what was looked up; with an empty owner and no lookup, the message
  std::string_view owner;  // the type it was looked up in, empty for a variable
  bool is_message = false;
};

struct String {
  std::string_view text;        // UTF-8
  bool safe = false;            // a Markup: |safe or |escape made it
  mutable int64_t length = -1;  // code points; -1 until asked for
};

struct Value;

struct Items {
  const Value* data = nullptr;
  int64_t size = 0;
  bool group = false;  // a pair of groupby: also has the attributes grouper and list
};

struct View {
  enum class What : uint8_t { kKeys, kValues, kItems };
  const Dict* dict = nullptr;
  What what = What::kKeys;
};

struct Range {
  int64_t start = 0, stop = 0, step = 1, size = 0;

  // Element `i` < size, or one of the places just outside. Computed so that only a result beyond 64
  // bits would be wrong, whatever the step times i is.
  int64_t at(int64_t i) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
  }
};

// The result of map, select, batch, ...: evaluated at once, but seen once and without a length, as
// Python's generators are. An error met on the way is reported when the reader gets there.
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
    const Items* items;  // list and tuple
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
  std::span<const Value> elements() const {
    return {items->data, static_cast<size_t>(items->size)};
  }
  // REQUIRES: is_integral() and is_number().
  int64_t as_int() const { return kind == Kind::kBool ? int64_t{boolean} : integer; }
  double as_float() const { return kind == Kind::kFloat ? real : static_cast<double>(as_int()); }
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

// A function of the host. `parameters` are names separated by spaces; the first `required` of them
// must be given, and the method sees exactly one entry per name (absent where not given). A leading
// "/" makes them positional only. "*" hands the arguments over as they came. Without a method it is
// one of Python's that chat templates have no use for: calling it is an error that names it.
struct Builtin {
  std::string_view name;
  std::string_view parameters;
  int required = 0;
  Result<Value> (*method)(Runtime&, const Value& self, const Args&) = nullptr;
};

// Memory of one template or one rendering: bump allocation, freed at once.
class Heap {
 public:
  Heap() = default;
  Heap(Heap&&) = default;
  Heap& operator=(Heap&&) = default;

  // `count` objects, value-initialised; T is never destroyed.
  template <class T>
  T* make(size_t count = 1) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* first = static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
    for (size_t i = 0; i < count; ++i) new (first + i) T();
    return first;
  }
  std::string_view copy(std::string_view text);
  // `front_bytes` bytes that are those at `front`, and `more_bytes` behind them for the caller to
  // fill. The result is `front` itself where it ends what was extended lately and has room, so
  // that a text built piece by piece takes linear time and memory; `in_place()` tells.
  std::byte* extend(const void* front, size_t front_bytes, size_t more_bytes, size_t alignment);
  bool in_place(const void* front, size_t front_bytes, size_t more_bytes) const;
  const Error* keep(Error error) {
    bytes_ += sizeof error + error.message.capacity();
    return &errors_.emplace_back(std::move(error));
  }
  size_t bytes() const { return bytes_; }

 private:
  // Something that may grow at its end.
  struct Growing {
    const std::byte* end = nullptr;
    size_t left = 0;
  };

  void* allocate(size_t size, size_t alignment);

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::deque<Error> errors_;
  std::array<Growing, 8> growing_;  // extended last
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

  std::span<const Entry> all() const { return {entries, static_cast<size_t>(size)}; }
};

}  // namespace banyan::jinja
