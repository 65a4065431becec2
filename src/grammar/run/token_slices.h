// Sets of tokens that patterns often allow as a whole, so that masks need not test each token, and
// where in an automaton they apply.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "banyan/status.h"
#include "grammar/budget.h"
#include "grammar/regex/dfa.h"

namespace banyan {

// The automata that define the sets, widest first: characters that need no escape in a JSON string;
// of ASCII, letters, digits and the space only; no space of any kind; letters and digits.
const std::vector<std::shared_ptr<const Dfa>>& token_slices();
// Strings are considered up to this length; most tokens are shorter.
constexpr uint32_t kSliceBytesMax = 24;

// Groups of bytes that patterns often treat alike: control characters, the quote, the backslash,
// the space, the rest of ASCII, all others.
constexpr size_t kByteGroups = 6;
size_t byte_group(uint8_t byte);

// Where the slices apply in a Dfa.
struct DfaSlices {
  // The first of token_slices(), counted from 1, whose strings of up to kSliceBytesMax bytes may
  // all follow (0: none), and whether longer strings may follow too.
  struct Slice {
    uint8_t number = 0;
    bool endless = false;
  };
  std::vector<Slice> by_state;  // empty: no slice applies
  // For each slice used by some state: a bit for each byte_group() that contains a byte which may
  // follow one of the slice's strings and leaves the slice.
  std::vector<uint8_t> groups;

  // Cost: states x classes for each slice that may apply.
  static Result<DfaSlices> of(const Dfa& dfa, Budget& budget);
};

}  // namespace banyan
