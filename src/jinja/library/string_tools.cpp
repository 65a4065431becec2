// Splitting and replacing text, and the is... methods of str.
#include <algorithm>

#include "jinja/library/builtins.h"
#include "jinja/library/unicode.h"

namespace banyan::jinja {
namespace {

bool is_line_break(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

Status split_space(Runtime& rt, std::string_view text, int64_t max,
                   std::vector<std::string_view>& parts) {
  text = strip_left(text);
  while (!text.empty()) {
    TRY(rt.charge(2));
    if (max == 0) {
      parts.push_back(text);
      break;
    }
    std::string_view rest = text;
    for (std::string_view next = rest; !next.empty(); rest = next) {
      if (is_space(next_code_point(next))) break;
    }
    parts.push_back(text.substr(0, text.size() - rest.size()));
    text = strip_left(rest);
    --max;
  }
  return {};
}

Status split_space_right(Runtime& rt, std::string_view text, int64_t max,
                         std::vector<std::string_view>& parts) {
  text = strip_right(text);
  while (!text.empty()) {
    TRY(rt.charge(2));
    if (max-- == 0) {
      parts.push_back(text);
      break;
    }
    size_t start = text.size();
    while (start > 0 && !is_space(last_code_point(text.substr(0, start)))) {
      do {
        --start;
      } while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xc0) == 0x80);
    }
    parts.push_back(text.substr(start));
    text = strip_right(text.substr(0, start));
  }
  std::reverse(parts.begin(), parts.end());
  return {};
}

template <bool (*holds)(char32_t)>
Result<Value> every(Runtime& rt, const Value& self, const Args&) {
  std::string_view text = self.text();
  TRY(rt.charge(text.size() / 4));
  bool all = !text.empty();
  while (all && !text.empty()) all = holds(next_code_point(text));
  return make_bool(all);
}

bool is_alnum(char32_t c) {
  return is_alpha(c) || is_numeric(c) || is_digit(c);
}
bool is_ascii(char32_t c) {
  return c < 0x80;
}

// islower and isupper: at least one cased character, and none of the other case.
template <bool upper>
Result<Value> all_cased(Runtime& rt, const Value& self, const Args&) {
  std::string_view text = self.text();
  TRY(rt.charge(text.size() / 4));
  bool some = false;
  while (!text.empty()) {
    char32_t c = next_code_point(text);
    if (is_title(c) || (upper ? is_lower(c) : is_upper(c))) return make_bool(false);
    some |= upper ? is_upper(c) : is_lower(c);
  }
  return make_bool(some);
}

Result<Value> istitle(Runtime& rt, const Value& self, const Args&) {
  std::string_view text = self.text();
  TRY(rt.charge(text.size() / 4));
  bool some = false, inside = false;
  while (!text.empty()) {
    char32_t c = next_code_point(text);
    bool starts = is_upper(c) || is_title(c);
    if (starts ? inside : is_lower(c) && !inside) return make_bool(false);
    inside = starts || is_lower(c);
    some |= inside;
  }
  return make_bool(some);
}

Result<Value> isascii(Runtime& rt, const Value& self, const Args& args) {
  if (self.text().empty()) return make_bool(true);
  return every<is_ascii>(rt, self, args);
}

Result<Value> isprintable(Runtime& rt, const Value& self, const Args& args) {
  if (self.text().empty()) return make_bool(true);
  return every<is_printable>(rt, self, args);
}

constexpr Builtin kPredicates[] = {
    {"isdigit", "", 0, every<is_digit>},
    {"isalpha", "", 0, every<is_alpha>},
    {"isalnum", "", 0, every<is_alnum>},
    {"isspace", "", 0, every<is_space>},
    {"isdecimal", "", 0, every<is_decimal>},
    {"isnumeric", "", 0, every<is_numeric>},
    {"islower", "", 0, all_cased<false>},
    {"isupper", "", 0, all_cased<true>},
    {"istitle", "", 0, istitle},
    {"isascii", "", 0, isascii},
    {"isprintable", "", 0, isprintable},
};

}  // namespace

std::span<const Builtin> string_predicates() {
  return kPredicates;
}

Result<std::vector<std::string_view>> split_text(Runtime& rt, std::string_view text,
                                                 const std::string_view* separator, int64_t max,
                                                 bool from_right) {
  std::vector<std::string_view> parts;
  if (max < 0) max = INT64_MAX;
  if (separator == nullptr) {
    TRY(rt.charge(text.size() / 8));
    TRY(from_right ? split_space_right(rt, text, max, parts) : split_space(rt, text, max, parts));
    return parts;
  }
  TRY(rt.charge_search(text.size()));
  if (from_right) {
    // Splits a mirrored copy from the left, since direct backward search is not linear.
    std::string mirrored(text.rbegin(), text.rend());
    std::string mirrored_separator(separator->rbegin(), separator->rend());
    std::string_view cut_at = mirrored_separator;
    for (std::string_view part : TRY(split_text(rt, mirrored, &cut_at, max, false))) {
      auto end = text.size() - (part.data() - mirrored.data());
      parts.push_back(text.substr(end - part.size(), part.size()));
    }
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  size_t start = 0;
  while (max-- != 0) {
    size_t at = find_text(text, *separator, start);
    if (at == std::string_view::npos) break;
    TRY(rt.charge(2));
    parts.push_back(text.substr(start, at - start));
    start = at + separator->size();
  }
  parts.push_back(text.substr(start));
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::string_view rest = text;
    size_t end = text.size();
    while (!rest.empty()) {
      size_t before = text.size() - rest.size();
      char32_t c = next_code_point(rest);
      if (!is_line_break(c)) continue;
      if (c == '\r' && rest.starts_with('\n')) rest.remove_prefix(1);
      end = before;
      break;
    }
    size_t taken = text.size() - rest.size();
    lines.push_back(text.substr(0, keep_ends ? taken : end));
    text = rest;
  }
  return lines;
}

Result<Value> replace_text(Runtime& rt, const Value& text, std::string_view from,
                           std::string_view to, int64_t count) {
  std::string_view rest = text.text();
  TRY(rt.charge_search(rest.size()));
  std::string out;
  if (count < 0) count = INT64_MAX;
  while (count != 0) {
    // An empty `from` matches before every character and at the end.
    size_t at = from.empty() ? 0 : find_text(rest, from);
    if (at == std::string_view::npos) break;
    TRY(rt.charge_bytes(at + to.size()));
    out.append(rest.substr(0, at)).append(to);
    rest.remove_prefix(at + from.size());
    --count;
    if (from.empty()) {
      if (rest.empty()) break;
      std::string_view after = rest;
      next_code_point(after);
      out += rest.substr(0, rest.size() - after.size());
      rest = after;
    }
  }
  out += rest;
  return make_string(rt, out, text.safe());
}

Result<Value> center_text(Runtime& rt, const Value& text, int64_t width, std::string_view fill) {
  const int64_t size = TRY(string_length(rt, text));
  const int64_t missing = std::max(width, size) - size;
  if (missing == 0) return text;
  TRY(rt.charge_bytes(std::min(missing, int64_t{1} << 40) * 4));
  // Like CPython, puts the odd space on the left only if the width is odd too.
  int64_t left = missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text.text();
  for (int64_t i = left; i < missing; ++i) out += fill;
  return make_string(rt, out, text.safe());
}

}  // namespace banyan::jinja
