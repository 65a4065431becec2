// Filters that convert to numbers.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "jinja/library/builtins.h"
#include "jinja/library/unicode.h"

namespace banyan::jinja {
namespace {

// Removes single underscores between digits, as Python's literals allow; nothing if one is
// elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    auto is_alnum = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    if (i == 0 || i + 1 == text.size() || !is_alnum(text[i - 1]) || !is_alnum(text[i + 1])) {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<double> parse_float(std::string_view source) {
  auto cleaned = without_underscores(strip(source));
  if (!cleaned || cleaned->empty()) return std::nullopt;
  std::string lower = *cleaned;
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  std::string_view body = lower;
  if (body[0] == '+' || body[0] == '-') body.remove_prefix(1);
  double sign = lower[0] == '-' ? -1 : 1;
  if (body == "inf" || body == "infinity") return sign * HUGE_VAL;
  if (body == "nan") return std::nan("");
  if (body.empty() || body.find_first_not_of("0123456789.e+-") != std::string_view::npos) {
    return std::nullopt;
  }
  char* end = nullptr;
  double value = std::strtod(lower.c_str(), &end);
  if (*end != 0 || end == lower.c_str()) return std::nullopt;
  return value;
}

struct ParsedInt {
  bool valid = false;
  bool overflow = false;
  int64_t value = 0;
};

ParsedInt parse_int(std::string_view source, int64_t base) {
  auto cleaned = without_underscores(strip(source));
  if (!cleaned) return {};
  std::string_view text = *cleaned;
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int64_t prefix_base = 0;
  if (text.size() > 1 && text[0] == '0') {
    char mark = static_cast<char>(text[1] | 0x20);
    prefix_base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  }
  bool zero_prefixed = text.starts_with('0') && text.find_first_not_of('0') != text.npos;
  if (base == 0 && prefix_base == 0 && zero_prefixed) return {};
  if (base == 0) base = prefix_base == 0 ? 10 : prefix_base;
  if (prefix_base == base) text.remove_prefix(2);
  if (base < 2 || base > 36 || text.empty() || text[0] == '-') return {};
  uint64_t magnitude = 0;
  auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), magnitude, static_cast<int>(base));
  if (parsed.ptr != text.data() + text.size()) return {};
  uint64_t limit = static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (parsed.ec == std::errc::result_out_of_range || magnitude > limit) return {true, true, 0};
  return {true, false, static_cast<int64_t>(negative ? uint64_t{0} - magnitude : magnitude)};
}

Result<Value> truncated(double value) {
  if (std::abs(value) >= 9.223372036854775e18) {
    return invalid_argument("{} as an integer is beyond 64 bits", value);
  }
  return make_int(static_cast<int64_t>(value));
}

Result<Value> to_int(Runtime& rt, const Value& value, const Args& args) {
  Value otherwise = args.given(0) ? args[0] : make_int(0);
  int64_t base = args.given(1) ? TRY(to_index(args[1], "int's base")) : 10;
  if (value.is_integral()) return make_int(value.as_int());
  if (value.is_undefined()) return undefined_error(value);
  double number = 0;
  if (value.is(Kind::kFloat)) {
    if (std::isinf(value.real)) return invalid_argument("cannot convert infinity to integer");
    number = value.real;
  } else if (value.is_string()) {
    TRY(rt.charge(value.text().size() / 2));
    ParsedInt parsed = parse_int(value.text(), base);
    if (parsed.overflow) return invalid_argument("an integer beyond 64 bits");
    if (parsed.valid) return make_int(parsed.value);
    auto real = parse_float(value.text());
    if (!real || std::isinf(*real)) return otherwise;
    number = *real;
  } else {
    return otherwise;
  }
  return std::isnan(number) ? otherwise : truncated(number);
}

Result<Value> to_float(Runtime& rt, const Value& value, const Args& args) {
  Value otherwise = args.given(0) ? args[0] : make_float(0);
  if (value.is_number()) return make_float(value.as_float());
  if (value.is_undefined()) return undefined_error(value);
  if (!value.is_string()) return otherwise;
  TRY(rt.charge(value.text().size() / 2));
  auto real = parse_float(value.text());
  return real ? make_float(*real) : otherwise;
}

Result<Value> absolute(Runtime&, const Value& value, const Args&) {
  if (value.is_undefined()) return undefined_error(value);
  if (value.is(Kind::kFloat)) return make_float(std::abs(value.real));
  if (!value.is_integral()) return invalid_argument("abs() of a '{}'", type_name(value));
  return value.as_int() < 0 ? negate(value) : make_int(value.as_int());
}

Result<Value> round_common(const Value& value, int64_t precision) {
  if (value.is_integral()) {
    if (precision >= 0) return make_int(value.as_int());
    if (precision < -18) return make_int(0);
    int64_t unit = 1;
    for (int64_t i = 0; i < -precision; ++i) unit *= 10;
    int64_t number = value.as_int();
    int64_t down = number / unit * unit;
    int64_t rest = std::abs(number - down);
    bool away = rest > unit / 2 || (rest == unit / 2 && (down / unit) % 2 != 0);
    int64_t result = down;
    if (away && __builtin_add_overflow(down, number < 0 ? -unit : unit, &result)) {
      return invalid_argument("round({}, {}) is beyond 64 bits", number, precision);
    }
    return make_int(result);
  }
  double number = value.real;
  if (std::isnan(number) || std::isinf(number) || precision > 323) return value;
  if (precision < -308) return make_float(std::copysign(0.0, number));
  if (precision < 0) {
    double unit = std::pow(10.0, static_cast<double>(-precision));
    return make_float(std::nearbyint(number / unit) * unit);
  }
  // The C library prints the exact binary value, ties to even, which is Python's rule.
  std::string digits(400 + precision, 0);
  std::snprintf(digits.data(), digits.size(), "%.*f", static_cast<int>(precision), number);
  return make_float(std::strtod(digits.c_str(), nullptr));
}

Result<Value> round(Runtime& rt, const Value& value, const Args& args) {
  int64_t precision = args.given(0) ? TRY(to_index(args[0], "round's precision")) : 0;
  std::string_view how = "common";
  if (args.given(1) && args[1].is_string()) how = args[1].text();
  if (how != "common" && how != "ceil" && how != "floor") {
    return invalid_argument("method must be common, ceil or floor");
  }
  if (value.is_undefined()) return undefined_error(value);
  if (!value.is_number()) return invalid_argument("round() of a '{}'", type_name(value));
  TRY(rt.charge(8));
  if (how == "common") return round_common(value, precision);
  double unit = std::pow(10.0, static_cast<double>(precision));
  double scaled = value.as_float() * unit;
  if (std::isnan(scaled) || std::isinf(scaled)) {
    return invalid_argument("{} cannot be rounded to {} places", value.as_float(), precision);
  }
  return make_float((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

constexpr Builtin kFilters[] = {
    {"int", "default base", 0, to_int},
    {"float", "default", 0, to_float},
    {"abs", "", 0, absolute},
    {"round", "precision method", 0, round},
};

}  // namespace

std::span<const Builtin> number_filters() {
  return kFilters;
}

}  // namespace banyan::jinja
