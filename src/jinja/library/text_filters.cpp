// Filters that convert any value to text.
#include <algorithm>

#include "jinja/library/builtins.h"
#include "jinja/library/json_dump.h"
#include "jinja/library/unicode.h"

namespace banyan::jinja {
namespace {

// The str method of the same name, on soft_str(value).
Result<Value> method(Runtime& rt, const Value& value, std::string_view name, const Args& args) {
  Value text = TRY(soft_str(rt, value));
  return call_builtin(rt, *find_method(Kind::kString, name), text, args);
}

Result<Value> upper(Runtime& rt, const Value& value, const Args&) {
  return method(rt, value, "upper", {});
}

Result<Value> lower(Runtime& rt, const Value& value, const Args&) {
  return method(rt, value, "lower", {});
}

Result<Value> capitalize(Runtime& rt, const Value& value, const Args&) {
  return method(rt, value, "capitalize", {});
}

Result<Value> trim(Runtime& rt, const Value& value, const Args& args) {
  return method(rt, value, "strip", args);
}

// Words begin after spaces and - ( { [ <, but unlike str.title not after digits or apostrophes.
Result<Value> title(Runtime& rt, const Value& value, const Args&) {
  Value source = TRY(soft_str(rt, value));
  std::string_view text = source.text();
  TRY(rt.charge(std::ssize(text)));
  std::string out;
  while (!text.empty()) {
    std::string_view rest = text;
    auto separates = [](char32_t c) {
      return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    };
    bool separator = separates(next_code_point(rest));
    std::string_view first = text.substr(0, text.size() - rest.size());
    std::string_view word_rest = rest;
    while (!rest.empty()) {
      std::string_view next = rest;
      if (separates(next_code_point(next)) != separator) break;
      rest = next;
    }
    word_rest = word_rest.substr(0, word_rest.size() - rest.size());
    out += TRY(change_case(first, Case::kUpper));
    out += TRY(change_case(word_rest, Case::kLower));
    text = rest;
  }
  return make_string(rt, out);
}

Result<Value> string(Runtime& rt, const Value& value, const Args&) {
  return soft_str(rt, value);
}

Result<Value> safe(Runtime& rt, const Value& value, const Args&) {
  return make_string(rt, TRY(to_str(rt, value)), true);
}

Result<Value> escaped(Runtime& rt, const Value& value, const Args&) {
  return escape(rt, value);
}

Result<Value> forceescape(Runtime& rt, const Value& value, const Args&) {
  return escape(rt, TRY(make_string(rt, TRY(to_str(rt, value)))));
}

Result<Value> replace(Runtime& rt, const Value& value, const Args& args) {
  Value text = TRY(make_string(rt, TRY(to_str(rt, value))));
  std::string from = TRY(to_str(rt, args[0]));
  std::string to = TRY(to_str(rt, args[1]));
  bool limited = args.given(2) && !args[2].is_none();
  return replace_text(rt, text, from, to, limited ? TRY(to_index(args[2], "count")) : -1);
}

Result<Value> format(Runtime& rt, const Value& value, const Args& args) {
  Value text = TRY(soft_str(rt, value));
  if (args.keywords.empty()) {
    return format_percent(rt, text, TRY(make_list(rt, args.positional, Kind::kTuple)));
  }
  if (!args.positional.empty()) {
    return invalid_argument("can't handle positional and keyword arguments at the same time");
  }
  Dict* dict = make_dict(rt);
  for (const Keyword& keyword : args.keywords) {
    TRY(dict_set(rt, *dict, borrow(rt, keyword.name), keyword.value));
  }
  return format_percent(rt, text, dict_value(dict));
}

Result<Value> indent(Runtime& rt, const Value& value, const Args& args) {
  if (!value.is_string()) {
    if (value.is_undefined()) return undefined_error(value);
    return invalid_argument("indent needs a string, not '{}'", type_name(value));
  }
  std::string indention(4, ' ');
  if (args.given(0) && args[0].is_string()) {
    indention = args[0].text();
  } else if (args.given(0)) {
    int64_t width = std::max<int64_t>(0, TRY(to_index(args[0], "indent's width")));
    TRY(rt.charge_bytes(width));
    indention.assign(width, ' ');
  }
  bool first = args.given(1) && truth(args[1]);
  bool blank = args.given(2) && truth(args[2]);
  TRY(rt.charge(value.text().size() / 8));
  std::string text = std::string(value.text()) + "\n";
  std::string out;
  if (first) out += indention;
  bool is_first = true;
  for (std::string_view line : split_lines(text, false)) {
    TRY(rt.charge_bytes(line.size() + indention.size()));
    if (!is_first) out += '\n';
    if (!is_first && (blank || !line.empty())) out += indention;
    out += line;
    is_first = false;
  }
  return make_string(rt, out, value.safe());
}

Result<Value> center(Runtime& rt, const Value& value, const Args& args) {
  int64_t width = args.given(0) ? TRY(to_index(args[0], "center's width")) : 80;
  return center_text(rt, TRY(soft_str(rt, value)), width, " ");
}

Result<Value> truncate(Runtime& rt, const Value& value, const Args& args) {
  int64_t length = args.given(0) ? TRY(to_index(args[0], "truncate's length")) : 255;
  bool killwords = args.given(1) && truth(args[1]);
  Value end = args.given(2) ? args[2] : borrow(rt, "...");
  bool has_leeway = args.given(3) && !args[3].is_none();
  int64_t leeway = has_leeway ? TRY(to_index(args[3], "truncate's leeway")) : 5;
  if (!end.is_string()) return invalid_argument("truncate's end must be a string");
  const int64_t end_size = TRY(string_length(rt, end));
  if (length < end_size || leeway < 0) {
    return invalid_argument("truncate: expected length >= {} and leeway >= 0, got {} and {}",
                            end_size, length, leeway);
  }
  int64_t size = TRY(jinja::length(rt, value));
  if (size <= length || size - length <= leeway) return value;
  if (!value.is_string()) return invalid_argument("truncate needs a string");
  Value kept = TRY(substring(rt, value, 0, length - end_size));
  if (!killwords) {
    size_t space = kept.text().rfind(' ');
    kept = borrow(rt, kept.text().substr(0, space), kept.safe());
  }
  return arithmetic(rt, Arithmetic::kAdd, kept, end);
}

Result<Value> wordcount(Runtime& rt, const Value& value, const Args&) {
  Value source = TRY(soft_str(rt, value));
  std::string_view text = source.text();
  TRY(rt.charge(text.size() / 4));
  int64_t words = 0;
  bool inside = false;
  while (!text.empty()) {
    char32_t c = next_code_point(text);
    bool word = c == '_' || is_alpha(c) || is_numeric(c);
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  return make_int(words);
}

Result<Value> tojson(Runtime& rt, const Value& value, const Args& args) {
  JsonStyle style;
  style.ensure_ascii = args.given(0) && truth(args[0]);
  if (args.given(1) && args[1].is_string()) {
    style.indent = args[1].text();
  } else if (args.given(1) && !args[1].is_none()) {
    int64_t width = std::max<int64_t>(0, TRY(to_index(args[1], "tojson's indent")));
    TRY(rt.charge_bytes(width));
    style.indent = std::string(width, ' ');
  }
  if (style.indent) style.item_separator.pop_back();  // "," without the space
  if (args.given(2) && !args[2].is_none()) {
    auto pair = TRY(iterate(rt, args[2]));
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      return invalid_argument("tojson's separators must be two strings");
    }
    style.item_separator = pair[0].text();
    style.key_separator = pair[1].text();
  }
  style.sort_keys = args.given(3) && truth(args[3]);
  return make_string(rt, TRY(dump_json(rt, value, style)));
}

constexpr Builtin kFilters[] = {
    {"tojson", "ensure_ascii indent separators sort_keys", 0, tojson},
    {"trim", "chars", 0, trim},
    {"string", "", 0, string},
    {"upper", "", 0, upper},
    {"lower", "", 0, lower},
    {"title", "", 0, title},
    {"capitalize", "", 0, capitalize},
    {"replace", "old new count", 2, replace},
    {"indent", "width first blank", 0, indent},
    {"format", "*", 0, format},
    {"safe", "", 0, safe},
    {"escape", "", 0, escaped},
    {"e", "", 0, escaped},
    {"forceescape", "", 0, forceescape},
    {"center", "width", 0, center},
    {"truncate", "length killwords end leeway", 0, truncate},
    {"wordcount", "", 0, wordcount},
    {"filesizeformat"},
    {"pprint"},
    {"random"},
    {"striptags"},
    {"urlencode"},
    {"urlize"},
    {"wordwrap"},
    {"xmlattr"},
};

}  // namespace

std::span<const Builtin> text_filters() {
  return kFilters;
}

}  // namespace banyan::jinja
