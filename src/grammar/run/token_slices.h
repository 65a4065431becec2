// Sets of tokens that patterns often allow as a whole, so that masks need not ask for each of them,
// and where in an automaton they may come.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "banyan/status.h"
#include "grammar/budget.h"
#include "grammar/regex/dfa.h"

namespace banyan {

// The texts of these are the sets, the widest first: characters that stand for themselves in a JSON
// string; of ASCII only letters, digits and the space; no space of any kind; letters and digits.
const std::vector<std::shared_ptr<const Dfa>>& token_slices();
// How long texts of theirs are looked at; most tokens are shorter.
constexpr uint32_t kSliceBytesMax = 24;

// Bytes that patterns often treat alike: control characters, the quote, the backslash, the space,
// the rest of ASCII, all others.
constexpr size_t kByteGroups = 6;
size_t byte_group(uint8_t byte);

// Where the slices may come in a Dfa.
struct DfaSlices {
  // The first of token_slices(), counted from 1, of which all texts of at most kSliceBytesMax may
  // come, as far as they go (0: none), and whether longer ones may, too.
  struct Slice {
    uint8_t number = 0;
    bool endless = false;
  };
  std::vector<Slice> by_state;  // empty: there are none
  // Per slice, where it is some state's: a bit for each byte_group() of which a byte that leaves
  // the slice may follow one of its texts.
  std::vector<uint8_t> groups;

  // Costs states x classes, once for each slice that has a chance.
  static Result<DfaSlices> of(const Dfa& dfa, Budget& budget);
};

}  // namespace banyan
