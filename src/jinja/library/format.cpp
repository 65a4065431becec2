// "..." % values and "...".format(...). A safe (Markup) format escapes what it inserts.
#include <algorithm>
#include <cmath>

#include "jinja/library/number_format.h"
#include "jinja/library/unicode.h"
#include "jinja/runtime.h"

namespace banyan::jinja {
namespace {

// Applies !s or !r (also %s and %r).
Result<std::string> convert(Runtime& rt, const Value& value, char conversion) {
  std::string out;
  if (conversion == 's') {
    TRY(append_str(rt, out, value));
    return out;
  }
  if (conversion == 'a') return unsupported("the conversion a is not supported in chat templates");
  TRY(append_repr(rt, out, value));
  return out;
}

struct Directive {
  bool left = false, plus = false, space = false, zero = false, alternate = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

class PercentFormat {
 public:
  PercentFormat(Runtime& rt, const Value& format, const Value& values)
      : rt_(rt), rest_(format.text()), safe_(format.safe()), values_(values) {
    if (values.is(Kind::kTuple)) arguments_ = values.elements();
  }

  Result<Value> run() {
    TRY(rt_.charge_bytes(rest_.size()));
    while (!rest_.empty()) {
      size_t percent = std::min(rest_.find('%'), rest_.size());
      out_ += rest_.substr(0, percent);
      rest_.remove_prefix(percent);
      if (!rest_.empty()) TRY(directive());
    }
    bool mapping = values_.is(Kind::kDict) || values_.is(Kind::kList) || values_.is(Kind::kRange) ||
                   values_.is_undefined();
    if (used_ < arguments_.size() && !mapping) {
      return invalid_argument("not all arguments converted during string formatting");
    }
    return make_string(rt_, out_, safe_);
  }

 private:
  Result<Value> next_argument() {
    if (used_ >= arguments_.size()) {
      return invalid_argument("not enough arguments for format string");
    }
    return arguments_[used_++];
  }

  Result<Value> named_argument() {
    rest_.remove_prefix(1);
    size_t close = rest_.find(')');
    if (close == std::string_view::npos) return invalid_argument("incomplete format key");
    if (!values_.is(Kind::kDict)) return invalid_argument("format requires a mapping");
    std::string_view key = rest_.substr(0, close);
    rest_.remove_prefix(close + 1);
    const Value* found = TRY(dict_find(rt_, *values_.dict, key));
    if (found == nullptr) return invalid_argument("'{}': no such key for the format", shown(key));
    return *found;
  }

  void flags(Directive& d) {
    for (; !rest_.empty(); rest_.remove_prefix(1)) {
      switch (rest_[0]) {
        case '-':
          d.left = true;
          break;
        case '+':
          d.plus = true;
          break;
        case ' ':
          d.space = true;
          break;
        case '0':
          d.zero = true;
          break;
        case '#':
          d.alternate = true;
          break;
        default:
          return;
      }
    }
  }

  Result<int64_t> number(int64_t otherwise) {
    if (!rest_.empty() && rest_[0] == '*') {
      rest_.remove_prefix(1);
      int64_t given = TRY(to_index(TRY(next_argument()), "* in a format"));
      if (given > (1 << 30) || given < -(1 << 30)) {
        return exhausted("{} as the width or precision of a format", given);
      }
      return given;
    }
    return TRY(take_number(rest_)).value_or(otherwise);
  }

  Status directive() {
    rest_.remove_prefix(1);
    Value value;
    if (!rest_.empty() && rest_[0] == '(') value = TRY(named_argument());
    Directive d;
    flags(d);
    d.width = TRY(number(0));
    if (d.width < 0) {
      d.left = true;
      d.width = -d.width;
    }
    if (!rest_.empty() && rest_[0] == '.') {
      rest_.remove_prefix(1);
      d.precision = std::max<int64_t>(0, TRY(number(0)));
    }
    while (!rest_.empty() && (rest_[0] == 'h' || rest_[0] == 'l' || rest_[0] == 'L')) {
      rest_.remove_prefix(1);
    }
    if (rest_.empty()) return invalid_argument("incomplete format");
    d.type = rest_[0];
    rest_.remove_prefix(1);
    if (d.type == '%') {
      out_ += '%';
      return {};
    }
    if (value.absent()) value = TRY(single_or_next());
    return one(d, value);
  }

  Result<Value> single_or_next() {
    if (values_.is(Kind::kTuple)) return next_argument();
    if (used_single_) return invalid_argument("not enough arguments for format string");
    used_single_ = true;
    return values_;
  }

