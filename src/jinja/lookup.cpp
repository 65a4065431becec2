// Attributes, items and slices, with the environment's rules: `a.b` prefers attributes, `a['b']`
// prefers items, each falls back to the other, and a missing one is undefined. Names that begin
// with an underscore and methods that would change a list or dict are never attributes.
#include <algorithm>
#include <array>

#include "base/signed.h"
#include "jinja/loop.h"
#include "jinja/runtime.h"

namespace banyan::jinja {
namespace {

bool is_mutator(Kind kind, std::string_view name) {
  constexpr std::array<std::string_view, 8> kList = {"append", "clear", "pop",    "reverse",
                                                     "insert", "sort",  "extend", "remove"};
  constexpr std::array<std::string_view, 5> kDict = {"clear", "pop", "popitem", "setdefault",
                                                     "update"};
  if (kind == Kind::kList) return std::find(kList.begin(), kList.end(), name) != kList.end();
  if (kind == Kind::kDict) return std::find(kDict.begin(), kDict.end(), name) != kDict.end();
  return false;
}

Result<Value> macro_attribute(Runtime& rt, const Macro& macro, std::string_view name) {
  if (name == "name") return borrow(rt, macro.name);
  return Value{};
}

Value cycler_attribute(const Cycler& cycler, std::string_view name) {
  if (name == "current") return cycler.items.data[cycler.position];
  if (name == "pos") return make_int(cycler.position);
  return Value{};
}

Value range_attribute(const Range& range, std::string_view name) {
  if (name == "start") return make_int(range.start);
  if (name == "stop") return make_int(range.stop);
  if (name == "step") return make_int(range.step);
  return Value{};
}

Value number_attribute(const Value& value, std::string_view name) {
  bool integral = value.is_integral();
  if (name == "real") return integral ? make_int(value.as_int()) : value;
  if (name == "imag") return integral ? make_int(0) : make_float(0);
  if (integral && name == "numerator") return make_int(value.as_int());
  if (integral && name == "denominator") return make_int(1);
  return Value{};
}

Result<Value> data_attribute(Runtime& rt, const Value& value, std::string_view name) {
  switch (value.kind) {
    case Kind::kNamespace: {
      const Value* found = TRY(dict_find(rt, *value.name_space->attributes, name));
      return found == nullptr ? Value{} : *found;
    }
    case Kind::kLoop:
      return loop_attribute(rt, *value.loop, name);
    case Kind::kMacro:
      return macro_attribute(rt, *value.macro, name);
    case Kind::kCycler:
      return cycler_attribute(*value.cycler, name);
    case Kind::kRange:
      return range_attribute(*value.range, name);
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return number_attribute(value, name);
    case Kind::kTuple:
      if (value.items->group && name == "grouper") return value.items->data[0];
      if (value.items->group && name == "list") return value.items->data[1];
      return Value{};
    default:
      return Value{};
  }
}

// obj[key] without the fallback to attributes; absent if Python raises TypeError or LookupError.
Result<Value> own_item(Runtime& rt, const Value& value, const Value& key) {
  if (value.is(Kind::kDict)) {
    if (key.is(Kind::kList) || key.is(Kind::kDict) || key.is(Kind::kView)) return Value{};
    const Value* found = TRY(dict_find(rt, *value.dict, key));
    return found == nullptr ? Value{} : *found;
  }
  if (!key.is_integral()) return Value{};
  if (!value.is_sequence() && !value.is_string() && !value.is(Kind::kRange)) return Value{};
  int64_t size = TRY(length(rt, value));
  int64_t index = key.as_int();
  if (index < 0) index += size;
  if (index < 0 || index >= size) return Value{};
  if (value.is_string()) return substring(rt, value, index, index + 1);
  if (value.is(Kind::kRange)) return make_int(value.range->at(index));
  return value.items->data[index];
}

struct Slice {
  int64_t start, stop, step, size;
};

Result<int64_t> slice_bound(const Value& bound, int64_t otherwise, int64_t size, int64_t step) {
  if (bound.absent() || bound.is_none()) return otherwise;
  if (!bound.is_integral()) {
    if (bound.is_undefined()) return undefined_error(bound);
    return invalid_argument("slice indices must be integers or None, not '{}'", type_name(bound));
  }
  int64_t lowest = step < 0 ? -1 : 0;
  int64_t index = bound.as_int();
  if (index < 0) index = std::max(index + size, lowest);
  return std::min(index, step < 0 ? size - 1 : size);
}

Result<Slice> resolve(const Value& start, const Value& stop, const Value& step, int64_t size) {
  Slice slice{};
  slice.step = 1;
  if (!step.absent() && !step.is_none()) slice.step = TRY(to_index(step, "a slice's step"));
  if (slice.step == 0) return invalid_argument("slice step cannot be zero");
  bool back = slice.step < 0;
  slice.start = TRY(slice_bound(start, back ? size - 1 : 0, size, slice.step));
  slice.stop = TRY(slice_bound(stop, back ? -1 : size, size, slice.step));
  int64_t span = back ? slice.start - slice.stop : slice.stop - slice.start;
  // Steps longer than the sequence all select one element; clamping keeps -step in range.
  slice.step = std::clamp<int64_t>(slice.step, -size - 1, size + 1);
  int64_t stride = back ? -slice.step : slice.step;
  slice.size = span <= 0 ? 0 : (span + stride - 1) / stride;
  return slice;
}

Result<Value> slice_string(Runtime& rt, const Value& value, const Slice& slice) {
  if (slice.step == 1) return substring(rt, value, slice.start, slice.start + slice.size);
  std::span<const Value> all = TRY(iterate(rt, value));
  std::string out;
  for (int64_t i = 0; i < slice.size; ++i) {
    out += all[slice.start + i * slice.step].text();
  }
  return make_string(rt, out, value.safe());
}

}  // namespace

Result<int64_t> to_index(const Value& value, std::string_view what) {
  if (value.is_integral()) return value.as_int();
  if (value.is_undefined()) return undefined_error(value);
  return invalid_argument("{} must be an integer, not '{}'", what, type_name(value));
}

Result<Value> own_attribute(Runtime& rt, const Value& value, std::string_view name) {
  if (value.is(Kind::kNamespace)) return data_attribute(rt, value, name);
  if (name.starts_with('_')) return Value{};
  if (is_mutator(value.kind, name)) {
    return make_undefined_message(
        rt, rt.heap.copy(fmt::format("access to attribute '{}' of '{}' object is unsafe.", name,
                                     type_name(value))));
  }
  Value found = TRY(data_attribute(rt, value, name));
  if (!found.absent()) return found;
  const Builtin* method = find_method(value.kind, name);
  if (method == nullptr) return Value{};
  auto* function = rt.heap.make<Function>();
  *function = {method, value};
  Value bound{.kind = Kind::kFunction, .integer = 0};
  bound.function = function;
  return bound;
}

Result<Value> get_attribute(Runtime& rt, const Value& value, std::string_view name) {
  if (value.is_undefined()) return undefined_error(value);
  Value found = TRY(own_attribute(rt, value, name));
  if (!found.absent()) return found;
  if (value.is(Kind::kDict)) {
    if (const Value* item = TRY(dict_find(rt, *value.dict, name))) return *item;
  }
  return make_undefined(rt, name, type_name(value));
}

Result<Value> get_item(Runtime& rt, const Value& value, const Value& key) {
  if (value.is_undefined()) return undefined_error(value);
  Value found = TRY(own_item(rt, value, key));
  if (!found.absent()) return found;
  if (key.is_string()) {
    found = TRY(own_attribute(rt, value, key.text()));
    if (!found.absent()) return found;
    return make_undefined(rt, key.text(), type_name(value));
  }
  std::string name;
  TRY(append_repr(rt, name, key));
  return make_undefined(rt, rt.heap.copy(name), type_name(value));
}

Result<Value> get_slice(Runtime& rt, const Value& value, const Value& start, const Value& stop,
                        const Value& step) {
  if (value.is_undefined()) return undefined_error(value);
  if (!value.is_sequence() && !value.is_string() && !value.is(Kind::kRange)) {
    return invalid_argument("'{}' object cannot be sliced", type_name(value));
  }
  Slice slice = TRY(resolve(start, stop, step, TRY(length(rt, value))));
  if (value.is_string()) return slice_string(rt, value, slice);
  if (value.is(Kind::kRange)) {
    auto* range = rt.heap.make<Range>();
    const __int128 by = static_cast<__int128>(value.range->step) * slice.step;
    const __int128 stop = value.range->start + by * slice.size +
                          static_cast<__int128>(value.range->step) * slice.start;
    if (by != static_cast<int64_t>(by) || stop != static_cast<int64_t>(stop)) {
      return invalid_argument("a slice of a range ends beyond 64 bits");
    }
    *range = {value.range->at(slice.start), static_cast<int64_t>(stop), static_cast<int64_t>(by),
              slice.size};
    Value result{.kind = Kind::kRange, .integer = 0};
    result.range = range;
    return result;
  }
  std::span<const Value> all = value.elements();
  if (slice.step == 1) {
    auto* items = rt.heap.make<Items>();
    *items = {all.data() + slice.start, slice.size, false};
    Value result{.kind = value.kind, .integer = 0};
    result.items = items;
    return result;
  }
  TRY(rt.charge(slice.size));
  std::vector<Value> picked;
  for (int64_t i = 0; i < slice.size; ++i) {
    picked.push_back(all[slice.start + i * slice.step]);
  }
  return make_list(rt, picked, value.kind);
}

}  // namespace banyan::jinja
