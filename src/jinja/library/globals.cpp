// Global functions, and the methods of all types except strings.
#include <algorithm>
#include <array>
#include <ctime>

#include "jinja/interpreter.h"
#include "jinja/library/builtins.h"
#include "jinja/loop.h"

namespace banyan::jinja {
namespace {

constexpr int64_t kRangeMax = 100000;  // the longest range that Jinja's sandbox allows

Result<Value> range(Runtime& rt, const Value&, const Args& args) {
  int64_t start = 0, step = 1;
  int64_t stop = TRY(to_index(args[0], "range()'s argument"));
  if (args.given(1)) {
    start = stop;
    stop = TRY(to_index(args[1], "range()'s argument"));
  }
  if (args.given(2)) step = TRY(to_index(args[2], "range()'s step"));
  if (step == 0) return invalid_argument("range() arg 3 must not be zero");
  __int128 span =
      step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  __int128 stride = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  __int128 size = span <= 0 ? 0 : (span + stride - 1) / stride;
  if (size > kRangeMax) {
    return exhausted("range({}, {}, {}) has more than {} elements", start, stop, step, kRangeMax);
  }
  auto* result = rt.heap.make<Range>();
  *result = {start, stop, step, static_cast<int64_t>(size)};
  Value value{.kind = Kind::kRange, .integer = 0};
  value.range = result;
  return value;
}

// dict(mapping or pairs, **keywords), also namespace()'s.
Result<Dict*> build_dict(Runtime& rt, const Args& args) {
  if (args.positional.size() > 1) {
    return invalid_argument("dict expected at most 1 argument, got {}", args.positional.size());
  }
  Dict* dict = make_dict(rt);
  if (!args.positional.empty()) {
    const Value& from = args.positional[0];
    if (from.is(Kind::kDict)) {
      for (const Dict::Entry& entry : from.dict->all()) {
        TRY(dict_set(rt, *dict, entry.key, entry.value));
      }
    } else {
      for (const Value& item : TRY(iterate(rt, from))) {
        auto pair = TRY(iterate(rt, item));
        if (pair.size() != 2) {
          return invalid_argument("a dict needs pairs, not sequences of {}", pair.size());
        }
        TRY(dict_set(rt, *dict, pair[0], pair[1]));
      }
    }
  }
  for (const Keyword& keyword : args.keywords) {
    TRY(dict_set(rt, *dict, borrow(rt, keyword.name), keyword.value));
  }
  return dict;
}

Result<Value> dict(Runtime& rt, const Value&, const Args& args) {
  return dict_value(TRY(build_dict(rt, args)));
}

Result<Value> make_namespace(Runtime& rt, const Value&, const Args& args) {
  auto* result = rt.heap.make<Namespace>();
  result->attributes = TRY(build_dict(rt, args));
  for (const Dict::Entry& entry : result->attributes->all()) {
    if (entry.key.is_string() && entry.key.text().starts_with('_')) {
      return invalid_argument("a namespace cannot have the underscore-prefixed attribute '{}'",
                              shown(entry.key.text()));
    }
  }
  Value value{.kind = Kind::kNamespace, .integer = 0};
  value.name_space = result;
  return value;
}

Result<Value> cycler(Runtime& rt, const Value&, const Args& args) {
  if (!args.keywords.empty()) return invalid_argument("cycler() takes no keyword arguments");
  if (args.positional.empty()) return invalid_argument("at least one item has to be provided");
  auto* result = rt.heap.make<Cycler>();
  result->items = *TRY(make_list(rt, args.positional)).items;
  Value value{.kind = Kind::kCycler, .integer = 0};
  value.cycler = result;
  return value;
}

Result<Value> joiner(Runtime& rt, const Value&, const Args& args) {
  auto* result = rt.heap.make<Joiner>();
  Value separator = args.given(0) ? TRY(soft_str(rt, args[0])) : borrow(rt, ", ");
  result->separator = separator.string;
  Value value{.kind = Kind::kJoiner, .integer = 0};
  value.joiner = result;
  return value;
}

Result<Value> raise_exception(Runtime& rt, const Value&, const Args& args) {
  std::string message = TRY(to_str(rt, args[0]));
  rt.interpreter.mark_raised();
  return make_error(ErrorCode::kInvalidArgument, std::move(message));
}

Result<Value> strftime_now(Runtime& rt, const Value&, const Args& args) {
  if (!args[0].is_string()) return invalid_argument("strftime_now() takes a format string");
  if (args[0].text().size() > 1024) return exhausted("a date format of more than 1024 bytes");
  // A naive datetime has no time zone, and our clock has no microseconds.
  std::string format;
  std::string_view text = args[0].text();
  for (size_t i = 0; i < text.size(); ++i) {
    char next = text[i] == '%' && i + 1 < text.size() ? text[i + 1] : 0;
    if (next == 'f') format += "000000";
    if (next != 'f' && next != 'z' && next != 'Z') format += text[i];
    if (next == 0) continue;
    if (next != 'f' && next != 'z' && next != 'Z') format += next;
    ++i;
  }
  std::time_t now = rt.now_unix_s;
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 8192> buffer;
  size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &local);
  return make_string(rt, {buffer.data(), size});
}

constexpr Builtin kGlobals[] = {
    {"range", "/start stop step", 1, range},
    {"dict", "*", 0, dict},
    {"namespace", "*", 0, make_namespace},
    {"cycler", "*", 0, cycler},
    {"joiner", "sep", 0, joiner},
    {"raise_exception", "message", 1, raise_exception},
    {"strftime_now", "format", 1, strftime_now},
    {"lipsum"},
};

// ---- Methods ----------------------------------------------------------------------------------

template <View::What what>
Result<Value> view(Runtime& rt, const Value& self, const Args&) {
  auto* result = rt.heap.make<View>();
  *result = {self.dict, what};
  Value value{.kind = Kind::kView, .integer = 0};
  value.view = result;
  return value;
}

Result<Value> dict_get(Runtime& rt, const Value& self, const Args& args) {
  const Value* found = TRY(dict_find(rt, *self.dict, args[0]));
  if (found != nullptr) return *found;
  return args.given(1) ? args[1] : make_none();
}

Result<Value> dict_copy(Runtime& rt, const Value& self, const Args&) {
  return dict(rt, self, {{&self, 1}, {}});
}

constexpr Builtin kDictMethods[] = {
    {"items", "", 0, view<View::What::kItems>},
    {"keys", "", 0, view<View::What::kKeys>},
    {"values", "", 0, view<View::What::kValues>},
    {"get", "/key default", 1, dict_get},
    {"copy", "", 0, dict_copy},
    {"fromkeys"},
};

Result<Value> count(Runtime& rt, const Value& self, const Args& args) {
  int64_t total = 0;
  for (const Value& item : TRY(iterate(rt, self))) {
    total += identical(item, args[0]) || TRY(equals(rt, item, args[0])) ? 1 : 0;
  }
  return make_int(total);
}

Result<Value> index(Runtime& rt, const Value& self, const Args& args) {
  auto items = TRY(iterate(rt, self));
  auto size = std::ssize(items);
  int64_t start = args.given(1) ? TRY(to_index(args[1], "an index")) : 0;
  int64_t stop = args.given(2) ? TRY(to_index(args[2], "an index")) : size;
  if (start < 0) start = std::max<int64_t>(0, start + size);
  if (stop < 0) stop = std::max<int64_t>(0, stop + size);
  for (int64_t i = start; i < std::min(stop, size); ++i) {
    const Value& item = items[i];
    if (identical(item, args[0]) || TRY(equals(rt, item, args[0]))) return make_int(i);
  }
  return invalid_argument("the value is not in the {}", type_name(self));
}

Result<Value> list_copy(Runtime& rt, const Value& self, const Args&) {
  return make_list(rt, self.elements());
}

constexpr Builtin kTupleMethods[] = {
    {"count", "/value", 1, count},
    {"index", "/value start stop", 1, index},
};
constexpr Builtin kListMethods[] = {
    {"count", "/value", 1, count},
    {"index", "/value start stop", 1, index},
    {"copy", "", 0, list_copy},
};

Result<Value> is_integer(Runtime&, const Value& self, const Args&) {
  double value = self.real;
  return make_bool(
      value == static_cast<double>(static_cast<int64_t>(std::clamp(value, -9.0e18, 9.0e18))) ||
      (std::abs(value) > 9.0e18 && value - value == 0));
}

constexpr Builtin kFloatMethods[] = {{"is_integer", "", 0, is_integer}};
constexpr Builtin kIntMethods[] = {{"bit_length"}};

Result<Value> cycle(Runtime&, const Value& self, const Args& args) {
  if (args.positional.empty()) return invalid_argument("no items for cycling given");
  if (!args.keywords.empty()) return invalid_argument("cycle() takes no keyword arguments");
  auto size = std::ssize(args.positional);
  return args.positional[self.loop->index0 % size];
}

Result<Value> changed(Runtime& rt, const Value& self, const Args& args) {
  Value now = TRY(make_list(rt, args.positional, Kind::kTuple));
  Value& last = self.loop->last_changed;
  if (!last.absent() && TRY(equals(rt, last, now))) return make_bool(false);
  last = now;
  return make_bool(true);
}

constexpr Builtin kLoopMethods[] = {{"cycle", "*", 0, cycle}, {"changed", "*", 0, changed}};

Result<Value> cycler_next(Runtime&, const Value& self, const Args&) {
  Cycler& cycler = *self.cycler;
  Value current = cycler.items.data[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size;
  return current;
}

Result<Value> cycler_reset(Runtime&, const Value& self, const Args&) {
  self.cycler->position = 0;
  return make_none();
}

constexpr Builtin kCyclerMethods[] = {{"next", "", 0, cycler_next}, {"reset", "", 0, cycler_reset}};

}  // namespace

std::span<const Builtin> globals() {
  return kGlobals;
}

std::span<const Builtin> container_methods(Kind kind) {
  switch (kind) {
    case Kind::kDict:
      return kDictMethods;
    case Kind::kList:
      return kListMethods;
    case Kind::kTuple:
    case Kind::kRange:
      return kTupleMethods;
    case Kind::kFloat:
      return kFloatMethods;
    case Kind::kInt:
    case Kind::kBool:
      return kIntMethods;
    case Kind::kLoop:
      return kLoopMethods;
    case Kind::kCycler:
      return kCyclerMethods;
    default:
      return {};
  }
}

}  // namespace banyan::jinja
