// Translates Oniguruma (Ruby) regex syntax to PCRE2. Copies what both share and rewrites or rejects
// the rest.
#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "text/tokenizer/pattern.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

constexpr size_t kDepthMax = 64;
constexpr int64_t kRepetitionsMax = 1000;

// Members of a character class, without brackets.
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

// Scripts known to PCRE2, with the code points added to them since.
struct Script {
  std::string_view name;
  std::string_view later = "";
};
constexpr Script kScripts[] = {
    {"Arabic", R"(\x{897}\x{10EC2}-\x{10EC4}\x{10EFC}-\x{10EFF})"},
    {"Armenian"},
    {"Balinese", R"(\x{1B4E}-\x{1B4F}\x{1B7F})"},
    {"Bengali"},
    {"Bopomofo"},
    {"Canadian_Aboriginal"},
    {"Cherokee"},
    {"Cyrillic", R"(\x{1C89}-\x{1C8A}\x{1E030}-\x{1E06D}\x{1E08F})"},
    {"Devanagari", R"(\x{11B00}-\x{11B09})"},
    {"Ethiopic"},
    {"Georgian"},
    {"Greek"},
    {"Gujarati"},
    {"Gurmukhi"},
    {"Han", R"(\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})"},
    {"Hangul"},
    {"Hebrew"},
    {"Hiragana", R"(\x{1B132})"},
    {"Javanese"},
    {"Kannada", R"(\x{CF3})"},
    {"Katakana", R"(\x{1B155})"},
    {"Khmer"},
    {"Lao", R"(\x{ECE})"},
    {"Latin", R"(\x{A7CB}-\x{A7CD}\x{A7DA}-\x{A7DC}\x{1DF25}-\x{1DF2A})"},
    {"Malayalam"},
    {"Mongolian"},
    {"Myanmar", R"(\x{116D0}-\x{116E3})"},
    {"Oriya"},
    {"Sinhala"},
    {"Syriac"},
    {"Tamil"},
    {"Telugu"},
    {"Thaana"},
    {"Thai"},
    {"Tibetan"},
    {"Tifinagh"},
    {"Yi"},
};

// Code points of a category (or a group of categories: "L") that PCRE2 does not know yet.
std::string additions_of(std::string_view category) {
  std::string items;
  for (const unicode::Addition& range : unicode::additions()) {
    if (!unicode::category_name(range.category).starts_with(category)) continue;
    items += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", static_cast<uint32_t>(range.first),
                         static_cast<uint32_t>(range.last));
  }
  return items;
}

// Members of \w: alphabetic characters, marks, decimal digits and connectors; as in Oniguruma, also
// the superscripts and fractions of Latin-1.
std::string word_items() {
  return fmt::format("{}{}{}{}{}{}", kWords, additions_of("L"), additions_of("M"),
                     additions_of("Nd"), additions_of("Nl"), additions_of("Pc"));
}

// Members of class escapes such as \s; empty for other escapes.
std::string set_items(char escape) {
  switch (escape) {
    case 's':
      return std::string(kSpaces);
    case 'w':
      return word_items();
    case 'd':
      return "\\p{Nd}" + additions_of("Nd");
    case 'h':
      return "0-9A-Fa-f";
    default:
      return "";
  }
}

// Members of the POSIX classes that have an exact equivalent; empty for the others.
std::string posix_items(std::string_view name) {
  if (name == "space") return set_items('s');
  if (name == "digit") return set_items('d');
  if (name == "xdigit") return set_items('h');
  if (name == "ascii") return R"(\x{0}-\x{7F})";
  if (name == "cntrl") return "\\p{Cc}";
  if (name == "blank") return R"(\p{Zs}\t)";
  if (name == "punct") return "\\p{P}\\p{S}" + additions_of("P") + additions_of("S");
  return "";
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    while (!done()) {
      const char c = peek();
      if (c == '[') {
        TRY(character_class());
      } else if (c == '\\') {
        TRY(escape());
      } else if (c == '(') {
        if (open_.size() > kDepthMax) return refuse("groups nested deeper than 64");
        TRY(group());
      } else if (c == '{') {
        TRY(interval());
      } else {
        if (c == ')') close_group();
        copy(1);
      }
    }
    out_.append(open_[0], ')');
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

  // The last item of a class, which decides the meaning of a dash after it.
  enum class ClassPart { kNothing, kCharacter, kRange, kDash, kSet, kClass };

  Status group();
  void close_group();
  Status interval();
  Status escape();
  Status character_class();
  Status class_item(std::string& items, ClassPart& last);
  Result<std::string> property(bool& negated);

  Status posix_class(std::string& items);
  Status class_dash(std::string& items, ClassPart& last);
  Result<uint32_t> hexadecimal();

  std::string_view pattern_;
  size_t at_ = 0;
  std::string out_;
  std::vector<size_t> open_{0};  // for each open group, the number of (?i: that close with it
};

