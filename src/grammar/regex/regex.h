// Regular expressions: parser, and compiler to a minimal automaton over bytes.
//
// The syntax is RE2's. Backreferences, lookaround, atomic groups, possessive quantifiers, word
// boundaries and multi-line anchors are rejected with their name and position. Lazy quantifiers are
// accepted and equal greedy ones, since only the language counts. Characters are Unicode; invalid
// UTF-8 never matches.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "grammar/budget.h"
#include "grammar/regex/codepoints.h"
#include "grammar/regex/dfa.h"

namespace banyan {

// JSON schemas use ECMAScript's dialect. \s and . follow Unicode, \uXXXX and \cX are escapes, and
// \/ and \- may be escaped. A brace that starts no repetition is a literal.
enum class RegexDialect : uint8_t { kRe2, kEcma };

// How a character is encoded: as UTF-8, or as inside the quotes of a JSON string. There `"`, `\`
// and control characters have one escape each (the short one if there is one).
enum class CharacterCoding : uint8_t { kUtf8, kJson };

struct Regex {
  static constexpr int kUnbounded = -1;
  static constexpr int kRepeatMax = 1'000'000;

  enum class Kind : uint8_t { kEmpty, kSet, kConcatenation, kAlternation, kRepeat, kBegin, kEnd };
  struct Node {
    Kind kind = Kind::kEmpty;
    uint32_t set = 0;                // kSet: index into sets
    int min = 0, max = 0;            // kRepeat
    std::vector<uint32_t> children;  // come before their parent in `nodes`
  };

  std::vector<Node> nodes;
  std::vector<CodepointSet> sets;
  uint32_t root = 0;
};

Result<Regex> parse_regex(std::string_view pattern, RegexDialect dialect, Budget& budget);

// kSearch: texts that contain a match somewhere (JSON schema's `pattern`).
enum class RegexMatch : uint8_t { kFull, kSearch };

Result<Dfa> compile_regex(const Regex& regex, RegexMatch match, CharacterCoding coding,
                          Budget& budget);
// Compiles the part below `root`, matched in full. Requires that it has no anchors.
Result<Dfa> compile_regex_part(const Regex& regex, uint32_t root, CharacterCoding coding,
                               Budget& budget);
// Parses and compiles.
Result<Dfa> dfa_of_regex(std::string_view pattern, Budget& budget,
                         CharacterCoding coding = CharacterCoding::kUtf8);

}  // namespace banyan
