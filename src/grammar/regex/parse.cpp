// The parser of regex.h: a recursive descent to the syntax tree.
#include <algorithm>

#include "base/quote.h"
#include "grammar/regex/regex.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

using Kind = Regex::Kind;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
char32_t hex_value(char c) {
  return static_cast<char32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

struct Flags {
  bool ignore_case = false, dot_all = false;
};

class RegexParser {
 public:
  RegexParser(std::string_view text, RegexDialect dialect, Budget& budget)
      : text_(text), ecma_(dialect == RegexDialect::kEcma), budget_(budget) {}

  Result<Regex> parse() {
    TRY(Budget::fits("the pattern (bytes)", text_.size(), budget_.limits().source_bytes_max));
    if (auto bad = unicode::first_invalid(text_)) {
      return invalid_argument("the pattern is not UTF-8 at byte {}", *bad);
    }
    regex_.root = TRY(alternation(0, Flags{}));
    if (at_ < text_.size()) return error("unmatched )", at_);
    return std::move(regex_);
  }

 private:
  std::unexpected<Error> error(std::string_view what, size_t at) const {
    return invalid_argument("pattern {}: {} at byte {}", quote(text_), what, at);
  }
  std::unexpected<Error> refuse(std::string_view what, size_t at) const {
    return unsupported("pattern {}: {} at byte {} is not supported", quote(text_), what, at);
  }
  bool more() const { return at_ < text_.size(); }
  bool looking_at(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    if (!looking_at(s)) return false;
    at_ += s.size();
    return true;
  }

  uint32_t add(Regex::Node node) {
    regex_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(regex_.nodes.size() - 1);
  }
  uint32_t add_set(CodepointSet set, const Flags& flags) {
    if (flags.ignore_case) set = set.case_insensitive();
    regex_.sets.push_back(std::move(set));
    return add({.kind = Kind::kSet, .set = static_cast<uint32_t>(regex_.sets.size() - 1)});
  }

  Result<uint32_t> alternation(int depth, Flags flags) {
    if (depth > budget_.limits().depth_max) return error("groups nested too deeply", at_);
    std::vector<uint32_t> branches;
    for (;;) {
      branches.push_back(TRY(concatenation(depth, flags)));
      if (!take("|")) break;
    }
    if (branches.size() == 1) return branches[0];
    return add({.kind = Kind::kAlternation, .children = std::move(branches)});
  }

  // Flags set by (?i) hold until the end of the enclosing group, across alternatives.
  Result<uint32_t> concatenation(int depth, Flags& flags) {
    std::vector<uint32_t> parts;
    while (more() && (quoted_ || (text_[at_] != '|' && text_[at_] != ')'))) {
      TRY(Budget::fits("the pattern (nodes)", regex_.nodes.size(), budget_.limits().nodes_max));
      TRY(budget_.spend("parsing a pattern", 8));
      if (!ecma_ && !quoted_ && take("\\Q")) quoted_ = true;
      if (quoted_ && take("\\E")) quoted_ = false;
      if (!more()) break;
      if (!quoted_ && (text_[at_] == '|' || text_[at_] == ')' || (!ecma_ && looking_at("\\Q"))))
        continue;
      if (!quoted_ && looking_at("(?")) {
        bool only_flags = TRY(flag_group(flags));
        if (only_flags) continue;
      }
      uint32_t atom = TRY(quoted_ ? literal(flags) : this->atom(depth, flags));
      parts.push_back(TRY(quantified(atom)));
    }
    if (parts.empty()) return add({.kind = Kind::kEmpty});
    if (parts.size() == 1) return parts[0];
    return add({.kind = Kind::kConcatenation, .children = std::move(parts)});
  }

  // Parses (?i) or (?s-i) and returns true; does not consume other groups.
  Result<bool> flag_group(Flags& flags) {
    size_t close = text_.find_first_of(":)", at_);
    if (close == text_.npos || text_[close] != ')') return false;
    std::string_view letters = text_.substr(at_ + 2, close - at_ - 2);
    if (letters.find_first_not_of("imsUux-") != letters.npos) return false;
    TRY(set_flags(letters, flags));
    at_ = close + 1;
    return true;
  }

  Status set_flags(std::string_view letters, Flags& flags) {
    bool value = true;
    for (char c : letters) {
      if (c == '-') {
        if (!value) return error("two minus signs in flags", at_);
        value = false;
      } else if (c == 'i') {
        flags.ignore_case = value;
      } else if (c == 's') {
        flags.dot_all = value;
      } else if (c == 'm' && value) {
        return refuse("multi-line mode (?m)", at_);
      } else if (c == 'x' && value) {
        return refuse("verbose mode (?x)", at_);
      } else if (c == 'u' && !value) {
        return refuse("byte mode (?-u)", at_);
      } else if (!std::string_view("mxuU").contains(c)) {
        return error("an unknown flag", at_);
      }
    }
    return {};
  }

  Result<uint32_t> quantified(uint32_t atom) {
    if (quoted_ && take("\\E")) quoted_ = false;
    size_t at = at_;
    int min = 0, max = 0;
    if (!TRY(quantifier(min, max))) return atom;
    take("?");  // lazy: accepts the same language
    if (more() && text_[at_] == '+') return refuse("a possessive quantifier", at_);
    int next_min = 0, next_max = 0;
    size_t next = at_;
    if (TRY(quantifier(next_min, next_max))) return error("a quantifier after another", next);
    Kind kind = regex_.nodes[atom].kind;
    if (ecma_ && (kind == Kind::kBegin || kind == Kind::kEnd)) {
      return error("a quantifier after an anchor", at);
    }
    return add({.kind = Kind::kRepeat, .min = min, .max = max, .children = {atom}});
  }

  Result<bool> quantifier(int& min, int& max) {
    if (!more() || quoted_) return false;
    max = Regex::kUnbounded;
    min = 0;
    if (take("*")) return true;
    if (take("+")) {
      min = 1;
      return true;
    }
    if (take("?")) {
      max = 1;
      return true;
    }
    return braces(min, max);
  }

  // Parses {2}, {2,} or {2,5}. Anything else after a brace is literal text, as in RE2.
  Result<bool> braces(int& min, int& max) {
    size_t at = at_;
    if (!take("{")) return false;
    std::optional<int> low = TRY(number(at));
    max = low.value_or(0);
    if (low && take(",")) {
      std::optional<int> high = TRY(number(at));
      max = high.value_or(Regex::kUnbounded);
    }
    if (!low || !take("}")) {
      at_ = at;
      return false;
    }
    min = *low;
    if (max != Regex::kUnbounded && max < min) return error("a repetition {m,n} with m > n", at);
    return true;
  }

  Result<std::optional<int>> number(size_t at) {
    if (!more() || !is_digit(text_[at_])) return std::nullopt;
    int value = 0;
    for (; more() && is_digit(text_[at_]); ++at_) {
      value = value * 10 + (text_[at_] - '0');
      if (value > Regex::kRepeatMax) {
        return exhausted("pattern {}: the repetition at byte {} is beyond {}", quote(text_), at,
                         Regex::kRepeatMax);
      }
    }
    return value;
  }

  Result<uint32_t> literal(const Flags& flags) {
    auto [code, size] = unicode::decode(text_.data() + at_);
    at_ += size;
    return add_set({{code, code}}, flags);
  }

  Result<uint32_t> atom(int depth, const Flags& flags) {
    char c = text_[at_];
    size_t at = at_;
    if (c == '(') return group(depth, flags);
    if (c == '[') return add_set(TRY(bracket(flags)), {});
    if (c == '.') {
      ++at_;
      if (flags.dot_all) return add_set(CodepointSet::all(), flags);
      CodepointSet ends = {{'\n', '\n'}};
      if (ecma_) ends = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
      return add_set(ends.complement(), flags);
    }
    if (c == '^' || c == '$') {
      ++at_;
      return add({.kind = c == '^' ? Kind::kBegin : Kind::kEnd});
    }
    if (c == '*' || c == '+' || c == '?') return error("a quantifier after nothing", at);
    if (c == '{') {
      int min = 0, max = 0;
      if (TRY(braces(min, max))) return error("a quantifier after nothing", at);
    }
    if (c == '\\') {
      if (take("\\A")) return add({.kind = Kind::kBegin});
      if (!ecma_ && take("\\z")) return add({.kind = Kind::kEnd});
      return add_set(TRY(escape(false)), flags);
    }
    return literal(flags);
  }

  Result<uint32_t> group(int depth, Flags flags) {
    size_t at = at_;
    take("(");
    if (take("?")) {
      if (looking_at("=") || looking_at("!")) return refuse("lookahead", at);
      if (looking_at("<=") || looking_at("<!")) return refuse("lookbehind", at);
      if (looking_at(">")) return refuse("an atomic group", at);
      if (looking_at("#")) return refuse("a comment", at);
      if (looking_at("P=")) return refuse("a backreference", at);
      if (looking_at("P>") || looking_at("R") || looking_at("&") || looking_at("0")) {
        return refuse("recursion", at);
      }
      if (looking_at("(")) return refuse("a conditional group", at);
      if (looking_at("|")) return refuse("a branch-reset group", at);
      if (take("P<") || take("<")) {
        size_t close = text_.find('>', at_);
        if (close == text_.npos || close == at_) return error("a group without a name", at);
        at_ = close + 1;
      } else {
        size_t colon = text_.find(':', at_);
        if (colon == text_.npos) return error("an unknown group", at);
        TRY(set_flags(text_.substr(at_, colon - at_), flags));
        at_ = colon + 1;
      }
    }
    uint32_t inner = TRY(alternation(depth + 1, flags));
    if (!take(")")) return error("an unclosed group", at);
    return inner;
  }

  // A class escape or one character. With `in_bracket`, \b is a backspace.
  Result<CodepointSet> escape(bool in_bracket) {
    size_t at = at_;
    take("\\");
    if (!more()) return error("a backslash at the end", at);
    char c = text_[at_];
    if (std::string_view("dswDSW").contains(c)) {
      ++at_;
      CodepointSet set = perl_class(static_cast<char>(c | 0x20), ecma_);
      return c < 'a' ? set.complement() : set;
    }
    if (c == 'p' || c == 'P') return property(at);
    if (!in_bracket && (c == 'b' || c == 'B')) return refuse("a word boundary", at);
    if (c >= '1' && c <= '9' && !in_bracket) return refuse("a backreference", at);
    if (c == 'k' && text_.substr(at_).starts_with("k<")) return refuse("a backreference", at);
    char32_t code = TRY(escaped_character(at, in_bracket));
    return CodepointSet{{code, code}};
  }

  Result<char32_t> escaped_character(size_t at, bool in_bracket) {
    char c = text_[at_];
    constexpr std::string_view kLetters = "afnrtv", kMeaning = "\a\f\n\r\t\v";
    if (size_t i = kLetters.find(c); i != kLetters.npos && !(ecma_ && c == 'a')) {
      ++at_;
      return static_cast<char32_t>(kMeaning[i]);
    }
    if (in_bracket && c == 'b') {
      ++at_;
      return '\b';
    }
    if (c == 'x') {
      ++at_;
      if (take("{")) return braced_hex(at);
      return fixed_hex(2, at);
    }
    if (c == 'u' && ecma_) return utf16_escape(at);
    if (c == 'c' && ecma_ && at_ + 1 < text_.size() && is_letter(text_[at_ + 1])) {
      at_ += 2;
      return static_cast<char32_t>(text_[at_ - 1] & 0x1f);
    }
    if (c >= '0' && c <= '7') {
      char32_t code = 0;
      int digits = 0;
      for (; digits < 3 && more() && text_[at_] >= '0' && text_[at_] <= '7'; ++digits) {
        code = code * 8 + static_cast<char32_t>(text_[at_++] - '0');
      }
      if (digits == 1 && c != '0') return refuse("a backreference", at);
      return code;
    }
    if (is_letter(c) || is_digit(c)) {
      return refuse(fmt::format("the escape \\{}", c), at);
    }
    auto [code, size] = unicode::decode(text_.data() + at_);
    at_ += size;
    return code;
  }

  Result<char32_t> fixed_hex(int digits, size_t at) {
    char32_t code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      if (!more() || !is_hex(text_[at_])) return error("a bad hexadecimal escape", at);
      code = code << 4 | hex_value(text_[at_]);
    }
    return code;
  }

  Result<char32_t> braced_hex(size_t at) {
    char32_t code = 0;
    size_t begin = at_;
    for (; more() && is_hex(text_[at_]); ++at_) {
      code = code << 4 | hex_value(text_[at_]);
      if (code > kCodepointMax) return error("an escape beyond U+10FFFF", at);
    }
    if (at_ == begin || !take("}")) return error("a bad hexadecimal escape", at);
    return code;
  }

  Result<char32_t> utf16_escape(size_t at) {
    ++at_;
    if (take("{")) return braced_hex(at);
    char32_t code = TRY(fixed_hex(4, at));
    if (code < 0xd800 || code > 0xdbff || !looking_at("\\u")) return code;
    at_ += 2;
    char32_t low = TRY(fixed_hex(4, at));
    if (low < 0xdc00 || low > 0xdfff) return error("half of a surrogate pair", at);
    return 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
  }

  Result<CodepointSet> property(size_t at) {
    bool negated = text_[at_++] == 'P';
    std::string_view name;
    if (take("{")) {
      size_t close = text_.find('}', at_);
      if (close == text_.npos) return error("an unclosed \\p{", at);
      name = text_.substr(at_, close - at_);
      at_ = close + 1;
    } else {
      if (!more()) return error("\\p without a name", at);
      name = text_.substr(at_++, 1);
    }
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    for (std::string_view key : {"gc=", "General_Category="}) {
      if (name.starts_with(key)) name.remove_prefix(key.size());
    }
    auto set = unicode_class(name);
    if (!set) return refuse(fmt::format("the class \\p{{{}}}", name), at);
    return negated ? set->complement() : *set;
  }

  // Case is folded before the class is negated.
  Result<CodepointSet> bracket(const Flags& flags) {
    size_t at = at_;
    take("[");
    bool negated = take("^");
    std::vector<CodepointSet::Range> ranges;
    bool first = true;
    while (true) {
      if (!more()) return error("an unclosed class", at);
      if (text_[at_] == ']' && (!first || ecma_)) break;
      first = false;
      if (!ecma_ && looking_at("&&")) return refuse("an intersection of classes", at_);
      TRY(bracket_item(ranges, at));
    }
    take("]");
    CodepointSet set(std::move(ranges));
    if (flags.ignore_case) set = set.case_insensitive();
    return negated ? set.complement() : set;
  }

  Status bracket_item(std::vector<CodepointSet::Range>& ranges, size_t at) {
    if (looking_at("[:") && !ecma_) {
      size_t close = text_.find(":]", at_);
      if (close == text_.npos) return error("an unclosed [: :]", at_);
      std::string_view name = text_.substr(at_ + 2, close - at_ - 2);
      bool negated = name.starts_with('^');
      auto set = posix_class(name.substr(negated ? 1 : 0));
      if (!set) return error("an unknown [: :] class", at_);
      at_ = close + 2;
      if (negated) set = set->complement();
      ranges.insert(ranges.end(), set->ranges().begin(), set->ranges().end());
      return {};
    }
    CodepointSet low = TRY(bracket_character());
    bool dash = looking_at("-") && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
    bool single = low.ranges().size() == 1 && low.ranges()[0].first == low.ranges()[0].last;
    if (!dash || !single) {
      ranges.insert(ranges.end(), low.ranges().begin(), low.ranges().end());
      return {};
    }
    take("-");
    CodepointSet high = TRY(bracket_character());
    if (high.ranges().size() != 1 || high.ranges()[0].first != high.ranges()[0].last) {
      return error("a range that ends in a class", at);
    }
    char32_t first = low.ranges()[0].first, last = high.ranges()[0].first;
    if (first > last) return error("a range whose ends are swapped", at);
    ranges.push_back({first, last});
    return {};
  }

  Result<CodepointSet> bracket_character() {
    if (text_[at_] == '\\') return escape(true);
    auto [code, size] = unicode::decode(text_.data() + at_);
    at_ += size;
    return CodepointSet{{code, code}};
  }

  std::string_view text_;
  bool ecma_;
  Budget& budget_;
  size_t at_ = 0;
  bool quoted_ = false;  // inside \Q...\E
  Regex regex_;
};

}  // namespace

Result<Regex> parse_regex(std::string_view pattern, RegexDialect dialect, Budget& budget) {
  return RegexParser(pattern, dialect, budget).parse();
}

}  // namespace banyan
