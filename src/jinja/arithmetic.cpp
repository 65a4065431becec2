// Python's binary operators. Integers are 64-bit; overflow is an error, not a big integer.
#include <cmath>

#include "jinja/runtime.h"

namespace banyan::jinja {
namespace {

constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};

std::unexpected<Error> overflow(Arithmetic op, int64_t a, int64_t b) {
  return invalid_argument("{} {} {} is beyond 64 bits", a, kSymbols[static_cast<int>(op)], b);
}

std::unexpected<Error> unsupported_operands(Arithmetic op, const Value& a, const Value& b) {
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  return invalid_argument("unsupported operand type(s) for {}: '{}' and '{}'",
                          kSymbols[static_cast<int>(op)], type_name(a), type_name(b));
}

Result<Value> integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return invalid_argument("0 cannot be raised to a negative power");
    return make_float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  for (int64_t left = exponent, square = base; left > 0; left >>= 1) {
    if ((left & 1) != 0 && __builtin_mul_overflow(result, square, &result)) {
      return overflow(Arithmetic::kPower, base, exponent);
    }
    if (left > 1 && __builtin_mul_overflow(square, square, &square)) {
      return overflow(Arithmetic::kPower, base, exponent);
    }
  }
  return make_int(result);
}

Result<Value> integers(Arithmetic op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Arithmetic::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return overflow(op, a, b);
      return make_int(result);
    case Arithmetic::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return overflow(op, a, b);
      return make_int(result);
    case Arithmetic::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return overflow(op, a, b);
      return make_int(result);
    case Arithmetic::kPower:
      return integer_power(a, b);
    default:
      break;
  }
  if (b == 0) return invalid_argument("division of {} by zero", a);
  if (op == Arithmetic::kDivide) {
    return make_float(static_cast<long double>(a) / b);
  }
  if (b == -1) {
    if (op == Arithmetic::kModulo) return make_int(0);
    if (__builtin_sub_overflow(int64_t{0}, a, &result)) return overflow(op, a, b);
    return make_int(result);
  }
  int64_t remainder = a % b;
  bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
  if (op == Arithmetic::kModulo) return make_int(adjust ? remainder + b : remainder);
  return make_int(a / b - (adjust ? 1 : 0));
}

double floor_modulo(double a, double b) {
  double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double floor_divide(double a, double b) {
  double quotient = (a - floor_modulo(a, b)) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

Result<Value> float_power(double a, double b) {
  if (a == 0 && b < 0) return invalid_argument("0.0 cannot be raised to a negative power");
  double result = std::pow(a, b);
  if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
    return invalid_argument("{} ** {} is not a real number", a, b);
  }
  if (std::isinf(result) && !std::isinf(a) && !std::isinf(b)) {
    return invalid_argument("{} ** {} is too large", a, b);
  }
  return make_float(result);
}

Result<Value> floats(Arithmetic op, double a, double b) {
  switch (op) {
    case Arithmetic::kAdd:
      return make_float(a + b);
    case Arithmetic::kSubtract:
      return make_float(a - b);
    case Arithmetic::kMultiply:
      return make_float(a * b);
    case Arithmetic::kPower:
      return float_power(a, b);
    default:
      break;
  }
  if (b == 0) return invalid_argument("division of {} by zero", a);
  if (op == Arithmetic::kDivide) return make_float(a / b);
  return make_float(op == Arithmetic::kModulo ? floor_modulo(a, b) : floor_divide(a, b));
}

Result<Value> add_strings(Runtime& rt, Value a, Value b) {
  bool safe = a.safe() || b.safe();
  if (safe && !a.safe()) a = TRY(escape(rt, a));
  if (safe && !b.safe()) b = TRY(escape(rt, b));
  return join_strings(rt, a.text(), b.text(), safe);
}

// The total elements or bytes of `count` copies, or an error before anything is allocated.
Result<int64_t> repeated_size(Runtime& rt, int64_t size, int64_t count, int64_t per_unit) {
  int64_t total = 0;
  if (count <= 0 || size == 0) return 0;
  if (__builtin_mul_overflow(size, count, &total)) {
    return exhausted("{} copies of {} elements are too many", count, size);
  }
  TRY(rt.charge(total / per_unit + 1));
  return total;
}

Result<Value> repeat(Runtime& rt, const Value& value, int64_t count) {
  if (value.is_string()) {
    std::string_view text = value.text();
    int64_t size = TRY(repeated_size(rt, std::ssize(text), count, 64));
    std::string out;
    out.reserve(size);
    while (std::ssize(out) < size) out += text;
    return make_string(rt, out, value.safe());
  }
  int64_t size = TRY(repeated_size(rt, value.items->size, count, 4));
  std::vector<Value> all;
  all.reserve(size);
  while (std::ssize(all) < size) {
    all.insert(all.end(), value.elements().begin(), value.elements().end());
  }
  return make_list(rt, all, value.kind);
}

}  // namespace

Result<Value> arithmetic(Runtime& rt, Arithmetic op, const Value& a, const Value& b) {
  if (op == Arithmetic::kModulo && a.is_string()) return format_percent(rt, a, b);
  if (a.is_integral() && b.is_integral()) return integers(op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) return floats(op, a.as_float(), b.as_float());
  if (op == Arithmetic::kAdd) {
    if (a.is_string() && b.is_string()) return add_strings(rt, a, b);
    if (a.is_sequence() && a.kind == b.kind) return join_lists(rt, a, b);
  }
  if (op == Arithmetic::kMultiply) {
    bool a_repeats = a.is_string() || a.is_sequence();
    bool b_repeats = b.is_string() || b.is_sequence();
    if (a_repeats && b.is_integral()) return repeat(rt, a, b.as_int());
    if (b_repeats && a.is_integral()) return repeat(rt, b, a.as_int());
  }
  return unsupported_operands(op, a, b);
}

Result<Value> negate(const Value& value) {
  if (value.is_integral()) return integers(Arithmetic::kSubtract, 0, value.as_int());
  if (value.is(Kind::kFloat)) return make_float(-value.real);
  if (value.is_undefined()) return undefined_error(value);
  return invalid_argument("bad operand type for unary -: '{}'", type_name(value));
}

}  // namespace banyan::jinja
