// The state of one rendering: its memory, its budget, and Python's protocols on values (truth,
// iteration, lookup, equality, order, arithmetic, printing).
//
// Sandbox rules. Every evaluation step costs one unit of fuel; work on text or lists costs one unit
// per 64 bytes or per element. Work is charged *before* it is done, so nothing is allocated or
// copied without payment. Everything that recurses holds a Nested and calls check_depth() first.
//
// Not thread-safe: one Runtime per rendering.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "jinja/value.h"

namespace banyan::jinja {

class Interpreter;

class Runtime {
 public:
  Runtime(Interpreter& owner, int64_t fuel, int depth_max, size_t memory_bytes_max,
          int64_t now_unix_s)
      : interpreter(owner),
        now_unix_s(now_unix_s),
        fuel_(fuel),
        fuel_max_(fuel),
        depth_max_(depth_max),
        memory_bytes_max_(memory_bytes_max),
        units_max_(memory_bytes_max / 64 + 1) {}
  Runtime(const Runtime&) = delete;

  Status charge(int64_t units = 1) {
    if (units > units_max_ || units > fuel_ || heap.bytes() > memory_bytes_max_) [[unlikely]]
      return out_of_budget(units);
    fuel_ -= units;
    return {};
  }
  Status charge_bytes(size_t bytes) { return charge(bytes / 64 + 1); }
  // Charges a search through `bytes`, which takes up to 10 ns per byte on adversarial text.
  Status charge_search(size_t bytes) { return charge(bytes / 16 + 1); }
  Status check_depth() const {
    if (depth_ > depth_max_) [[unlikely]]
      return too_deep();
    return {};
  }

  Interpreter& interpreter;
  const int64_t now_unix_s;
  Heap heap;
  Value last_undefined;  // made by make_undefined()

 private:
  friend class Nested;
  std::unexpected<Error> out_of_budget(int64_t units);
  std::unexpected<Error> too_deep() const;

  int64_t fuel_;
  int64_t fuel_max_;
  int depth_ = 0;
  int depth_max_;
  size_t memory_bytes_max_;
  int64_t units_max_;  // per charge: a larger one would exceed the memory limit
};

// RAII guard for one level of recursion.
class Nested {
 public:
  explicit Nested(Runtime& runtime) : runtime_(runtime) { ++runtime_.depth_; }
  ~Nested() { --runtime_.depth_; }
  Nested(const Nested&) = delete;

 private:
  Runtime& runtime_;
};

// Constructors. The `text` of borrow() must outlive the rendering (the template, the variables, a
// literal).
Value borrow(Runtime& rt, std::string_view text, bool safe = false);
Result<Value> make_string(Runtime& rt, std::string_view text, bool safe = false);
// Concatenates. If `a` is the last joined string, appends in place instead of copying it.
Result<Value> join_strings(Runtime& rt, std::string_view a, std::string_view b, bool safe = false);
// REQUIRES: two lists or two tuples.
Result<Value> join_lists(Runtime& rt, const Value& a, const Value& b);
Result<Value> make_list(Runtime& rt, std::span<const Value> items, Kind kind = Kind::kList);
Result<Value> make_generator(Runtime& rt, std::span<const Value> items,
                             const Error* error = nullptr);
Value make_undefined(Runtime& rt, std::string_view name, std::string_view owner = {});
Value make_undefined_message(Runtime& rt, std::string_view message);
Dict* make_dict(Runtime& rt);
Value dict_value(const Dict* dict);

// Shortens the template's own text, which may have any length, for an error message.
std::string shown(std::string_view text);
// The error for using an undefined value.
std::unexpected<Error> undefined_error(const Value& value);
// Python's name of the value's type: "str", "dict", "builtin_function_or_method", ...
std::string_view type_name(const Value& value);

bool truth(const Value& value);
// Elements in order, as from iter(); consumes a generator. An error if the value is not iterable.
// Elements of a list or tuple are not copied.
Result<std::span<const Value>> iterate(Runtime& rt, const Value& value);
bool is_iterable(const Value& value);
// len(); an error where Python has none.
Result<int64_t> length(Runtime& rt, const Value& value);
// In code points; counted and charged once.
Result<int64_t> string_length(Runtime& rt, const Value& value);
// The code points [begin, end) of a string. REQUIRES: 0 <= begin <= end <= length.
Result<Value> substring(Runtime& rt, const Value& value, int64_t begin, int64_t end);

Result<bool> equals(Runtime& rt, const Value& a, const Value& b);
// Python's < and >: an error for types without an order; unordered if a NaN is involved.
Result<std::partial_ordering> order(Runtime& rt, const Value& a, const Value& b);
Result<bool> contains(Runtime& rt, const Value& container, const Value& item);
// Approximates Python's `is`: two strings are identical only if they share their text.
bool identical(const Value& a, const Value& b);

// Null if there is no such key.
Result<const Value*> dict_find(Runtime& rt, const Dict& dict, const Value& key);
Result<const Value*> dict_find(Runtime& rt, const Dict& dict, std::string_view key);
Status dict_set(Runtime& rt, Dict& dict, const Value& key, const Value& value);

// Lookup in the order of `value.name` (attributes first) and of `value[key]` (items first).
Result<Value> get_attribute(Runtime& rt, const Value& value, std::string_view name);
Result<Value> get_item(Runtime& rt, const Value& value, const Value& key);
// A Python attribute only (a method, a namespace's entry, ...); absent if there is none.
Result<Value> own_attribute(Runtime& rt, const Value& value, std::string_view name);
// value[start:stop:step]; absent or none means not given.
Result<Value> get_slice(Runtime& rt, const Value& value, const Value& start, const Value& stop,
                        const Value& step);

enum class Arithmetic { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
Result<Value> arithmetic(Runtime& rt, Arithmetic op, const Value& a, const Value& b);
Result<Value> negate(const Value& value);

// str(value) or repr(value): appended and charged, within the runtime's depth limit.
Status append_str(Runtime& rt, std::string& out, const Value& value);
Status append_repr(Runtime& rt, std::string& out, const Value& value);
std::string format_float(double value);  // repr of a float
Result<std::string> to_str(Runtime& rt, const Value& value);
// The value itself if it is a string, else str(value) as one.
Result<Value> soft_str(Runtime& rt, const Value& value);
// HTML escaping, as |escape and Markup do it.
Result<Value> escape(Runtime& rt, const Value& value);

Result<Value> call(Runtime& rt, const Value& function, const Args& args);
bool is_callable(const Value& value);
Result<Value> call_filter(Runtime& rt, std::string_view name, const Value& value, const Args& args);
Result<bool> call_test(Runtime& rt, std::string_view name, const Value& value, const Args& args);
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_method(Kind kind, std::string_view name);
Result<Value> call_builtin(Runtime& rt, const Builtin& builtin, const Value& self,
                           const Args& args);

// The integer value of an argument, or an error with `what`.
Result<int64_t> to_index(const Value& value, std::string_view what);

// "..." % values and "...".format(...).
Result<Value> format_percent(Runtime& rt, const Value& format, const Value& values);
Result<Value> format_braces(Runtime& rt, const Value& format, const Args& args);
// format(value, spec) of a number or string.
Result<std::string> format_spec(Runtime& rt, const Value& value, std::string_view spec);

}  // namespace banyan::jinja