Status Translator::group() {
  if (next_is("(?i)")) {
    // Applies across alternatives to the end of the group: a(?i)b|c means a(?i:b|c). In PCRE2 it
    // would end at the |.
    out_ += "(?i:";
    at_ += 4;
    ++open_.back();
    return {};
  }
  open_.push_back(0);
  if (!next_is("(?")) return copy(1), Status();
  // Other group letters differ between the two engines.
  for (std::string_view same : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"}) {
    if (next_is(same)) return copy(same.size()), Status();
  }
  return refuse("the group " + quote(pattern_.substr(at_, 4)));
}

void Translator::close_group() {
  if (open_.size() == 1) return;  // PCRE2 reports it
  out_.append(open_.back(), ')');
  open_.pop_back();
}

// {n,m} is the same in both, but a + after it repeats in Ruby and is possessive in PCRE2.
Status Translator::interval() {
  const size_t close = pattern_.find('}', at_);
  const bool digits =
      close != pattern_.npos &&
      pattern_.substr(at_ + 1, close - at_ - 1).find_first_not_of("0123456789,") == pattern_.npos;
  if (!digits) return out_ += "\\{", ++at_, Status();
  if (peek(1) == ',') return refuse("a repetition without a lower bound");
  int64_t times = 0;
  for (char c : pattern_.substr(at_ + 1, close - at_ - 1)) {
    times = c == ',' ? 0 : times * 10 + (c - '0');
    if (times > kRepetitionsMax) return refuse("more than 1000 repetitions");
  }
  if (close + 1 < pattern_.size() && pattern_[close + 1] == '+') {
    return refuse("a + after a {n,m} repetition");
  }
  copy(close + 1 - at_);
  return {};
}

// \p{Name}, \P{Name} or \p{^Name}: returns the members of the class and sets `negated`.
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
  } else if (auto script = std::ranges::find(kScripts, name, &Script::name);
             script != std::end(kScripts)) {
    items = fmt::format("\\p{{sc:{}}}{}", name, script->later);
  } else {
    return refuse("the property " + quote(name));
  }
  at_ = close + 1;
  return items;
}

// Consumes \xHH or \x{H...} and returns its code point.
Result<uint32_t> Translator::hexadecimal() {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  const bool braces = peek(2) == '{';
  const std::string_view rest = pattern_.substr(std::min(at_ + (braces ? 3 : 2), pattern_.size()));
  const std::string_view digits = rest.substr(0, braces ? rest.npos : 2);
  const size_t size = std::min(digits.find_first_not_of(kDigits), digits.size());
  uint32_t code = 0;
  if (size == 0 || size > 8) return refuse("\\x without 1 to 8 digits");
  std::from_chars(rest.data(), rest.data() + size, code, 16);
  const bool closed = !braces || (size < rest.size() && rest[size] == '}');
  // Without braces it is a byte, not a code point.
  if (!closed || code > (braces ? 0x10ffffu : 0x7fu) || (code >= 0xd800 && code < 0xe000)) {
    return refuse("\\x that is no character");
  }
  at_ += size + (braces ? 4 : 2);
  return code;
}

