// The methods of str. A safe (Markup) string returns safe results and escapes its arguments.
#include <algorithm>

#include "jinja/library/builtins.h"
#include "jinja/library/unicode.h"

namespace banyan::jinja {
namespace {

Result<std::string_view> text_argument(const Value& value, std::string_view what) {
  if (value.is_string()) return value.text();
  if (value.is_undefined()) return undefined_error(value);
  return invalid_argument("{} must be str, not {}", what, type_name(value));
}

Result<int64_t> number_or(const Args& args, size_t i, int64_t otherwise) {
  if (!args.given(i) || args[i].is_none()) return otherwise;
  return to_index(args[i], "an index");
}

template <Case how>
Result<Value> cased(Runtime& rt, const Value& self, const Args&) {
  TRY(rt.charge(self.text().size() / 4));
  return make_string(rt, TRY(change_case(self.text(), how)), self.safe());
}

enum class Side { kLeft, kRight, kBoth };

template <Side side>
Result<Value> stripped(Runtime& rt, const Value& self, const Args& args) {
  std::string_view text = self.text();
  if (!args.given(0) || args[0].is_none()) {
    if (side != Side::kRight) text = strip_left(text);
    if (side != Side::kLeft) text = strip_right(text);
  } else {
    std::string_view characters = TRY(text_argument(args[0], "strip's argument"));
    TRY(rt.charge(std::ssize(characters)));
    if (side != Side::kRight) text = strip_left(text, characters);
    if (side != Side::kLeft) text = strip_right(text, characters);
  }
  TRY(rt.charge((self.text().size() - text.size()) / 8));
  return borrow(rt, text, self.safe());
}

Result<Value> list_of(Runtime& rt, const std::vector<std::string_view>& parts, bool safe,
                      Kind kind = Kind::kList) {
  TRY(rt.charge(std::ssize(parts)));
  std::vector<Value> values;
  values.reserve(parts.size());
  for (std::string_view part : parts) values.push_back(borrow(rt, part, safe));
  return make_list(rt, values, kind);
}

template <bool from_right>
Result<Value> split(Runtime& rt, const Value& self, const Args& args) {
  int64_t max = args.given(1) ? TRY(to_index(args[1], "maxsplit")) : -1;
  std::vector<std::string_view> parts;
  if (!args.given(0) || args[0].is_none()) {
    parts = TRY(split_text(rt, self.text(), nullptr, max, from_right));
  } else {
    std::string_view separator = TRY(text_argument(args[0], "a separator"));
    if (separator.empty()) return invalid_argument("empty separator");
    parts = TRY(split_text(rt, self.text(), &separator, max, from_right));
  }
  return list_of(rt, parts, self.safe());
}

Result<Value> splitlines(Runtime& rt, const Value& self, const Args& args) {
  TRY(rt.charge(self.text().size() / 4));
  return list_of(rt, split_lines(self.text(), args.given(0) && truth(args[0])), self.safe());
}

Result<Value> join(Runtime& rt, const Value& self, const Args& args) {
  std::string out;
  bool first = true;
  for (const Value& item : TRY(iterate(rt, args[0]))) {
    if (!first) TRY(append_str(rt, out, self));
    first = false;
    if (!self.safe() && !item.is_string()) {
      return invalid_argument("sequence item: expected str instance, {} found", type_name(item));
    }
    TRY(append_str(rt, out, self.safe() ? TRY(escape(rt, item)) : item));
  }
  return make_string(rt, out, self.safe());
}

Result<Value> replace(Runtime& rt, const Value& self, const Args& args) {
  std::string_view from = TRY(text_argument(args[0], "replace() argument 1"));
  Value to = args[1];
  TRY(text_argument(to, "replace() argument 2"));
  if (self.safe()) to = TRY(escape(rt, to));
  int64_t count = args.given(2) ? TRY(to_index(args[2], "count")) : -1;
  return replace_text(rt, self, from, to.text(), count);
}

// The part of a string that find(x, start, end) and similar methods search.
struct Window {
  std::string_view text;
  int64_t start = 0;  // in code points
  bool valid = true;  // false when start lies beyond the end
};

Result<Window> window(Runtime& rt, const Value& self, const Args& args, size_t first) {
  int64_t size = TRY(string_length(rt, self));
  TRY(rt.charge_bytes(self.text().size()));
  int64_t start = TRY(number_or(args, first, 0));
  int64_t end = std::min(TRY(number_or(args, first + 1, size)), size);
  if (start < 0) start = std::max<int64_t>(0, start + size);
  if (end < 0) end = std::max<int64_t>(0, end + size);
  if (start > end) return Window{{}, start, false};
  return Window{TRY(substring(rt, self, start, end)).text(), start, true};
}

template <bool from_right, bool must_exist>
Result<Value> find(Runtime& rt, const Value& self, const Args& args) {
  std::string_view part = TRY(text_argument(args[0], "the text to find"));
  Window in = TRY(window(rt, self, args, 1));
  TRY(rt.charge_search(part.size() + in.text.size()));
  size_t found = !in.valid    ? std::string_view::npos
                 : from_right ? rfind_text(in.text, part)
                              : find_text(in.text, part);
  if (found != std::string_view::npos) {
    return make_int(in.start + count_code_points(in.text.substr(0, found)));
  }
  if (must_exist) return invalid_argument("substring not found");
  return make_int(-1);
}

Result<Value> count(Runtime& rt, const Value& self, const Args& args) {
  std::string_view part = TRY(text_argument(args[0], "the text to count"));
  Window in = TRY(window(rt, self, args, 1));
  TRY(rt.charge_search(in.text.size()));
  if (!in.valid) return make_int(0);
  if (part.empty()) return make_int(count_code_points(in.text) + 1);
  TRY(rt.charge(in.text.size() / part.size()));
  int64_t total = 0;
  for (size_t at = find_text(in.text, part); at != std::string_view::npos;
       at = find_text(in.text, part, at + part.size())) {
    ++total;
  }
  return make_int(total);
}

template <bool at_end>
Result<Value> begins_or_ends(Runtime& rt, const Value& self, const Args& args) {
  Window in = TRY(window(rt, self, args, 1));
  std::span<const Value> candidates{&args[0], 1};
  if (args[0].is(Kind::kTuple)) candidates = args[0].elements();
  TRY(rt.charge(std::ssize(candidates)));
  for (const Value& candidate : candidates) {
    std::string_view part = TRY(text_argument(candidate, "startswith and endswith: the argument"));
    TRY(rt.charge_bytes(part.size()));
    bool matches = at_end ? in.text.ends_with(part) : in.text.starts_with(part);
    if (in.valid && matches) return make_bool(true);
  }
  return make_bool(false);
}

template <bool at_end>
Result<Value> remove_affix(Runtime& rt, const Value& self, const Args& args) {
  std::string_view part = TRY(text_argument(args[0], "the prefix or suffix"));
  std::string_view text = self.text();
  TRY(rt.charge_bytes(part.size()));
  if (!at_end && text.starts_with(part)) text.remove_prefix(part.size());
  if (at_end && text.ends_with(part)) text.remove_suffix(part.size());
  return borrow(rt, text, self.safe());
}

template <bool from_right>
Result<Value> partition(Runtime& rt, const Value& self, const Args& args) {
  std::string_view separator = TRY(text_argument(args[0], "a separator"));
  if (separator.empty()) return invalid_argument("empty separator");
  std::string_view text = self.text();
  TRY(rt.charge_search(text.size() + separator.size()));
  size_t at = from_right ? rfind_text(text, separator) : find_text(text, separator);
  std::vector<std::string_view> parts = {text, "", ""};
  if (at == std::string_view::npos && from_right) parts = {"", "", text};
  if (at != std::string_view::npos) {
    parts = {text.substr(0, at), separator, text.substr(at + separator.size())};
  }
  return list_of(rt, parts, self.safe(), Kind::kTuple);
}

Result<Value> justify(Runtime& rt, const Value& self, const Args& args, Side text_side) {
  int64_t width = TRY(to_index(args[0], "the width"));
  std::string_view fill = args.given(1) ? TRY(text_argument(args[1], "the fill character")) : " ";
  if (count_code_points(fill) != 1) {
    return invalid_argument("The fill character must be exactly one character long");
  }
  if (text_side == Side::kBoth) return center_text(rt, self, width, fill);
  const int64_t size = TRY(string_length(rt, self));
  const int64_t missing = std::max(width, size) - size;
  if (missing > 0) TRY(rt.charge_bytes(std::min(missing, int64_t{1} << 40) * 4));
  std::string padding;
  for (int64_t i = 0; i < missing; ++i) padding += fill;
  std::string text(self.text());
  return make_string(rt, text_side == Side::kLeft ? text + padding : padding + text, self.safe());
}

template <Side text_side>
Result<Value> justified(Runtime& rt, const Value& self, const Args& args) {
  return justify(rt, self, args, text_side);
}

Result<Value> zfill(Runtime& rt, const Value& self, const Args& args) {
  const int64_t width = TRY(to_index(args[0], "the width"));
  const int64_t size = TRY(string_length(rt, self));
  if (width <= size) return self;
  const int64_t missing = width - size;
  TRY(rt.charge_bytes(missing));
  std::string text(self.text());
  bool is_signed = !text.empty() && (text[0] == '+' || text[0] == '-');
  text.insert(is_signed ? 1 : 0, missing, '0');
  return make_string(rt, text, self.safe());
}

Result<Value> format(Runtime& rt, const Value& self, const Args& args) {
  return format_braces(rt, self, args);
}

constexpr Builtin kMethods[] = {
    {"strip", "/chars", 0, stripped<Side::kBoth>},
    {"split", "sep maxsplit", 0, split<false>},
    {"startswith", "/prefix start end", 1, begins_or_ends<false>},
    {"endswith", "/suffix start end", 1, begins_or_ends<true>},
    {"replace", "/old new count", 2, replace},
    {"join", "/iterable", 1, join},
    {"format", "*", 0, format},
    {"lower", "", 0, cased<Case::kLower>},
    {"upper", "", 0, cased<Case::kUpper>},
    {"title", "", 0, cased<Case::kTitle>},
    {"capitalize", "", 0, cased<Case::kCapitalize>},
    {"lstrip", "/chars", 0, stripped<Side::kLeft>},
    {"rstrip", "/chars", 0, stripped<Side::kRight>},
    {"rsplit", "sep maxsplit", 0, split<true>},
    {"splitlines", "keepends", 0, splitlines},
    {"find", "/sub start end", 1, find<false, false>},
    {"rfind", "/sub start end", 1, find<true, false>},
    {"index", "/sub start end", 1, find<false, true>},
    {"rindex", "/sub start end", 1, find<true, true>},
    {"count", "/sub start end", 1, count},
    {"removeprefix", "/prefix", 1, remove_affix<false>},
    {"removesuffix", "/suffix", 1, remove_affix<true>},
    {"partition", "/sep", 1, partition<false>},
    {"rpartition", "/sep", 1, partition<true>},
    {"center", "/width fillchar", 1, justified<Side::kBoth>},
    {"ljust", "/width fillchar", 1, justified<Side::kLeft>},
    {"rjust", "/width fillchar", 1, justified<Side::kRight>},
    {"zfill", "/width", 1, zfill},
    {"casefold"},
    {"expandtabs"},
    {"format_map"},
    {"isidentifier"},
    {"swapcase"},
};

}  // namespace

std::span<const Builtin> string_methods() {
  return kMethods;
}

}  // namespace banyan::jinja
