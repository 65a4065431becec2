// Oniguruma's (Ruby's) syntax to PCRE2's. What is the same in both is copied; the rest is either
// rewritten or refused.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/quote.h"
#include "text/pattern.h"
#include "text/unicode.h"

namespace banyan {
namespace {

constexpr int kDepthMax = 64;

// Items of a class, without brackets.
constexpr std::string_view kSpaces =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F})"
    R"(\x{205F}\x{3000})";
constexpr std::string_view kWords =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9})"
    R"(\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

constexpr std::array<std::string_view, 38> kCategories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl",
    "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk",
    "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cn", "Co", "Cs", "Any"};

// The code points of a category (or a group of them: "L") that PCRE2 does not know yet.
std::string additions_of(std::string_view category) {
  std::string items;
  for (const unicode::Addition& range : unicode::additions()) {
    if (!unicode::category_name(range.category).starts_with(category)) continue;
    items += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", static_cast<uint32_t>(range.first),
                         static_cast<uint32_t>(range.last));
  }
  return items;
}

// Items of \w: alphabetic characters, marks, decimal digits and connectors; and, as Oniguruma has
// it, the superscripts and fractions of Latin-1.
std::string word_items() {
  return fmt::format("{}{}{}{}{}{}", kWords, additions_of("L"), additions_of("M"),
                     additions_of("Nd"), additions_of("Nl"), additions_of("Pc"));
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    int depth = 0;
    while (!done()) {
      const char c = peek();
      if (c == '[') {
        TRY(character_class());
      } else if (c == '\\') {
        TRY(escape());
      } else if (c == '(') {
        if (++depth > kDepthMax) return refuse("groups nested deeper than 64");
        TRY(group());
      } else if (c == '{') {
        TRY(interval());
      } else {
        depth -= c == ')';
        copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  bool done() const { return at_ >= pattern_.size(); }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  void copy(size_t count) {
    out_ += pattern_.substr(at_, count);
    at_ += count;
  }
  std::unexpected<Error> refuse(std::string_view what) const {
    return unsupported("the pattern {} has {} at byte {}, which is not supported", quote(pattern_),
                       what, at_);
  }

  Status group();
  Status interval();
  Status escape();
  Status character_class();
  Status class_item(std::string& items);
  Result<std::string> property(bool& negated);

  std::string_view pattern_;
  size_t at_ = 0;
  std::string out_;
};

Status Translator::group() {
  if (!next_is("(?")) return copy(1), Status();
  for (std::string_view plain : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
    if (next_is(plain)) return copy(plain.size()), Status();
  }
  // (?i) and (?i: ; the other letters mean other things to the two engines.
  if (next_is("(?i:") || next_is("(?i)")) return copy(4), Status();
  return refuse("the group " + quote(pattern_.substr(at_, 4)));
}

// {n,m} is the same in both, but a + behind it repeats in Ruby's syntax and is possessive in PCRE2.
Status Translator::interval() {
  const size_t close = pattern_.find('}', at_);
  const bool digits =
      close != pattern_.npos &&
      pattern_.substr(at_ + 1, close - at_ - 1).find_first_not_of("0123456789,") == pattern_.npos;
  if (!digits) return out_ += "\\{", ++at_, Status();
  if (peek(1) == ',') return refuse("a repetition without a lower bound");
  if (close + 1 < pattern_.size() && pattern_[close + 1] == '+') {
    return refuse("a + behind a {n,m} repetition");
  }
  copy(close + 1 - at_);
  return {};
}

// \p{Name}, \P{Name} or \p{^Name}: the items of a class, and whether they are to be excluded.
Result<std::string> Translator::property(bool& negated) {
  negated = peek(1) == 'P';
  const size_t close = pattern_.find('}', at_);
  if (peek(2) != '{' || close == pattern_.npos) return refuse("a property without {}");
  std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
  if (name.starts_with('^')) {
    negated = !negated;
    name.remove_prefix(1);
  }
  std::string items;
  if (std::ranges::find(kCategories, name) != kCategories.end()) {
    items = fmt::format("\\p{{{}}}{}", name, additions_of(name));
  } else if (name == "Han") {
    items = R"(\p{sc:Han}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})";
  } else if (name == "Hiragana" || name == "Katakana" || name == "Hangul" || name == "Thai" ||
             name == "Arabic" || name == "Cyrillic" || name == "Latin" || name == "Greek" ||
             name == "Hebrew" || name == "Devanagari") {
    items = fmt::format("\\p{{sc:{}}}", name);
  } else {
    return refuse("the property " + quote(name));
  }
  at_ = close + 1;
  return items;
}

Status Translator::escape() {
  const char c = peek(1);
  switch (c) {
    case 's':
      out_ += fmt::format("[{}]", kSpaces);
      break;
    case 'S':
      out_ += fmt::format("[^{}]", kSpaces);
      break;
    case 'w':
      out_ += fmt::format("[{}]", word_items());
      break;
    case 'W':
      out_ += fmt::format("[^{}]", word_items());
      break;
    case 'd':
      out_ += fmt::format("[\\p{{Nd}}{}]", additions_of("Nd"));
      break;
    case 'D':
      out_ += fmt::format("[^\\p{{Nd}}{}]", additions_of("Nd"));
      break;
    case 'p':
    case 'P': {
      bool negated = false;
      const std::string items = TRY(property(negated));
      out_ += fmt::format("[{}{}]", negated ? "^" : "", items);
      return {};
    }
    case 'r':
    case 'n':
    case 't':
    case 'f':
      return copy(2), Status();
    case 'A':
    case 'z':
      return copy(2), Status();
    case 'u': {
      std::string item;
      TRY(class_item(item));
      out_ += item;
      return {};
    }
    default:
      if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == 0) {
        return refuse(fmt::format("the escape \\{}", c));
      }
      return copy(2), Status();
  }
  at_ += 2;
  return {};
}

// One item inside a class, appended in PCRE2's syntax.
Status Translator::class_item(std::string& items) {
  if (peek() != '\\') {
    const size_t size = unicode::decode(pattern_.data() + at_).size;
    items += pattern_.substr(at_, size);
    at_ += size;
    return {};
  }
  const char c = peek(1);
  switch (c) {
    case 's':
      items += kSpaces;
      break;
    case 'w':
      items += word_items();
      break;
    case 'd':
      items += "\\p{Nd}" + additions_of("Nd");
      break;
    case 'p':
    case 'P': {
      bool negated = false;
      const std::string property_items = TRY(property(negated));
      if (negated) return refuse("a negated property inside a class");
      items += property_items;
      return {};
    }
    case 'u': {
      const std::string_view digits = pattern_.substr(at_ + 2, 4);
      if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) {
        return refuse("\\u without four digits");
      }
      items += fmt::format("\\x{{{}}}", digits);
      at_ += 6;
      return {};
    }
    case 'r':
    case 'n':
    case 't':
    case 'f':
      items += {'\\', c};
      break;
    default:
      if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == 0) {
        return refuse(fmt::format("the escape \\{} inside a class", c));
      }
      items += {'\\', c};
  }
  at_ += 2;
  return {};
}

// A class may hold other classes in Ruby's syntax: their union is one flat class.
Status Translator::character_class() {
  std::string items = "[";
  ++at_;
  if (peek() == '^') items += '^', ++at_;
  int depth = 1;
  bool first = true;
  while (depth > 0) {
    if (done()) return refuse("a class without an end");
    if (next_is("&&")) return refuse("a class intersection (&&)");
    if (next_is("[:")) return refuse("a POSIX class");
    if (peek() == '[') {
      if (peek(1) == '^') return refuse("a negated class inside a class");
      if (++depth > kDepthMax) return refuse("classes nested deeper than 64");
      ++at_;
    } else if (peek() == ']' && !first) {
      --depth;
      ++at_;
    } else if (peek() == ']') {
      return refuse("a class that begins with ]");
    } else {
      TRY(class_item(items));
    }
    first = false;
  }
  out_ += items + "]";
  return {};
}

}  // namespace

Result<std::string> translate_pattern(std::string_view pattern) {
  return Translator(pattern).run();
}

}  // namespace banyan
