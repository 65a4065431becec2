// Filters on lists, dicts and anything iterable.
#include <algorithm>

#include "jinja/library/builtins.h"
#include "jinja/library/sort.h"
#include "jinja/library/unicode.h"

namespace banyan::jinja {
namespace {

// A dotted path such as "function.name" or "0.x"; parts that are digits are integers.
using Path = std::vector<Value>;

Result<Path> parse_path(Runtime& rt, const Value& attribute) {
  if (attribute.absent() || attribute.is_none()) return Path{};
  if (!attribute.is_string()) return Path{attribute};
  std::string_view dot = ".";
  Path path;
  for (std::string_view part : TRY(split_text(rt, attribute.text(), &dot, -1, false))) {
    bool digits = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    if (digits && part.size() < 18) {
      path.push_back(make_int(std::stoll(std::string(part))));
    } else {
      path.push_back(borrow(rt, part));
    }
  }
  return path;
}

Result<Value> follow(Runtime& rt, Value value, const Path& path, const Value& otherwise = {}) {
  for (const Value& part : path) {
    TRY(rt.charge());
    value = TRY(get_item(rt, value, part));
    bool replace = value.is_undefined() && !otherwise.absent() && !otherwise.is_none();
    if (replace) value = otherwise;
  }
  return value;
}

Result<Value> fold(Runtime& rt, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  TRY(rt.charge(value.text().size() / 4));
  return make_string(rt, TRY(change_case(value.text(), Case::kLower)));
}

bool flag(const Args& args, size_t i) {
  return args.given(i) && truth(args[i]);
}

struct Keyed {
  Value key, value;
};

Status sort_keyed(Runtime& rt, std::vector<Keyed>& items, bool reverse) {
  return merge_sort(items, [&](const Keyed& a, const Keyed& b) -> Result<bool> {
    return TRY(reverse ? order(rt, b.key, a.key) : order(rt, a.key, b.key)) < 0;
  });
}

Result<Value> values_of(Runtime& rt, const std::vector<Keyed>& items) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const Keyed& item : items) values.push_back(item.value);
  return make_list(rt, values);
}

Result<Value> sort(Runtime& rt, const Value& value, const Args& args) {
  bool case_sensitive = flag(args, 1);
  std::vector<Path> paths;
  if (args.given(2) && args[2].is_string()) {
    std::string_view comma = ",";
    for (std::string_view part : TRY(split_text(rt, args[2].text(), &comma, -1, false))) {
      paths.push_back(TRY(parse_path(rt, borrow(rt, part))));
    }
  } else {
    paths.push_back(TRY(parse_path(rt, args[2])));
  }
  std::vector<Keyed> items;
  for (const Value& item : TRY(iterate(rt, value))) {
    std::vector<Value> keys;
    for (const Path& path : paths) {
      keys.push_back(TRY(fold(rt, TRY(follow(rt, item, path)), case_sensitive)));
    }
    items.push_back({TRY(make_list(rt, keys)), item});
  }
  TRY(sort_keyed(rt, items, flag(args, 0)));
  return values_of(rt, items);
}

Result<Value> dictsort(Runtime& rt, const Value& value, const Args& args) {
  if (!value.is(Kind::kDict)) {
    if (value.is_undefined()) return undefined_error(value);
    return invalid_argument("dictsort needs a dict, not '{}'", type_name(value));
  }
  size_t by = 0;
  if (args.given(1)) {
    bool is_text = args[1].is_string();
    if (is_text && args[1].text() == "value") by = 1;
    if (!is_text || (by == 0 && args[1].text() != "key")) {
      return invalid_argument("You can only sort by either \"key\" or \"value\"");
    }
  }
  std::vector<Keyed> items;
  for (const Dict::Entry& entry : value.dict->all()) {
    Value pair[] = {entry.key, entry.value};
    items.push_back(
        {TRY(fold(rt, pair[by], flag(args, 0))), TRY(make_list(rt, pair, Kind::kTuple))});
  }
  TRY(sort_keyed(rt, items, flag(args, 2)));
  return values_of(rt, items);
}