Status Translator::escape() {
  const char c = peek(1);
  if ((c & 0x80) != 0) {
    ClassPart unused{};
    return class_item(out_, unused);
  }
  const bool upper = c >= 'A' && c <= 'Z';
  if (const std::string items = set_items(upper ? static_cast<char>(c | 0x20) : c);
      !items.empty()) {
    out_ += fmt::format("[{}{}]", upper ? "^" : "", items);
    at_ += 2;
    return {};
  }
  switch (c) {
    case 'p':
    case 'P': {
      bool negated = false;
      const std::string items = TRY(property(negated));
      out_ += fmt::format("[{}{}]", negated ? "^" : "", items);
      return {};
    }
    case 'A':
    case 'z':
    case 'Z':
      return copy(2), Status();
    case 'b':
    case 'B': {
      // PCRE2's own word boundary knows fewer word characters.
      const std::string word = fmt::format("[{}]", word_items());
      out_ += fmt::format("(?:(?<={0})(?{1}{0})|(?<!{0})(?{2}{0}))", word, c == 'b' ? "!" : "=",
                          c == 'b' ? "=" : "!");
      break;
    }
    case 'a':
    case 'e':
    case 'f':
    case 'n':
    case 'r':
    case 't':
    case 'u':
    case 'v':
    case 'x': {
      ClassPart unused{};
      return class_item(out_, unused);
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

// Appends one item of a class in PCRE2's syntax and sets `last` to its kind.
Status Translator::class_item(std::string& items, ClassPart& last) {
  last = ClassPart::kCharacter;
  if (peek() != '\\') {
    const size_t size = unicode::decode(pattern_.data() + at_).size;
    items += pattern_.substr(at_, size);
    at_ += size;
    return {};
  }
  const char c = peek(1);
  if ((c & 0x80) != 0) {  // a character that needs no escape
    ++at_;
    return class_item(items, last);
  }
  if (const std::string set = set_items(c); !set.empty()) {
    items += set;
    at_ += 2;
    last = ClassPart::kSet;
    return {};
  }
  switch (c) {
    case 'p':
    case 'P': {
      last = ClassPart::kSet;
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
    case 'x':
      items += fmt::format("\\x{{{:X}}}", TRY(hexadecimal()));
      return {};
    case 'b':
      items += R"(\x{8})";
      break;
    case 'v':
      items += R"(\x{B})";
      break;
    case 'a':
    case 'e':
    case 'f':
    case 'n':
    case 'r':
    case 't':
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

// [:name:] inside a class.
Status Translator::posix_class(std::string& items) {
  const size_t close = pattern_.find(":]", at_ + 2);
  const std::string_view name =
      pattern_.substr(at_ + 2, std::min(close, pattern_.size()) - at_ - 2);
  const std::string posix = close == pattern_.npos ? "" : posix_items(name);
  if (posix.empty()) return refuse("the POSIX class " + quote(name, 16));
  items += posix;
  at_ = close + 2;
  return {};
}

// A dash is literal at the edges of a class and after a range or class; between two characters it
// makes a range.
Status Translator::class_dash(std::string& items, ClassPart& last) {
  const bool at_edge = last == ClassPart::kNothing || peek(1) == ']';
  if (at_edge || last == ClassPart::kRange || last == ClassPart::kClass) {
    items += "\\-";
    ++at_;
    last = ClassPart::kDash;
    return {};
  }
  if (last != ClassPart::kCharacter || peek(1) == '[' || peek(1) == '-') {
    return refuse("a dash between two classes");
  }
  items += '-';
  ++at_;
  if (done()) return {};
  TRY(class_item(items, last));
  if (last != ClassPart::kCharacter) return refuse("a dash between two classes");
  last = ClassPart::kRange;
  return {};
}

// Ruby allows nested classes; their union is written as one flat class.
Status Translator::character_class() {
  std::string items = "[";
  ++at_;
  if (peek() == '^') items += '^', ++at_;
  size_t depth = 1;
  ClassPart last = ClassPart::kNothing;
  while (depth > 0) {
    if (done()) return refuse("a class without an end");
    if (next_is("&&")) return refuse("a class intersection (&&)");
    if (next_is("[:")) {
      TRY(posix_class(items));
      last = ClassPart::kSet;
    } else if (peek() == '[') {
      if (peek(1) == '^') return refuse("a negated class inside a class");
      if (++depth > kDepthMax) return refuse("classes nested deeper than 64");
      ++at_;
      last = ClassPart::kNothing;
    } else if (peek() == ']') {
      if (last == ClassPart::kNothing) return refuse("a class that begins with ]");
      --depth;
      ++at_;
      last = ClassPart::kClass;
    } else if (peek() == '-') {
      TRY(class_dash(items, last));
    } else {
      TRY(class_item(items, last));
    }
  }
  out_ += items + "]";
  return {};
}

}  // namespace

Result<std::string> translate_pattern(std::string_view pattern) {
  return Translator(pattern).run();
}

}  // namespace banyan
