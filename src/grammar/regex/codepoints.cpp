#include "grammar/regex/codepoints.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <map>

namespace banyan {
namespace {

constexpr CodepointSet::Range kSurrogates = {0xd800, 0xdfff};

// Classes of characters that differ only by case: maps each member to the list of its class. Built
// on first use.
const std::map<char32_t, std::vector<char32_t>>& case_orbits() {
  static const auto kOrbits = [] {
    std::map<char32_t, std::vector<char32_t>> by_fold, by_member;
    for (char32_t c = 0; c <= kCodepointMax; ++c) {
      auto code = static_cast<utf8proc_int32_t>(c);
      auto lower = static_cast<char32_t>(utf8proc_tolower(code));
      auto upper = static_cast<char32_t>(utf8proc_toupper(code));
      if (lower == c && upper == c) continue;
      auto fold = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(upper)));
      std::vector<char32_t>& orbit = by_fold[fold];
      for (char32_t member : {c, lower, upper, fold}) orbit.push_back(member);
    }
    for (auto& [fold, orbit] : by_fold) {
      std::sort(orbit.begin(), orbit.end());
      orbit.erase(std::unique(orbit.begin(), orbit.end()), orbit.end());
      for (char32_t member : orbit) by_member[member] = orbit;
    }
    return by_member;
  }();
  return kOrbits;
}

// The ranges of each two-letter general category, in utf8proc's numbering; built on first use.
const std::array<std::vector<CodepointSet::Range>, 30>& category_ranges() {
  static const auto kRanges = [] {
    std::array<std::vector<CodepointSet::Range>, 30> ranges;
    for (char32_t c = 0; c <= kCodepointMax; ++c) {
      auto& list = ranges[utf8proc_category(static_cast<utf8proc_int32_t>(c))];
      if (!list.empty() && list.back().last + 1 == c) {
        list.back().last = c;
      } else {
        list.push_back({c, c});
      }
    }
    return ranges;
  }();
  return kRanges;
}

struct NamedCategory {
  std::string_view long_name, short_name;
};

constexpr NamedCategory kCategories[] = {
    {"Letter", "L"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Mark", "M"},
    {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"},
    {"Enclosing_Mark", "Me"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Punctuation", "P"},
    {"Connector_Punctuation", "Pc"},
    {"Dash_Punctuation", "Pd"},
    {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"},
    {"Initial_Punctuation", "Pi"},
    {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"},
    {"Symbol", "S"},
    {"Math_Symbol", "Sm"},
    {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"},
    {"Other_Symbol", "So"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"},
    {"Paragraph_Separator", "Zp"},
    {"Other", "C"},
    {"Control", "Cc"},
    {"Format", "Cf"},
    {"Private_Use", "Co"},
    {"Unassigned", "Cn"},
};

}  // namespace

CodepointSet::CodepointSet(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  std::vector<Range> whole;
  for (const Range& r : ranges) {
    if (!whole.empty() && r.first <= whole.back().last + 1) {
      whole.back().last = std::max(whole.back().last, r.last);
    } else if (r.first <= r.last) {
      whole.push_back(r);
    }
  }
  for (const Range& r : whole) {
    if (r.last < kSurrogates.first || r.first > kSurrogates.last) {
      ranges_.push_back(r);
      continue;
    }
    if (r.first < kSurrogates.first) ranges_.push_back({r.first, kSurrogates.first - 1});
    if (r.last > kSurrogates.last) ranges_.push_back({kSurrogates.last + 1, r.last});
  }
}

bool CodepointSet::contains(char32_t code) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), code,
                                [](char32_t c, const Range& r) { return c < r.first; });
  return after != ranges_.begin() && std::prev(after)->last >= code;
}

CodepointSet CodepointSet::with(const CodepointSet& other) const {
  std::vector<Range> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CodepointSet(std::move(both));
}

CodepointSet CodepointSet::without(const CodepointSet& other) const {
  std::vector<Range> left;
  auto hole = other.ranges_.begin();
  for (Range r : ranges_) {
    while (hole != other.ranges_.end() && hole->last < r.first) ++hole;
    bool any_left = true;
    for (auto h = hole; h != other.ranges_.end() && h->first <= r.last; ++h) {
      if (h->first > r.first) left.push_back({r.first, h->first - 1});
      any_left = h->last < r.last;
      r.first = h->last + 1;
      if (!any_left) break;
    }
    if (any_left) left.push_back(r);
  }
  return CodepointSet(std::move(left));
}

CodepointSet CodepointSet::case_insensitive() const {
  std::vector<Range> ranges = ranges_;
  const auto& orbits = case_orbits();
  for (const Range& r : ranges_) {
    for (auto it = orbits.lower_bound(r.first); it != orbits.end() && it->first <= r.last; ++it) {
      for (char32_t member : it->second) ranges.push_back({member, member});
    }
  }
  return CodepointSet(std::move(ranges));
}

CodepointSet perl_class(char letter, bool ecma) {
  if (letter == 'd') return {{'0', '9'}};
  if (letter == 'w') return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  if (!ecma) return {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
  return {{'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
          {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
}

std::optional<CodepointSet> posix_class(std::string_view name) {
  if (name == "alnum") return CodepointSet{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
  if (name == "alpha") return CodepointSet{{'A', 'Z'}, {'a', 'z'}};
  if (name == "ascii") return CodepointSet{{0, 0x7f}};
  if (name == "blank") return CodepointSet{{'\t', '\t'}, {' ', ' '}};
  if (name == "cntrl") return CodepointSet{{0, 0x1f}, {0x7f, 0x7f}};
  if (name == "digit") return CodepointSet{{'0', '9'}};
  if (name == "graph") return CodepointSet{{'!', '~'}};
  if (name == "lower") return CodepointSet{{'a', 'z'}};
  if (name == "print") return CodepointSet{{' ', '~'}};
  if (name == "punct") return CodepointSet{{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}};
  if (name == "space") return CodepointSet{{'\t', '\r'}, {' ', ' '}};
  if (name == "upper") return CodepointSet{{'A', 'Z'}};
  if (name == "word") return perl_class('w', false);
  if (name == "xdigit") return CodepointSet{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  return std::nullopt;
}

std::optional<CodepointSet> unicode_class(std::string_view name) {
  if (name == "Any") return CodepointSet::all();
  std::string_view short_name;
  for (const NamedCategory& c : kCategories) {
    if (name == c.long_name || name == c.short_name) short_name = c.short_name;
  }
  if (short_name.empty()) return std::nullopt;
  std::vector<CodepointSet::Range> ranges;
  const auto& categories = category_ranges();
  for (size_t i = 0; i < categories.size(); ++i) {
    if (categories[i].empty()) continue;
    const char* category =
        utf8proc_category_string(static_cast<utf8proc_int32_t>(categories[i].front().first));
    if (!std::string_view(category).starts_with(short_name)) continue;
    ranges.insert(ranges.end(), categories[i].begin(), categories[i].end());
  }
  return CodepointSet(std::move(ranges));
}

}  // namespace banyan