Result<Value> unique(Runtime& rt, const Value& value, const Args& args) {
  Path path = TRY(parse_path(rt, args[1]));
  Dict* seen = make_dict(rt);
  std::vector<Value> kept;
  for (const Value& item : TRY(iterate(rt, value))) {
    Value key = TRY(fold(rt, TRY(follow(rt, item, path)), flag(args, 0)));
    if (TRY(dict_find(rt, *seen, key)) != nullptr) continue;
    TRY(dict_set(rt, *seen, key, make_none()));
    kept.push_back(item);
  }
  return make_generator(rt, kept);
}

template <bool maximum>
Result<Value> extreme(Runtime& rt, const Value& value, const Args& args) {
  Path path = TRY(parse_path(rt, args[1]));
  Value best, best_key;
  for (const Value& item : TRY(iterate(rt, value))) {
    Value key = TRY(fold(rt, TRY(follow(rt, item, path)), flag(args, 0)));
    bool better = best.absent();
    if (!better) {
      auto ordering = maximum ? TRY(order(rt, best_key, key)) : TRY(order(rt, key, best_key));
      better = ordering < 0;
    }
    if (better) {
      best = item;
      best_key = key;
    }
  }
  if (best.absent()) {
    return make_undefined_message(rt, "No aggregated item, sequence was empty.");
  }
  return best;
}

Result<Value> groupby(Runtime& rt, const Value& value, const Args& args) {
  Path path = TRY(parse_path(rt, args[0]));
  std::vector<Keyed> items;
  for (const Value& item : TRY(iterate(rt, value))) {
    Value key = TRY(fold(rt, TRY(follow(rt, item, path, args[1])), flag(args, 2)));
    items.push_back({key, item});
  }
  TRY(sort_keyed(rt, items, false));
  std::vector<Value> groups;
  for (size_t start = 0, end = 0; start < items.size(); start = end) {
    std::vector<Value> members;
    for (end = start; end < items.size(); ++end) {
      if (end > start && !TRY(equals(rt, items[start].key, items[end].key))) break;
      members.push_back(items[end].value);
    }
    Value shown = TRY(follow(rt, items[start].value, path, args[1]));
    Value pair[] = {flag(args, 2) ? items[start].key : shown, TRY(make_list(rt, members))};
    Value group = TRY(make_list(rt, pair, Kind::kTuple));
    auto* marked = rt.heap.make<Items>();
    *marked = {group.items->data, 2, true};
    group.items = marked;
    groups.push_back(group);
  }
  return make_list(rt, groups);
}

Result<Value> join(Runtime& rt, const Value& value, const Args& args) {
  std::string separator = args.given(0) ? TRY(to_str(rt, args[0])) : "";
  Path path = TRY(parse_path(rt, args[1]));
  std::string out;
  bool first = true;
  for (const Value& item : TRY(iterate(rt, value))) {
    TRY(rt.charge_bytes(separator.size()));
    if (!first) out += separator;
    first = false;
    TRY(append_str(rt, out, TRY(follow(rt, item, path))));
  }
  return make_string(rt, out);
}

Result<Value> count(Runtime& rt, const Value& value, const Args&) {
  return make_int(TRY(length(rt, value)));
}

Result<Value> first(Runtime& rt, const Value& value, const Args&) {
  if (value.is(Kind::kGenerator)) {
    Generator& generator = *value.generator;
    if (generator.next < generator.items.size) return generator.items.data[generator.next++];
  }
  auto items = TRY(iterate(rt, value));
  if (!items.empty()) return items.front();
  return make_undefined_message(rt, "No first item, sequence was empty.");
}

Result<Value> last(Runtime& rt, const Value& value, const Args&) {
  if (value.is(Kind::kGenerator) || value.is(Kind::kLoop)) {
    return invalid_argument("'{}' object is not reversible", type_name(value));
  }
  if (value.is_undefined()) return make_undefined_message(rt, "No last item, sequence was empty.");
  auto items = TRY(iterate(rt, value));
  if (!items.empty()) return items.back();
  return make_undefined_message(rt, "No last item, sequence was empty.");
}

Result<Value> list(Runtime& rt, const Value& value, const Args&) {
  return make_list(rt, TRY(iterate(rt, value)));
}

Result<Value> reverse(Runtime& rt, const Value& value, const Args&) {
  auto items = TRY(iterate(rt, value));
  TRY(rt.charge(std::ssize(items)));
  if (value.is_string()) {
    std::string out;
    for (size_t i = items.size(); i-- > 0;) out += items[i].text();
    return make_string(rt, out, value.safe());
  }
  std::vector<Value> mirrored(items.rbegin(), items.rend());
  if (value.is(Kind::kGenerator)) return make_list(rt, mirrored);
  return make_generator(rt, mirrored);
}

