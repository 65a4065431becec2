// Sets of Unicode characters as sorted ranges, and the classes that regexes name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace banyan {

constexpr char32_t kCodepointMax = 0x10ffff;

// Ranges are inclusive, sorted, disjoint and not adjacent. Surrogates are not characters: add()
// leaves them out.
class CodepointSet {
 public:
  struct Range {
    char32_t first, last;
    bool operator==(const Range&) const = default;
  };

  CodepointSet() = default;
  CodepointSet(std::initializer_list<Range> ranges) : CodepointSet(std::vector<Range>(ranges)) {}
  explicit CodepointSet(std::vector<Range> ranges);
  static CodepointSet all() { return {{0, kCodepointMax}}; }

  const std::vector<Range>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t code) const;
  bool operator==(const CodepointSet&) const = default;

  CodepointSet with(const CodepointSet& other) const;
  CodepointSet without(const CodepointSet& other) const;
  CodepointSet complement() const { return all().without(*this); }
  // Adds every character that differs only by case from a member (simple folding).
  CodepointSet case_insensitive() const;

 private:
  std::vector<Range> ranges_;
};

// The class of \d, \s or \w (`letter` in lower case). ASCII, as in RE2. With `ecma`, \s has its
// JavaScript meaning, as JSON schemas require.
CodepointSet perl_class(char letter, bool ecma);
// [:alpha:] and similar, by the name between the colons.
std::optional<CodepointSet> posix_class(std::string_view name);
// A general category, "L", "Lu", "Letter", ..., or "Any".
std::optional<CodepointSet> unicode_class(std::string_view name);

}  // namespace banyan
