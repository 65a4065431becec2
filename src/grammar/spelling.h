// Checks that a vocabulary can spell what a grammar requires. Most vocabularies have a token for
// every byte and pass at once; for others, this fails early instead of during a request.
//
// Two checks, neither of which rejects a grammar that tokens can spell:
// - a literal or a pattern that every text of the grammar contains has a character that is in no
//   token;
// - a bounded search over the tokens that may begin a text finds no complete text.
// A case that escapes both checks ends the request when the Matcher allows no token.
//
// Immutable; safe from every thread.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "banyan/status.h"
#include "grammar/automaton.h"
#include "grammar/run/token_vocabulary.h"

namespace banyan {

class Spelling {
 public:
  explicit Spelling(std::shared_ptr<const TokenVocabulary> vocabulary);

  // kInvalidArgument names the string that no tokens can spell.
  Status check(const std::shared_ptr<const Automaton>& automaton) const;

 private:
  // The first part of `text` that no tokens can spell.
  std::optional<std::string> unspelled(std::string_view text) const;
  std::optional<std::string> unspelled(const Dfa& dfa) const;
  std::vector<std::optional<std::string>> unspelled_terminals(const Automaton& automaton) const;
  Status follow_tokens(const std::shared_ptr<const Automaton>& automaton) const;
  void add_characters(std::string_view token);

  const std::shared_ptr<const TokenVocabulary> vocabulary_;
  std::bitset<256> alone_;   // bytes that are tokens by themselves
  std::bitset<256> within_;  // bytes that occur in some token
  std::bitset<256> pieces_;  // bytes of characters that tokens contain only in part
  std::unordered_set<std::string> characters_;  // characters that some token contains whole
  bool all_bytes_ = false;                      // every byte of UTF-8 is a token
};

}  // namespace banyan
