#include "jinja/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "jinja/library/unicode.h"

namespace banyan::jinja {
namespace {

constexpr size_t kNameBytesMax = 200;  // bounded because comparing names is not charged

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char32_t c) {
  return c == '_' || is_alpha(c) || is_numeric(c);
}

// Length of the leading run of digits of `base`, with single underscores between them.
size_t digit_run(std::string_view text, int base) {
  auto is_digit_of = [base](char c) {
    int digit = is_ascii_digit(c) ? c - '0' : (c | 0x20) >= 'a' ? (c | 0x20) - 'a' + 10 : 99;
    return digit < base;
  };
  size_t size = 0;
  while (size < text.size()) {
    size_t at = size + (text[size] == '_' && size > 0 ? 1 : 0);
    if (at >= text.size() || !is_digit_of(text[at])) break;
    size = at + 1;
  }
  return size;
}

std::string without_underscores(std::string_view text) {
  std::string out(text);
  std::erase(out, '_');
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, Heap& heap) : source_(source), heap_(heap) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) TRY(root());
    push(TokenType::kEnd, {});
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return source_.substr(at_); }
  bool at(std::string_view text) const { return rest().starts_with(text); }

  void advance(size_t size) {
    std::string_view taken = rest().substr(0, size);
    line_ += static_cast<int>(std::count(taken.begin(), taken.end(), '\n'));
    if (!taken.empty()) line_starting_ = taken.back() == '\n';
    at_ += taken.size();
  }

  void skip_space() { advance(rest().size() - strip_left(rest()).size()); }

  void push(TokenType type, std::string_view text) { tokens_.push_back({type, line_, text, 0, 0}); }

  std::unexpected<Error> fail(std::string_view what) const {
    return invalid_argument("chat template, line {}: {}", line_, what);
  }

  // The text before `tag`, stripped according to the tag's sign and lstrip_blocks.
  std::string_view stripped(std::string_view text, char sign, bool is_print) const {
    if (sign == '-') return strip_right(text);
    if (sign == '+' || is_print) return text;
    size_t line_start = text.rfind('\n') + 1;  // 0 when there is none
    if (line_start == 0 && !line_starting_) return text;
    return strip(text.substr(line_start)).empty() ? text.substr(0, line_start) : text;
  }

  static char sign_of(std::string_view text) {
    return !text.empty() && (text[0] == '-' || text[0] == '+') ? text[0] : ' ';
  }

  size_t find_tag() const {
    size_t from = at_;
    while (true) {
      size_t brace = source_.find('{', from);
      if (brace == std::string_view::npos || brace + 1 >= source_.size()) return source_.size();
      char next = source_[brace + 1];
      if (next == '{' || next == '%' || next == '#') return brace;
      from = brace + 1;
    }
  }

  Status root() {
    size_t tag = find_tag();
    if (tag == source_.size()) {
      push(TokenType::kText, rest());
      advance(rest().size());
      return {};
    }
    std::string_view text = source_.substr(at_, tag - at_);
    char kind = source_[tag + 1];
    char sign = sign_of(source_.substr(tag + 2));
    std::string_view shown = stripped(text, sign, kind == '{');
    if (!shown.empty()) push(TokenType::kText, shown);
    advance(text.size());
    if (kind == '%') {
      if (size_t size = raw_tag_size("raw", false); size > 0) return raw(size);
    }
    advance(sign == ' ' ? 2 : 3);
    if (kind == '#') return comment();
    push(kind == '{' ? TokenType::kPrintBegin : TokenType::kBlockBegin, {});
    return tag_body(kind == '{');
  }

  // The size of "{% name %}" at the current position, or 0 if it is not there.
  size_t raw_tag_size(std::string_view name, bool trim_newline) const {
    std::string_view text = rest().substr(2);
    if (sign_of(text) != ' ') text.remove_prefix(1);
    text = strip_left(text);
    if (!text.starts_with(name)) return 0;
    text = strip_left(text.substr(name.size()));
    if (text.starts_with("-%}")) {
      text = strip_left(text.substr(3));
    } else if (text.starts_with("%}")) {
      text.remove_prefix(2);
      if (trim_newline && text.starts_with('\n')) text.remove_prefix(1);
    } else if (trim_newline && text.starts_with("+%}")) {
      text.remove_prefix(3);
    } else {
      return 0;
    }
    return rest().size() - text.size();
  }

  Status raw(size_t begin_size) {
    int first_line = line_;
    advance(begin_size);
    size_t start = at_;
    bool was_line_starting = line_starting_;
    for (size_t tag = source_.find("{%", at_); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 2)) {
      advance(tag - at_);
      size_t end_size = raw_tag_size("endraw", true);
      if (end_size == 0) continue;
      line_starting_ = was_line_starting;
      std::string_view text = source_.substr(start, tag - start);
      text = stripped(text, sign_of(source_.substr(tag + 2)), false);
      if (!text.empty()) push(TokenType::kText, text);
      advance(end_size);
      return {};
    }
    if (start == source_.size()) return {};  // Jinja only rejects leftover text
    line_ = first_line;
    return fail("Missing end of raw directive");
  }

  Status comment() {
    if (at_ == source_.size()) return {};
    size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) return fail("Missing end of comment tag");
    char sign = end > at_ ? source_[end - 1] : ' ';
    advance(end + 2 - at_);
    if (sign == '-') skip_space();
    if (sign != '-' && sign != '+' && at("\n")) advance(1);
    return {};
  }

  // Consumes the end of a tag if it is next.
  bool tag_end(bool is_print) {
    std::string_view close = is_print ? "}}" : "%}";
    char sign = sign_of(rest());
    std::string_view after = rest().substr(sign == ' ' ? 0 : 1);
    if (!after.starts_with(close) || (is_print && sign == '+')) return false;
    push(is_print ? TokenType::kPrintEnd : TokenType::kBlockEnd, {});
    advance(sign == ' ' ? 2 : 3);
    if (sign == '-') skip_space();
    if (sign == ' ' && !is_print && at("\n")) advance(1);
    return true;
  }

  Status tag_body(bool is_print) {
    open_.clear();
    while (at_ < source_.size()) {
      if (open_.empty() && tag_end(is_print)) return {};
      size_t before = at_;
      skip_space();
      if (at_ != before) continue;
      TRY(token());
    }
    return {};
  }

  Status token() {
    char c = source_[at_];
    if (is_ascii_digit(c)) return number();
    if (c == '\'' || c == '"') return string(c);
    std::string_view text = rest();
    size_t size = 0;
    for (std::string_view left = text; !left.empty();) {
      std::string_view next = left;
      if (!is_word(next_code_point(next))) break;
      left = next;
      size = text.size() - left.size();
    }
    if (size == 0) return symbol();
    if (size > kNameBytesMax) {
      return exhausted("chat template, line {}: a name of {} bytes; the limit is {}", line_, size,
                       kNameBytesMax);
    }
    std::string_view first = text.substr(0, size);
    char32_t start = next_code_point(first);
    if (start != '_' && !is_alpha(start)) return fail("Invalid character in identifier");
    push(TokenType::kName, text.substr(0, size));
    advance(size);
    return {};
  }

  // The size of a float literal here, 0 if there is none.
  size_t float_size() const {
    if (at_ > 0 && source_[at_ - 1] == '.') return 0;
    std::string_view text = rest();
    size_t size = digit_run(text, 10);
    size_t fraction = 0;
    if (size < text.size() && text[size] == '.') {
      size_t digits = digit_run(text.substr(size + 1), 10);
      if (digits > 0) fraction = digits + 1;
    }
    size_t mark = size + fraction;
    if (mark < text.size() && (text[mark] | 0x20) == 'e') {
      size_t signs = sign_of(text.substr(mark + 1)) == ' ' ? 0 : 1;
      size_t digits = digit_run(text.substr(mark + 1 + signs), 10);
      if (digits > 0) return mark + 1 + signs + digits;
    }
    return fraction > 0 ? mark : 0;
  }

  Status number() {
    if (size_t size = float_size(); size > 0) {
      std::string digits = without_underscores(rest().substr(0, size));
      push(TokenType::kFloat, rest().substr(0, size));
      tokens_.back().real = std::strtod(digits.c_str(), nullptr);
      advance(size);
      return {};
    }
    std::string_view text = rest();
    int base = 10;
    size_t prefix = 0;
    if (text[0] == '0' && text.size() > 1) {
      char mark = static_cast<char>(text[1] | 0x20);
      int other = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
      std::string_view digits = text.substr(2);
      if (other != 10 && digits.starts_with('_')) digits.remove_prefix(1);
      if (other != 10 && digit_run(digits, other) > 0) {
        base = other;
        prefix = text.size() - digits.size();
      }
    }
    size_t size = digit_run(text.substr(prefix), base);
    if (base == 10 && text[0] == '0') {
      for (size = 1; size < text.size() && (text[size] == '0' || text[size] == '_'); ++size) {
      }
    }
    std::string digits = without_underscores(text.substr(prefix, size));
    push(TokenType::kInteger, text.substr(0, prefix + size));
    auto parsed =
        std::from_chars(digits.data(), digits.data() + digits.size(), tokens_.back().integer, base);
    if (parsed.ec != std::errc())
      return fail(fmt::format("the integer {} is beyond 64 bits", text.substr(0, prefix + size)));
    advance(prefix + size);
    return {};
  }

  Status string(char quote) {
    size_t end = at_ + 1;
    bool escaped = false;
    while (end < source_.size() && source_[end] != quote) {
      escaped |= source_[end] == '\\';
      end += source_[end] == '\\' ? 2 : 1;
    }
    if (end >= source_.size()) return fail(fmt::format("unexpected char {}", quote));
    std::string_view body = source_.substr(at_ + 1, end - at_ - 1);
    push(TokenType::kString, escaped ? heap_.copy(TRY(unescape(body))) : body);
    advance(end + 1 - at_);
    return {};
  }

  Result<std::string> unescape(std::string_view body) const {
    std::string out;
    while (!body.empty()) {
      if (body[0] != '\\') {
        out += body[0];
        body.remove_prefix(1);
        continue;
      }
      char c = body[1];
      body.remove_prefix(2);
      size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
      if (digits > 0) {
        TRY(append_code(out, body, digits, 16));
      } else if (c >= '0' && c <= '7') {
        body = {body.data() - 1, body.size() + 1};
        size_t size = 1;
        while (size < 3 && size < body.size() && body[size] >= '0' && body[size] <= '7') ++size;
        TRY(append_code(out, body, size, 8));
      } else {
        append_simple(out, c);
      }
    }
    return out;
  }

  Status append_code(std::string& out, std::string_view& body, size_t digits, int base) const {
    uint32_t code = 0;
    std::string_view text = body.substr(0, digits);
    auto parsed = std::from_chars(text.data(), text.data() + text.size(), code, base);
    if (text.size() < digits || parsed.ptr != text.data() + digits) {
      return fail("truncated escape in a string");
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      return fail("an escape in a string is not a Unicode character");
    }
    unicode::append(out, code);
    body.remove_prefix(digits);
    return {};
  }

  static void append_simple(std::string& out, char c) {
    constexpr std::string_view kFrom = "\\'\"abfnrtv";
    constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    size_t found = kFrom.find(c);
    if (found != std::string_view::npos) {
      out += kTo[found];
    } else if (c != '\n') {  // a backslash at the end of a line joins the lines
      out += '\\';
      out += c;
    }
  }

  Status symbol() {
    static constexpr std::string_view kSymbols[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (std::string_view candidate : kSymbols) {
      if (at(candidate)) return bracket(candidate);
    }
    std::string_view text = rest();
    std::string_view after = text;
    next_code_point(after);
    return fail(fmt::format("unexpected char '{}'", text.substr(0, text.size() - after.size())));
  }

  Status bracket(std::string_view symbol) {
    if (symbol == "{") open_ += '}';
    if (symbol == "(") open_ += ')';
    if (symbol == "[") open_ += ']';
    if (symbol == "}" || symbol == ")" || symbol == "]") {
      if (open_.empty()) return fail(fmt::format("unexpected '{}'", symbol));
      if (open_.back() != symbol[0]) {
        return fail(fmt::format("unexpected '{}', expected '{}'", symbol, open_.back()));
      }
      open_.pop_back();
    }
    push(TokenType::kOperator, rest().substr(0, symbol.size()));
    advance(symbol.size());
    return {};
  }

  std::string_view source_;
  Heap& heap_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the last token ended a line
  std::string open_;           // open brackets, innermost last
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source, Heap& heap) {
  return Lexer(source, heap).run();
}

std::string normalize_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

}  // namespace banyan::jinja