  Status one(const Directive& d, const Value& value) {
    switch (d.type) {
      case 's':
      case 'r':
      case 'a':
        return text(d, value);
      case 'c':
        return character(d, value);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return integer(d, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return real(d, value);
      default:
        return invalid_argument("unsupported format character 0x{:02x}",
                                static_cast<unsigned char>(d.type));
    }
  }

  Status text(const Directive& d, const Value& value) {
    std::string body = TRY(convert(rt_, value, d.type));
    if (safe_ && !(d.type == 's' && value.is_string() && value.safe())) {
      body = TRY(to_str(rt_, TRY(escape(rt_, TRY(make_string(rt_, body))))));
    }
    std::string_view shown = body;
    if (d.precision >= 0) shown = shown.substr(0, byte_offset(shown, d.precision));
    return pad(d, "", shown, ' ');
  }

  Status character(const Directive& d, const Value& value) {
    std::string body;
    if (value.is_integral()) {
      unicode::append(body, TRY(to_code_point(value.as_int())));
    } else if (value.is_string() && TRY(string_length(rt_, value)) == 1) {
      body = value.text();
    } else {
      return invalid_argument("%c requires a character or a code point");
    }
    return pad(d, "", body, ' ');
  }

  static std::string sign(const Directive& d, bool negative) {
    if (negative) return "-";
    return d.plus ? "+" : d.space ? " " : "";
  }

  Status integer(const Directive& d, const Value& value) {
    if (value.is_undefined()) return undefined_error(value);
    bool decimal = d.type == 'd' || d.type == 'i' || d.type == 'u';
    int64_t number = 0;
    if (value.is_integral()) {
      number = value.as_int();
    } else if (decimal && value.is(Kind::kFloat) && std::abs(value.real) < 9.2e18) {
      number = static_cast<int64_t>(value.real);
    } else {
      return invalid_argument("%{} format: a number is required, not {}", d.type, type_name(value));
    }
    int base = decimal ? 10 : d.type == 'o' ? 8 : 16;
    std::string digits = unsigned_digits(magnitude(number), base, d.type == 'X');
    if (d.precision > std::ssize(digits)) {
      TRY(rt_.charge_bytes(d.precision));
      digits.insert(0, d.precision - digits.size(), '0');
    }
    std::string prefix = sign(d, number < 0);
    if (d.alternate && base != 10) prefix.append({'0', d.type});
    return pad(d, prefix, digits, d.zero ? '0' : ' ');
  }

  Status real(const Directive& d, const Value& value) {
    if (value.is_undefined()) return undefined_error(value);
    if (!value.is_number()) {
      return invalid_argument("must be real number, not {}", type_name(value));
    }
    double number = value.as_float();
    std::string digits = TRY(float_digits(rt_, std::abs(number), d.type,
                                          d.precision < 0 ? 6 : d.precision, d.alternate));
    return pad(d, sign(d, std::signbit(number)), digits, d.zero ? '0' : ' ');
  }

  // Zeros go between the prefix and the body, spaces outside.
  Status pad(const Directive& d, std::string_view prefix, std::string_view body, char fill) {
    int64_t size = count_code_points(prefix) + count_code_points(body);
    size_t missing = std::max<int64_t>(0, d.width - size);
    TRY(rt_.charge_bytes(missing + body.size()));
    if (!d.left && fill == ' ') out_.append(missing, ' ');
    out_ += prefix;
    if (!d.left && fill == '0') out_.append(missing, '0');
    out_ += body;
    if (d.left) out_.append(missing, ' ');
    return {};
  }

  Runtime& rt_;
  std::string_view rest_;
  bool safe_;
  const Value& values_;
  std::span<const Value> arguments_;
  size_t used_ = 0;
  bool used_single_ = false;
  std::string out_;

 public:
  // An unused single value is an error, like unused tuple elements.
  bool leftover() const {
    bool mapping = values_.is(Kind::kDict) || values_.is(Kind::kList) || values_.is(Kind::kRange) ||
                   values_.is_undefined();
    return !values_.is(Kind::kTuple) && !used_single_ && !mapping;
  }
};

// ---- str.format -------------------------------------------------------------------------------

class BraceFormat {
 public:
  BraceFormat(Runtime& rt, bool safe, const Args& args) : rt_(rt), safe_(safe), args_(args) {}

  Result<std::string> expand(std::string_view text, int depth) {
    if (depth > 2) return invalid_argument("format fields nest too deeply");
    TRY(rt_.charge_bytes(text.size()));
    std::string out;
    while (!text.empty()) {
      size_t brace = std::min(text.find_first_of("{}"), text.size());
      out += text.substr(0, brace);
      text.remove_prefix(brace);
      if (text.empty()) break;
      if (text.size() > 1 && text[1] == text[0]) {
        out += text[0];
        text.remove_prefix(2);
      } else if (text[0] == '}') {
        return invalid_argument("single '}}' encountered in format string");
      } else {
        text.remove_prefix(1);
        out += TRY(field(text, depth));
      }
    }
    return out;
  }

