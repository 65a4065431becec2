#include "text/tokenizer/splitter.h"

#include <string>

#include "unicode/unicode.h"

namespace banyan {
namespace {

using unicode::ClassTable;

// A position in the text and its character; past the end its classes are 0.
struct Cursor {
  const char* at;
  const char* end;
  const ClassTable* table;
  uint32_t classes = 0;
  uint32_t size = 0;

  Cursor(const char* at, const char* end, const ClassTable& table)
      : at(at), end(end), table(&table) {
    read();
  }

  void read() {
    if (at == end) {
      classes = size = 0;
      return;
    }
    const auto [code, bytes] = unicode::decode(at);
    classes = (*table)[code];
    size = bytes;
  }
  void next() {
    at += size;
    read();
  }
  bool done() const { return at == end; }
  bool is(uint32_t mask) const { return (classes & mask) != 0; }
  // True if there is a character and it is in none of the classes.
  bool is_none_of(uint32_t mask) const { return size != 0 && (classes & mask) == 0; }
  void skip(uint32_t mask) {
    while (is(mask)) next();
  }
};

using unicode::kHan;
using unicode::kLetter;
using unicode::kLower;
using unicode::kMark;
using unicode::kModifier;
using unicode::kNewline;
using unicode::kNumber;
using unicode::kOtherLetter;
using unicode::kPunctuation;
using unicode::kSpace;
using unicode::kSymbol;
using unicode::kTitle;
using unicode::kUpper;

// The end of (?i:'s|'t|'re|'ve|'m|'ll|'d) at `at`, or `at`. Case folding also matches U+017F as
// 's'.
template <bool kAnyCase>
const char* skip_contraction(const char* at, const char* end) {
  if (end - at < 2 || *at != '\'') return at;
  auto letter = [&](int i) -> char {
    if (end - at <= i) return 0;
    return kAnyCase && at[i] >= 'A' && at[i] <= 'Z' ? static_cast<char>(at[i] | 0x20) : at[i];
  };
  const char first = letter(1), second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (kAnyCase && end - at >= 3 && at[1] == '\xc5' && at[2] == '\xbf') return at + 3;
  const bool two = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                   (first == 'l' && second == 'l');
  return two ? at + 3 : at;
}

// Matches \s*[\r\n]+ | \s+(?!\S) | \s+ on a run of spaces. Ends after its last newline if there is
// one and newlines count; otherwise before its last character if more text follows; otherwise at
// its end.
template <bool kNewlines>
const char* skip_spaces(Cursor cursor) {
  const char* last = cursor.at;  // start of the last character read
  const char* newline_end = nullptr;
  const char* begin = cursor.at;
  while (cursor.is(kSpace)) {
    last = cursor.at;
    const bool newline = cursor.is(kNewline);
    cursor.next();
    if (kNewlines && newline) newline_end = cursor.at;
  }
  if (newline_end != nullptr) return newline_end;
  if (!cursor.done() && last != begin) return last;
  return cursor.at;
}

// Splits `text` into matches and the text between them. `skip(cursor)` returns the end of the match
// at the cursor, or the cursor's position if there is none.
template <class Skip>
void split(std::string_view text, std::vector<TextSpan>& spans, Skip skip) {
  const ClassTable& table = unicode::classes();
  const char* begin = text.data();
  const char* end = begin + text.size();
  auto offset = [begin](const char* at) { return static_cast<uint32_t>(at - begin); };
  const char* gap = begin;
  for (const char* at = begin; at < end;) {
    const Cursor cursor(at, end, table);
    const char* stop = skip(cursor);
    if (stop == at) {
      at += cursor.size;
      continue;
    }
    if (gap != at) spans.push_back({offset(gap), offset(at), false});
    spans.push_back({offset(at), offset(stop), true});
    gap = at = stop;
  }
  if (gap != end) spans.push_back({offset(gap), offset(end), false});
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
void split_gpt2(std::string_view text, std::vector<TextSpan>& spans) {
  split(text, spans, [](Cursor cursor) {
    const char* stop = skip_contraction<false>(cursor.at, cursor.end);
    if (stop != cursor.at) return stop;
    const Cursor start = cursor;
    if (*cursor.at == ' ') cursor.next();
    if (cursor.is(kLetter)) {
      cursor.skip(kLetter);
    } else if (cursor.is(kNumber)) {
      cursor.skip(kNumber);
    } else if (cursor.is_none_of(kSpace)) {
      while (cursor.is_none_of(kSpace | kLetter | kNumber)) cursor.next();
    } else {
      return skip_spaces<false>(start);
    }
    return cursor.at;
  });
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,kDigits}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+      with kWordClasses for the \p{L} that make words
template <int kDigits, uint32_t kWordClasses>
void split_cl100k(std::string_view text, std::vector<TextSpan>& spans) {
  split(text, spans, [](Cursor cursor) {
    const char* stop = skip_contraction<true>(cursor.at, cursor.end);
    if (stop != cursor.at) return stop;
    const Cursor start = cursor;
    if (!cursor.is(kNewline | kWordClasses | kNumber)) cursor.next();
    if (cursor.is(kWordClasses)) {
      cursor.skip(kWordClasses);
      return cursor.at;
    }
    cursor = start;
    if (cursor.is(kNumber)) {
      for (int i = 0; i < kDigits && cursor.is(kNumber); ++i) cursor.next();
      return cursor.at;
    }
    if (*cursor.at == ' ') cursor.next();
    if (cursor.is_none_of(kSpace | kWordClasses | kNumber)) {
      while (cursor.is_none_of(kSpace | kWordClasses | kNumber)) cursor.next();
      cursor.skip(kNewline);
      return cursor.at;
    }
    return skip_spaces<true>(start);
  });
}

constexpr uint32_t kNotLower = kUpper | kTitle | kModifier | kOtherLetter | kMark;
constexpr uint32_t kNotUpper = kLower | kModifier | kOtherLetter | kMark;

// Whether the character is in one of the classes, excluding Han if kHanApart.
template <bool kHanApart>
bool in_case(const Cursor& cursor, uint32_t mask) {
  return cursor.is(mask) && !(kHanApart && cursor.is(kHan));
}

// The end of [kNotLower]*[kNotUpper]+ at the cursor, or null.
template <bool kHanApart>
const char* skip_capitalised(Cursor cursor) {
  const char* turn = nullptr;  // after the last character in both classes
  while (in_case<kHanApart>(cursor, kNotLower)) {
    const bool both = cursor.is(kNotUpper);
    cursor.next();
    if (both) turn = cursor.at;
  }
  if (!in_case<kHanApart>(cursor, kNotUpper)) return turn;
  while (in_case<kHanApart>(cursor, kNotUpper)) cursor.next();
  return cursor.at;
}

// The end of an o200k word at the cursor, or null. Alternatives, in order:
//   [^\r\n\p{L}\p{N}]? [kNotLower]*[kNotUpper]+
//   [^\r\n\p{L}\p{N}]? [kNotLower]+[kNotUpper]*
template <bool kHanApart>
const char* skip_cased_word(const Cursor& start) {
  Cursor word = start;
  const bool prefix = start.is_none_of(kNewline | kLetter | kNumber);
  if (prefix) word.next();
  if (const char* stop = skip_capitalised<kHanApart>(word)) return stop;
  if (prefix) {
    if (const char* stop = skip_capitalised<kHanApart>(start)) return stop;
  }
  const char* begin = word.at;
  while (in_case<kHanApart>(word, kNotLower)) word.next();
  return word.at == begin ? nullptr : word.at;
}

struct O200kStyle {
  bool contractions;  // words end in (?i:'s|'t|'re|'ve|'m|'ll|'d)?
  bool slash;         // punctuation ends in [\r\n/]* rather than [\r\n]*
  bool han_apart;     // [\p{Han}]+ comes first; other words exclude Han
  int digits;         // \p{N}{1,digits}
};

template <O200kStyle kStyle>
void split_o200k(std::string_view text, std::vector<TextSpan>& spans) {
  split(text, spans, [](Cursor cursor) {
    if (kStyle.han_apart && cursor.is(kHan)) {
      cursor.skip(kHan);
      return cursor.at;
    }
    if (const char* stop = skip_cased_word<kStyle.han_apart>(cursor)) {
      return kStyle.contractions ? skip_contraction<true>(stop, cursor.end) : stop;
    }
    const Cursor start = cursor;
    if (cursor.is(kNumber)) {
      for (int i = 0; i < kStyle.digits && cursor.is(kNumber); ++i) cursor.next();
      return cursor.at;
    }
    if (*cursor.at == ' ') cursor.next();
    if (cursor.is_none_of(kSpace | kLetter | kNumber)) {
      while (cursor.is_none_of(kSpace | kLetter | kNumber)) cursor.next();
      while (cursor.is(kNewline) || (kStyle.slash && !cursor.done() && *cursor.at == '/')) {
        cursor.next();
      }
      return cursor.at;
    }
    return skip_spaces<true>(start);
  });
}

// \p{N}{1,3}
void split_digits(std::string_view text, std::vector<TextSpan>& spans) {
  split(text, spans, [](Cursor cursor) {
    for (int i = 0; i < 3 && cursor.is(kNumber); ++i) cursor.next();
    return cursor.at;
  });
}

// [一-龥\u3040-ゟ゠-ヿ]+
void split_deepseek_cjk(std::string_view text, std::vector<TextSpan>& spans) {
  split(text, spans, [](Cursor cursor) {
    while (!cursor.done()) {
      const char32_t code = unicode::decode(cursor.at).code;
      if (!(code >= 0x4E00 && code <= 0x9FA5) && !(code >= 0x3040 && code <= 0x30FF)) break;
      cursor.next();
    }
    return cursor.at;
  });
}

bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// [ascii punctuation][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+
void split_deepseek(std::string_view text, std::vector<TextSpan>& spans) {
  split(text, spans, [](Cursor cursor) {
    const Cursor start = cursor;
    const bool ascii = static_cast<unsigned char>(*cursor.at) < 0x80;
    if (ascii && cursor.is(kPunctuation | kSymbol)) {
      cursor.next();
      if (!cursor.done() && is_ascii_letter(*cursor.at)) {
        while (!cursor.done() && is_ascii_letter(*cursor.at)) cursor.next();
        return cursor.at;
      }
      cursor = start;
    }
    if (cursor.is_none_of(kNewline | kLetter | kPunctuation | kSymbol)) cursor.next();
    if (!cursor.is(kLetter | kMark))
      cursor = start;  // a mark may be the prefix, or a word without prefix
    if (cursor.is(kLetter | kMark)) {
      cursor.skip(kLetter | kMark);
      return cursor.at;
    }
    if (*cursor.at == ' ') cursor.next();
    if (cursor.is(kPunctuation | kSymbol)) {
      cursor.skip(kPunctuation | kSymbol);
      cursor.skip(kNewline);
      return cursor.at;
    }
    return skip_spaces<true>(start);
  });
}

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CONTRACTIONS_2 "'(?i:[sdmt]|ll|ve|re)"
#define O200K_WORDS(end)                                                                \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" end \
  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" end
#define SPACES R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"

constexpr std::string_view kKimiPattern =
    R"([\p{Han}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)" CONTRACTIONS
    R"(?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)" CONTRACTIONS
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" SPACES;

struct KnownPattern {
  std::string_view pattern;
  Splitter splitter;
};

constexpr KnownPattern kKnown[] = {
    // GPT-2, and the ByteLevel pre-tokenizer itself.
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", split_gpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", split_gpt2},
    // Llama 3, GLM-4.
    {CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" SPACES,
     split_cl100k<3, kLetter>},
    // GPT-4.
    {CONTRACTIONS_2 R"(|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
                    R"(|\s*[\r\n]|\s+(?!\S)|\s+)",
     split_cl100k<3, kLetter>},
    // Qwen 2 and 3.
    {CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" SPACES,
     split_cl100k<1, kLetter>},
    // Ling.
    {CONTRACTIONS_2 R"(|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
                    R"(|\s*[\r\n]|\s+(?!\S)|\s+)",
     split_cl100k<1, kLetter>},
    // Qwen 3.5.
    {CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" SPACES,
     split_cl100k<1, kLetter | kMark>},
    // GPT-4o, gpt-oss, MiniMax.
    {O200K_WORDS(CONTRACTIONS "?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" SPACES,
     split_o200k<O200kStyle{true, true, false, 3}>},
    // Mistral's Tekken.
    {O200K_WORDS("") R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" SPACES,
     split_o200k<O200kStyle{false, true, false, 1}>},
    {kKimiPattern, split_o200k<O200kStyle{true, false, true, 3}>},
    // DeepSeek V3, three steps.
    {R"(\p{N}{1,3})", split_digits},
    {"[一-龥\u3040-ゟ゠-ヿ]+", split_deepseek_cjk},
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^)"
     "\r\n"
     R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[)"
     "\r\n"
     R"(]*|\s*[)"
     "\r\n"
     R"(]+|\s+(?!\S)|\s+)",
     split_deepseek},
};

}  // namespace

Splitter find_splitter(std::string_view pattern) {
  for (const KnownPattern& known : kKnown) {
    if (known.pattern == pattern) return known.splitter;
  }
  return nullptr;
}

std::vector<std::string_view> known_patterns() {
  std::vector<std::string_view> patterns;
  for (const KnownPattern& known : kKnown) patterns.push_back(known.pattern);
  return patterns;
}

std::string_view kimi_pattern() {
  return kKimiPattern;
}

}  // namespace banyan
