// Truth, iteration, length, equality, order and membership.
#include <algorithm>
#include <cmath>

#include "base/signed.h"
#include "jinja/library/unicode.h"
#include "jinja/loop.h"
#include "jinja/runtime.h"

namespace banyan::jinja {
namespace {

// One shared string per ASCII character, so that a loop over a long text allocates none.
const String* ascii_character(char c) {
  struct Table {
    char bytes[128];
    String strings[128];
    Table() {
      for (size_t i = 0; i < 128; ++i) {
        bytes[i] = static_cast<char>(i);
        strings[i] = {{&bytes[i], 1}, false, 1};
      }
    }
  };
  static const Table table;
  return &table.strings[static_cast<unsigned char>(c)];
}

Result<std::span<const Value>> characters(Runtime& rt, const Value& value) {
  std::string_view rest = value.text();
  TRY(rt.charge(std::ssize(rest)));
  size_t count = TRY(string_length(rt, value));
  Value* items = rt.heap.make<Value>(count);
  for (size_t i = 0; i < count && !rest.empty(); ++i) {
    std::string_view before = rest;
    if (next_code_point(rest) < 0x80 && !value.safe()) {
      items[i] = {.kind = Kind::kString, .integer = 0};
      items[i].string = ascii_character(before[0]);
      continue;
    }
    items[i] = borrow(rt, before.substr(0, before.size() - rest.size()), value.safe());
  }
  return std::span<const Value>{items, count};
}

Result<std::span<const Value>> view_items(Runtime& rt, const Dict& dict, View::What what) {
  size_t count = dict.size;
  TRY(rt.charge(dict.size + 1));
  Value* items = rt.heap.make<Value>(count);
  for (size_t i = 0; i < count; ++i) {
    const Dict::Entry& entry = dict.entries[i];
    if (what == View::What::kItems) {
      Value pair[] = {entry.key, entry.value};
      items[i] = TRY(make_list(rt, pair, Kind::kTuple));
    } else {
      items[i] = what == View::What::kKeys ? entry.key : entry.value;
    }
  }
  return std::span<const Value>{items, count};
}

Result<std::span<const Value>> range_items(Runtime& rt, const Range& range) {
  TRY(rt.charge(range.size / 4 + 1));
  Value* items = rt.heap.make<Value>(range.size);
  for (int64_t i = 0; i < range.size; ++i) items[i] = make_int(range.at(i));
  return std::span<const Value>(items, range.size);
}

Result<std::span<const Value>> rest_of(Generator& generator) {
  if (generator.error != nullptr) return std::unexpected(*generator.error);
  std::span<const Value> rest(generator.items.data + generator.next,
                              generator.items.size - generator.next);
  generator.next = generator.items.size;
  return rest;
}

std::partial_ordering order_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() <=> b.as_int();
  // long double holds every int64 exactly.
  auto wide = [](const Value& v) {
    return v.is_integral() ? static_cast<long double>(v.as_int())
                           : static_cast<long double>(v.real);
  };
  return wide(a) <=> wide(b);
}

Result<bool> equal_sequences(Runtime& rt, std::span<const Value> a, std::span<const Value> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!identical(a[i], b[i]) && !TRY(equals(rt, a[i], b[i]))) return false;
  }
  return true;
}

Result<bool> equal_dicts(Runtime& rt, const Dict& a, const Dict& b) {
  if (a.size != b.size) return false;
  for (const Dict::Entry& entry : a.all()) {
    const Value* other = TRY(dict_find(rt, b, entry.key));
    if (other == nullptr) return false;
    if (!identical(entry.value, *other) && !TRY(equals(rt, entry.value, *other))) return false;
  }
  return true;
}

Result<std::partial_ordering> order_sequences(Runtime& rt, std::span<const Value> a,
                                              std::span<const Value> b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!identical(a[i], b[i]) && !TRY(equals(rt, a[i], b[i]))) return order(rt, a[i], b[i]);
  }
  return a.size() <=> b.size();
}

std::string_view view_type(View::What what) {
  if (what == View::What::kKeys) return "dict_keys";
  return what == View::What::kValues ? "dict_values" : "dict_items";
}

}  // namespace

std::string_view type_name(const Value& value) {
  switch (value.kind) {
    case Kind::kAbsent:
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return value.safe() ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kView:
      return view_type(value.view->what);
    case Kind::kRange:
      return "range";
    case Kind::kGenerator:
      return "generator";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kFunction:
      return "builtin_function_or_method";
    case Kind::kMacro:
      return "Macro";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
  }
  return "object";
}

std::string shown(std::string_view text) {
  size_t size = 80;
  if (text.size() <= size) return std::string(text);
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return std::string(text.substr(0, size)) + "...";
}

std::unexpected<Error> undefined_error(const Value& value) {
  const Undefined& u = *value.undefined;
  if (u.is_message) return invalid_argument("{}", u.name);
  if (u.owner.empty()) return invalid_argument("'{}' is undefined", shown(u.name));
  std::string_view owner = u.owner == "NoneType" ? "None" : u.owner;
  std::string_view suffix = u.owner == "NoneType" ? "" : " object";
  return invalid_argument("'{}{}' has no attribute '{}'", owner, suffix, shown(u.name));
}