 private:
  // Consumes "name!conversion:spec}" from `text`.
  Result<std::string> field(std::string_view& text, int depth) {
    int open = 1;
    size_t end = 0;
    for (; end < text.size(); ++end) {
      if (text[end] == '{') ++open;
      if (text[end] == '}' && --open == 0) break;
    }
    if (end == text.size()) return invalid_argument("expected '}}' before end of string");
    std::string_view body = text.substr(0, end);
    text.remove_prefix(end + 1);
    size_t name_end = 0;
    for (bool bracket = false; name_end < body.size(); ++name_end) {
      char c = body[name_end];
      if (c == '[') bracket = true;
      if (c == ']') bracket = false;
      if (!bracket && (c == ':' || c == '!')) break;
    }
    Value value = TRY(lookup(body.substr(0, name_end)));
    body.remove_prefix(name_end);
    char conversion = 0;
    if (body.starts_with('!')) {
      if (body.size() < 2 || (body.size() > 2 && body[2] != ':')) {
        return invalid_argument("expected ':' after conversion specifier");
      }
      conversion = body[1];
      body.remove_prefix(2);
    }
    if (body.starts_with(':')) body.remove_prefix(1);
    return render(value, conversion, TRY(expand(body, depth + 1)));
  }

  Result<std::string> render(Value value, char conversion, const std::string& spec) {
    if (conversion != 0) {
      if (conversion != 's' && conversion != 'r' && conversion != 'a') {
        return invalid_argument("unknown conversion specifier '{}'", conversion);
      }
      value = TRY(make_string(rt_, TRY(convert(rt_, value, conversion))));
    }
    std::string text = TRY(format_spec(rt_, value, spec));
    if (!safe_ || (value.is_string() && value.safe())) return text;
    return to_str(rt_, TRY(escape(rt_, TRY(make_string(rt_, text)))));
  }

  Result<Value> lookup(std::string_view name) {
    size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = TRY(argument(name.substr(0, first_end)));
    name.remove_prefix(first_end);
    while (!name.empty()) {
      if (name[0] == '.') {
        name.remove_prefix(1);
        size_t end = std::min(name.find_first_of(".["), name.size());
        if (end == 0) return invalid_argument("empty attribute in format string");
        std::string_view attribute = rt_.heap.copy(name.substr(0, end));
        value = TRY(get_attribute(rt_, value, attribute));
        name.remove_prefix(end);
      } else {
        size_t end = name.find(']');
        if (name[0] != '[' || end == std::string_view::npos || end == 1) {
          return invalid_argument("malformed element in format string");
        }
        value = TRY(element(value, name.substr(1, end - 1)));
        name.remove_prefix(end + 1);
      }
    }
    return value;
  }

  Result<Value> element(const Value& value, std::string_view key) {
    std::string_view rest = key;
    auto number = TRY(take_number(rest));
    if (number && rest.empty()) return get_item(rt_, value, make_int(*number));
    return get_item(rt_, value, TRY(make_string(rt_, key)));
  }

  Result<Value> argument(std::string_view name) {
    std::string_view rest = name;
    auto number = TRY(take_number(rest));
    if (name.empty() || (number && rest.empty())) {
      bool automatic = name.empty();
      if (numbering_ != 0 && numbering_ != (automatic ? 1 : 2)) {
        return invalid_argument("cannot mix automatic and manual field numbering");
      }
      numbering_ = automatic ? 1 : 2;
      size_t index = automatic ? next_++ : *number;
      if (index >= args_.positional.size()) {
        return invalid_argument("replacement index {} out of range for positional args", index);
      }
      return args_.positional[index];
    }
    if (named_ == nullptr) TRY(index_keywords());
    if (const Value* found = TRY(dict_find(rt_, *named_, name))) return *found;
    return invalid_argument("'{}': no such argument for the format", shown(name));
  }

  Status index_keywords() {
    named_ = make_dict(rt_);
    for (const Keyword& keyword : args_.keywords) {
      TRY(dict_set(rt_, *named_, borrow(rt_, keyword.name), keyword.value));
    }
    return {};
  }

  Runtime& rt_;
  bool safe_;
  const Args& args_;
  Dict* named_ = nullptr;  // keyword arguments, built on first lookup
  size_t next_ = 0;
  int numbering_ = 0;  // 0 undecided, 1 automatic, 2 manual
};

}  // namespace

Result<Value> format_percent(Runtime& rt, const Value& format, const Value& values) {
  PercentFormat percent(rt, format, values);
  Value result = TRY(percent.run());
  if (percent.leftover()) {
    return invalid_argument("not all arguments converted during string formatting");
  }
  return result;
}

Result<Value> format_braces(Runtime& rt, const Value& format, const Args& args) {
  BraceFormat braces(rt, format.safe(), args);
  std::string text = TRY(braces.expand(format.text(), 0));
  return make_string(rt, text, format.safe());
}

}  // namespace banyan::jinja
