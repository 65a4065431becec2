// Whether a vocabulary's tokens can write what a grammar asks for. Most vocabularies have a token
// for every byte and so can write all; of others it is found here, before a request runs into it.
//
// Two checks, neither of which refuses a grammar that tokens can write:
// - a literal text or a pattern has a character that no token has, and every text of the grammar
//   goes through it;
// - the tokens that may begin a text are followed to all ends, where these are few.
// What escapes both ends a request when it comes to it (Matcher allows no token).
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

  // kInvalidArgument names the text that no token spells.
  Status check(const std::shared_ptr<const Automaton>& automaton) const;

 private:
  // The first part of `text` that no tokens spell.
  std::optional<std::string> unspelled(std::string_view text) const;
  std::optional<std::string> unspelled(const Dfa& dfa) const;
  std::vector<std::optional<std::string>> unspelled_terminals(const Automaton& automaton) const;
  Status follow_tokens(const std::shared_ptr<const Automaton>& automaton) const;
  void add_characters(std::string_view token);

  const std::shared_ptr<const TokenVocabulary> vocabulary_;
  std::bitset<256> alone_;                      // bytes that are tokens
  std::bitset<256> within_;                     // that some token has
  std::bitset<256> pieces_;                     // in characters that tokens have in part
  std::unordered_set<std::string> characters_;  // that some token has whole
  bool all_bytes_ = false;                      // of UTF-8 are tokens
};

}  // namespace banyan