Result<Value> items(Runtime& rt, const Value& value, const Args&) {
  if (value.is_undefined()) return make_generator(rt, {});
  if (!value.is(Kind::kDict)) return invalid_argument("Can only get item pairs from a mapping.");
  Value view = TRY(call_builtin(rt, *find_method(Kind::kDict, "items"), value, {}));
  return make_generator(rt, TRY(iterate(rt, view)));
}

Result<Value> otherwise(Runtime& rt, const Value& value, const Args& args) {
  bool use = value.is_undefined() || (flag(args, 1) && !truth(value));
  if (!use) return value;
  return args.given(0) ? args[0] : borrow(rt, "");
}

Result<Value> attribute(Runtime& rt, const Value& value, const Args& args) {
  if (!args[0].is_string()) return invalid_argument("attr needs an attribute's name");
  if (value.is_undefined()) return undefined_error(value);
  Value found = TRY(own_attribute(rt, value, args[0].text()));
  return found.absent() ? make_undefined(rt, args[0].text(), type_name(value)) : found;
}

Result<Value> sum(Runtime& rt, const Value& value, const Args& args) {
  Path path = TRY(parse_path(rt, args[0]));
  Value total = args.given(1) ? args[1] : make_int(0);
  if (total.is_string()) return invalid_argument("sum() can't sum strings");
  for (const Value& item : TRY(iterate(rt, value))) {
    total = TRY(arithmetic(rt, Arithmetic::kAdd, total, TRY(follow(rt, item, path))));
  }
  return total;
}

