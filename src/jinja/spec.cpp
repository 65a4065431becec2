// Python's format mini-language (format(value, spec)) and its number formatting, which the %
// operator shares.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "jinja/library/number_format.h"
#include "jinja/library/unicode.h"
#include "jinja/runtime.h"

namespace banyan::jinja {
namespace {

constexpr int64_t kWidthMax = 1 << 30;

struct Spec {
  std::string fill = " ";
  char align = 0;
  char sign = 0;
  bool alternate = false;
  bool zeros = false;  // a 0 before the width: pads numbers after their sign
  int64_t width = 0;
  char group = 0;
  std::optional<int64_t> precision;
  char type = 0;
};

bool is_align(char32_t c) {
  return c == '<' || c == '>' || c == '=' || c == '^';
}

// Consumes the alignment and its fill; true if a fill was given.
bool parse_align(Spec& spec, std::string_view& text) {
  if (text.empty()) return false;
  std::string_view rest = text;
  char32_t first = next_code_point(rest);
  if (!rest.empty() && is_align(static_cast<unsigned char>(rest[0]))) {
    spec.fill = std::string(text.substr(0, text.size() - rest.size()));
    spec.align = rest[0];
    text = rest.substr(1);
    return true;
  }
  if (is_align(first)) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  return false;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

Result<Spec> parse_spec(std::string_view text) {
  Spec spec;
  std::string_view whole = text;
  bool filled = parse_align(spec, text);
  if (!text.empty() && (text[0] == '+' || text[0] == '-' || text[0] == ' ')) {
    spec.sign = text[0];
    text.remove_prefix(1);
  }
  spec.alternate = take(text, '#');
  if (take(text, '0')) {
    if (!filled) spec.fill.assign(1, '0');
    spec.zeros = true;
  }
  spec.width = TRY(take_number(text)).value_or(0);
  if (!text.empty() && (text[0] == ',' || text[0] == '_')) {
    spec.group = text[0];
    text.remove_prefix(1);
  }
  if (take(text, '.')) {
    spec.precision = TRY(take_number(text));
    if (!spec.precision) return invalid_argument("'{}': format specifier missing precision", whole);
  }
  if (!text.empty()) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) {
    return invalid_argument("invalid format specifier '{}'", whole);
  }
  if (spec.type == 'n') return unsupported("the format n is not supported in chat templates");
  return spec;
}

std::string grouped(std::string_view digits, char separator, size_t size) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// Inserts separators into the integer part. Zeros that fill the width are grouped too, so they are
// added here: as many as reach `spec.width` with the separators and the `prefix_size` characters in
// front.
Status group_number(Runtime& rt, const Spec& spec, size_t prefix_size, size_t size,
                    std::string& digits) {
  size_t end = digits.find_first_of(".eE%");
  if (end == std::string::npos) end = digits.size();
  std::string whole = digits.substr(0, end);
  std::string rest = digits.substr(end);
  size_t width = spec.width;
  if (spec.align == '=' && spec.fill == "0" && width > prefix_size + rest.size()) {
    TRY(rt.charge_bytes(width));
    size_t room = width - prefix_size - rest.size();
    size_t count = whole.size();
    while (count + (count - 1) / size < room) ++count;
    whole.insert(0, count - whole.size(), '0');
  }
  digits = grouped(whole, spec.group, size) + rest;
  return {};
}

Result<std::string> pad(Runtime& rt, const Spec& spec, std::string_view prefix,
                        std::string_view body, char default_align) {
  int64_t length = count_code_points(prefix) + count_code_points(body);
  int64_t missing = std::max<int64_t>(0, spec.width - length);
  TRY(rt.charge_bytes(missing * spec.fill.size() + body.size()));
  char align = spec.align == 0 ? default_align : spec.align;
  int64_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string out;
  if (align == '=') out += prefix;
  for (int64_t i = 0; i < before; ++i) out += spec.fill;
  if (align != '=') out += prefix;
  out += body;
  for (int64_t i = before; i < missing; ++i) out += spec.fill;
  return out;
}

Result<std::string> format_text(Runtime& rt, const Value& value, const Spec& spec) {
  if (spec.type != 0 && spec.type != 's') {
    return invalid_argument("unknown format code '{}' for object of type 'str'", spec.type);
  }
  if (spec.align == '=' || spec.sign != 0 || spec.group != 0 || spec.alternate) {
    return invalid_argument("numeric format options are not allowed for strings");
  }
  std::string_view text = value.text();
  if (spec.precision) text = text.substr(0, byte_offset(text, *spec.precision));
  return pad(rt, spec, "", text, '<');
}

std::string sign_of(bool negative, char sign) {
  if (negative) return "-";
  return sign == '+' ? "+" : sign == ' ' ? " " : "";
}

Result<std::string> format_integer(Runtime& rt, int64_t value, const Spec& spec) {
  if (spec.precision) return invalid_argument("precision not allowed in integer format specifier");
  constexpr std::string_view kOtherBases = "boxXc";
  bool decimal = kOtherBases.find(spec.type) == std::string_view::npos;
  if (spec.group == ',' && !decimal) {
    return invalid_argument("cannot specify ',' with '{}'", spec.type);
  }
  if (spec.type == 'c') {
    if (spec.group != 0 || spec.sign != 0 || spec.alternate) {
      return invalid_argument("numeric format options are not allowed with 'c'");
    }
    std::string out;
    unicode::append(out, TRY(to_code_point(value)));
    return pad(rt, spec, "", out, '<');
  }
  int base = spec.type == 'b'                       ? 2
             : spec.type == 'o'                     ? 8
             : spec.type == 'x' || spec.type == 'X' ? 16
                                                    : 10;
  std::string digits = unsigned_digits(magnitude(value), base, spec.type == 'X');
  std::string prefix = sign_of(value < 0, spec.sign);
  if (spec.alternate && base != 10) prefix.append({'0', spec.type});
  if (spec.group != 0) TRY(group_number(rt, spec, prefix.size(), base == 10 ? 3 : 4, digits));
  return pad(rt, spec, prefix, digits, '>');
}

Result<std::string> format_real(Runtime& rt, double value, const Spec& spec) {
  char type = spec.type;
  bool percent = type == '%';
  double shown = percent ? value * 100 : value;
  std::string digits;
  if (type == 0 && !spec.precision) {
    digits = format_float(std::abs(shown));
  } else {
    int64_t precision = spec.precision.value_or(6);
    char conversion = percent ? 'f' : type == 0 ? 'g' : type;
    digits = TRY(float_digits(rt, std::abs(shown), conversion, precision, spec.alternate));
    bool plain = digits.find_first_of(".en") == std::string::npos;
    if (type == 0 && plain) digits += ".0";
  }
  if (percent) digits += '%';
  std::string prefix = sign_of(std::signbit(value), spec.sign);
  if (spec.group != 0) TRY(group_number(rt, spec, prefix.size(), 3, digits));
  return pad(rt, spec, prefix, digits, '>');
}

}  // namespace

Result<std::optional<int64_t>> take_number(std::string_view& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  int64_t number = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    number = number * 10 + (text[0] - '0');
    if (number > kWidthMax) return exhausted("a format width or precision beyond {}", kWidthMax);
    text.remove_prefix(1);
  }
  return number;
}