bool truth(const Value& value) {
  switch (value.kind) {
    case Kind::kAbsent:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.boolean;
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.real != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return value.items->size != 0;
    case Kind::kDict:
      return value.dict->size != 0;
    case Kind::kView:
      return value.view->dict->size != 0;
    case Kind::kRange:
      return value.range->size != 0;
    default:
      return true;
  }
}

bool is_iterable(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kGenerator:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

Result<std::span<const Value>> iterate(Runtime& rt, const Value& value) {
  TRY(rt.charge());
  switch (value.kind) {
    case Kind::kUndefined:
      return std::span<const Value>{};
    case Kind::kString:
      return characters(rt, value);
    case Kind::kList:
    case Kind::kTuple:
      return value.elements();
    case Kind::kDict:
      return view_items(rt, *value.dict, View::What::kKeys);
    case Kind::kView:
      return view_items(rt, *value.view->dict, value.view->what);
    case Kind::kRange:
      return range_items(rt, *value.range);
    case Kind::kGenerator:
      return rest_of(*value.generator);
    default:
      return invalid_argument("'{}' object is not iterable", type_name(value));
  }
}

Result<int64_t> string_length(Runtime& rt, const Value& value) {
  const String& string = *value.string;
  if (string.length >= 0) return string.length;
  TRY(rt.charge_bytes(string.text.size()));
  string.length = count_code_points(string.text);
  return string.length;
}

Result<int64_t> length(Runtime& rt, const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return string_length(rt, value);
    case Kind::kList:
    case Kind::kTuple:
      return value.items->size;
    case Kind::kDict:
      return value.dict->size;
    case Kind::kView:
      return value.view->dict->size;
    case Kind::kRange:
      return value.range->size;
    case Kind::kLoop:
      return std::ssize(value.loop->source);
    default:
      return invalid_argument("object of type '{}' has no len()", type_name(value));
  }
}

Result<Value> substring(Runtime& rt, const Value& value, int64_t begin, int64_t end) {
  std::string_view text = value.text();
  size_t first = begin, size = end - begin;
  if (TRY(string_length(rt, value)) != std::ssize(text)) {
    TRY(rt.charge_bytes(text.size()));
    first = byte_offset(text, begin);
    size = byte_offset(text.substr(first), end - begin);
  }
  Value part = borrow(rt, text.substr(first, size), value.safe());
  part.string->length = end - begin;
  return part;
}

bool identical(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kAbsent:
    case Kind::kNone:
      return true;
    case Kind::kBool:
      return a.boolean == b.boolean;
    case Kind::kInt:
      return a.integer == b.integer;
    case Kind::kFloat:
      return a.real == b.real;
    case Kind::kString:
      return a.string == b.string ||
             (a.text().data() == b.text().data() && a.text().size() == b.text().size());
    default:
      return a.items == b.items;
  }
}

Result<bool> equals(Runtime& rt, const Value& a, const Value& b) {
  TRY(rt.charge());
  if (a.is_number() && b.is_number()) return order_numbers(a, b) == 0;
  if (a.kind != b.kind) return false;
  Nested nested(rt);
  TRY(rt.check_depth());
  switch (a.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      if (a.text().size() != b.text().size()) return false;
      TRY(rt.charge(a.text().size() / 64));
      return a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple:
      return equal_sequences(rt, a.elements(), b.elements());
    case Kind::kDict:
      return equal_dicts(rt, *a.dict, *b.dict);
    case Kind::kRange:
      return equal_sequences(rt, TRY(iterate(rt, a)), TRY(iterate(rt, b)));
    default:
      return a.items == b.items;
  }
}

Result<std::partial_ordering> order(Runtime& rt, const Value& a, const Value& b) {
  TRY(rt.charge());
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  if (a.is_number() && b.is_number()) return order_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    TRY(rt.charge_bytes(std::min(a.text().size(), b.text().size())));
    return a.text() <=> b.text();
  }
  if (a.kind == b.kind && a.is_sequence()) {
    Nested nested(rt);
    TRY(rt.check_depth());
    return order_sequences(rt, a.elements(), b.elements());
  }
  return invalid_argument("'<' not supported between instances of '{}' and '{}'", type_name(a),
                          type_name(b));
}

Result<bool> contains(Runtime& rt, const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) {
      return invalid_argument("'in <string>' requires string as left operand, not {}",
                              type_name(item));
    }
    TRY(rt.charge_search(container.text().size()));
    return find_text(container.text(), item.text()) != std::string_view::npos;
  }
  if (container.is(Kind::kDict)) return TRY(dict_find(rt, *container.dict, item)) != nullptr;
  if (container.is(Kind::kView) && container.view->what == View::What::kKeys) {
    return TRY(dict_find(rt, *container.view->dict, item)) != nullptr;
  }
  if (container.is(Kind::kGenerator)) {
    Generator& generator = *container.generator;
    while (generator.next < generator.items.size) {
      const Value& next = generator.items.data[generator.next++];
      if (identical(next, item) || TRY(equals(rt, next, item))) return true;
    }
    if (generator.error != nullptr) return std::unexpected(*generator.error);
    return false;
  }
  if (!is_iterable(container)) {
    return invalid_argument("argument of type '{}' is not iterable", type_name(container));
  }
  for (const Value& element : TRY(iterate(rt, container))) {
    if (identical(element, item) || TRY(equals(rt, element, item))) return true;
  }
  return false;
}

}  // namespace banyan::jinja