Result<Value> batch(Runtime& rt, const Value& value, const Args& args) {
  int64_t size = TRY(to_index(args[0], "batch's size"));
  bool fill = args.given(1) && !args[1].is_none();
  auto all = TRY(iterate(rt, value));
  TRY(rt.charge(std::ssize(all)));
  std::vector<Value> rows, row;
  for (const Value& item : all) {
    // Python's batch yields an empty first row for size 0 and never fills a row.
    if (std::ssize(row) == size) {
      rows.push_back(TRY(make_list(rt, row)));
      row.clear();
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    const auto filled = std::ssize(row);
    const int64_t missing = std::max(size, filled) - filled;
    if (fill && missing > 0) {
      TRY(rt.charge(missing));
      row.insert(row.end(), missing, args[1]);
    }
    rows.push_back(TRY(make_list(rt, row)));
  }
  return make_generator(rt, rows);
}

Result<Value> slice(Runtime& rt, const Value& value, const Args& args) {
  int64_t slices = TRY(to_index(args[0], "slice's number of slices"));
  if (slices == 0) return invalid_argument("slice: division by zero");
  bool fill = args.given(1) && !args[1].is_none();
  auto all = TRY(iterate(rt, value));
  TRY(rt.charge(std::max<int64_t>(0, slices)));
  TRY(rt.charge(std::ssize(all)));
  auto size = std::ssize(all);
  std::vector<Value> columns;
  int64_t start = 0;
  for (int64_t i = 0; i < slices; ++i) {
    int64_t count = size / slices + (i < size % slices ? 1 : 0);
    auto part = all.subspan(start, count);
    std::vector<Value> column(part.begin(), part.end());
    if (fill && i >= size % slices) column.push_back(args[1]);
    columns.push_back(TRY(make_list(rt, column)));
    start += count;
  }
  return make_generator(rt, columns);
}

const Value* keyword(const Args& args, std::string_view name) {
  for (const Keyword& given : args.keywords) {
    if (given.name == name) return &given.value;
  }
  return nullptr;
}

// map and similar filters are lazy in Python: an error surfaces only when a reader reaches it.
template <class Each>
Result<Value> lazily(Runtime& rt, const Value& value, Each each) {
  std::vector<Value> out;
  if (!truth(value)) return make_generator(rt, out);
  auto all = iterate(rt, value);
  if (!all) return make_generator(rt, out, rt.heap.keep(std::move(all).error()));
  for (const Value& item : *all) {
    TRY(rt.charge());
    Status status = each(item, out);
    if (!status) return make_generator(rt, out, rt.heap.keep(std::move(status).error()));
  }
  return make_generator(rt, out);
}

Result<Value> map(Runtime& rt, const Value& value, const Args& args) {
  const Value* attribute = keyword(args, "attribute");
  if (args.positional.empty() && attribute != nullptr) {
    const Value* given = keyword(args, "default");
    if (args.keywords.size() > (given == nullptr ? 1u : 2u)) {
      return invalid_argument("map: unexpected keyword argument");
    }
    Path path = TRY(parse_path(rt, *attribute));
    return lazily(rt, value, [&](const Value& item, std::vector<Value>& out) -> Status {
      out.push_back(TRY(follow(rt, item, path, given == nullptr ? Value{} : *given)));
      return {};
    });
  }
  if (args.positional.empty()) return invalid_argument("map requires a filter argument");
  const Value& name = args.positional[0];
  if (!name.is_string()) return invalid_argument("map needs a filter's name");
  Args rest{args.positional.subspan(1), args.keywords};
  return lazily(rt, value, [&](const Value& item, std::vector<Value>& out) -> Status {
    Nested nested(rt);
    TRY(rt.check_depth());
    out.push_back(TRY(call_filter(rt, name.text(), item, rest)));
    return {};
  });
}

template <bool keep, bool by_attribute>
Result<Value> select(Runtime& rt, const Value& value, const Args& args) {
  auto positional = args.positional;
  Path path;
  if (by_attribute) {
    if (positional.empty()) return invalid_argument("Missing parameter for attribute name");
    path = TRY(parse_path(rt, positional[0]));
    positional = positional.subspan(1);
  }
  const Builtin* test = nullptr;
  if (!positional.empty()) {
    const Value& name = positional[0];
    if (name.is_string()) test = find_test(name.text());
    if (test == nullptr) {
      return invalid_argument("No test named '{}'", name.is_string() ? shown(name.text()) : "?");
    }
    positional = positional.subspan(1);
  }
  Args rest{positional, args.keywords};
  return lazily(rt, value, [&](const Value& item, std::vector<Value>& out) -> Status {
    Value seen = TRY(follow(rt, item, path));
    bool passes = truth(test == nullptr ? seen : TRY(call_builtin(rt, *test, seen, rest)));
    if (passes == keep) out.push_back(item);
    return {};
  });
}

// A Python generator function: even its first error is deferred until it is read.
template <Result<Value> (*method)(Runtime&, const Value&, const Args&)>
Result<Value> deferred(Runtime& rt, const Value& value, const Args& args) {
  auto result = method(rt, value, args);
  if (result || result.error().code != ErrorCode::kInvalidArgument) return result;
  return make_generator(rt, {}, rt.heap.keep(std::move(result).error()));
}

constexpr Builtin kFilters[] = {
    {"length", "", 0, count},
    {"count", "", 0, count},
    {"default", "default_value boolean", 0, otherwise},
    {"d", "default_value boolean", 0, otherwise},
    {"join", "d attribute", 0, join},
    {"list", "", 0, list},
    {"first", "", 0, first},
    {"last", "", 0, last},
    {"items", "", 0, deferred<items>},
    {"map", "*", 0, deferred<map>},
    {"select", "*", 0, deferred<select<true, false>>},
    {"reject", "*", 0, deferred<select<false, false>>},
    {"selectattr", "*", 0, deferred<select<true, true>>},
    {"rejectattr", "*", 0, deferred<select<false, true>>},
    {"sort", "reverse case_sensitive attribute", 0, sort},
    {"dictsort", "case_sensitive by reverse", 0, dictsort},
    {"unique", "case_sensitive attribute", 0, deferred<unique>},
    {"reverse", "", 0, reverse},
    {"min", "case_sensitive attribute", 0, extreme<false>},
    {"max", "case_sensitive attribute", 0, extreme<true>},
    {"sum", "attribute start", 0, sum},
    {"groupby", "attribute default case_sensitive", 1, groupby},
    {"batch", "linecount fill_with", 1, deferred<batch>},
    {"slice", "slices fill_with", 1, deferred<slice>},
    {"attr", "name", 1, attribute},
};

}  // namespace

std::span<const Builtin> sequence_filters() {
  return kFilters;
}

}  // namespace banyan::jinja