Result<char32_t> to_code_point(int64_t value) {
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  if (value < 0 || value > 0x10ffff || surrogate) {
    return invalid_argument("{} is not a Unicode code point", value);
  }
  return static_cast<char32_t>(value);
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

std::string unsigned_digits(uint64_t value, int base, bool upper) {
  const char* alphabet = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out += alphabet[value % static_cast<uint64_t>(base)];
    value /= static_cast<uint64_t>(base);
  } while (value != 0);
  std::reverse(out.begin(), out.end());
  return out;
}

Result<std::string> float_digits(Runtime& rt, double value, char conversion, int64_t precision,
                                 bool alternate) {
  TRY(rt.charge(precision + 16));
  char format[] = "%#.*f";
  format[4] = conversion;
  const char* chosen = format;
  char plain[] = {'%', '.', '*', conversion, 0};
  if (!alternate) chosen = plain;
  int size = std::snprintf(nullptr, 0, chosen, static_cast<int>(precision), value);
  std::string out(size, 0);
  std::snprintf(out.data(), out.size() + 1, chosen, static_cast<int>(precision), value);
  return out;
}

Result<std::string> format_spec(Runtime& rt, const Value& value, std::string_view text) {
  if (text.empty()) return to_str(rt, value);
  if (!value.is_string() && !value.is_number()) {
    return invalid_argument("unsupported format string passed to {}.__format__", type_name(value));
  }
  Spec spec = TRY(parse_spec(text));
  if (value.is_string()) return format_text(rt, value, spec);
  if (spec.zeros && spec.align == 0) spec.align = '=';
  constexpr std::string_view kInteger = "bcdoxX";
  constexpr std::string_view kReal = "eEfFgG%";
  if (value.is_integral()) {
    if (spec.type == 0 || kInteger.find(spec.type) != std::string_view::npos) {
      return format_integer(rt, value.as_int(), spec);
    }
  }
  if (spec.type != 0 && kReal.find(spec.type) == std::string_view::npos) {
    return invalid_argument("unknown format code '{}' for object of type '{}'", spec.type,
                            type_name(value));
  }
  return format_real(rt, value.as_float(), spec);
}

}  // namespace banyan::jinja
