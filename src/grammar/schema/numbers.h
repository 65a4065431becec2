// JSON numbers with bounds, as automata over their decimal spelling.
#pragma once

#include <optional>
#include <string>

#include "banyan/status.h"
#include "base/json.h"
#include "grammar/budget.h"
#include "grammar/regex/dfa.h"

namespace banyan {

// A decimal without exponent: sign, whole digits ("0" or without leading zeros), fraction digits
// without trailing zeros. Zero has no sign.
struct Decimal {
  bool negative = false;
  std::string whole = "0", fraction;

  // Of a JSON number, in the shortest spelling that reads back as the same double.
  static Decimal of(const Json& number);
  bool operator==(const Decimal&) const = default;
  // < 0, 0 or > 0.
  int compare(const Decimal& other) const;
};

struct NumberBounds {
  bool integer = false;  // no fraction and no exponent
  std::optional<Decimal> min, max;
  bool min_exclusive = false, max_exclusive = false;
  std::optional<Decimal> multiple_of;  // positive

  void at_least(const Decimal& bound, bool exclusive);
  void at_most(const Decimal& bound, bool exclusive);
};

// The most digits before and after the point where no bound says more: a model that repeats
// itself comes to an end.
constexpr int kNumberDigitsMax = 32;

// Numbers within `bounds`; exponents only where there is no bound at all. Numbers with a bound have
// at most kNumberDigitsMax whole digits, or as many as the bounds have.
Result<Dfa> number_dfa(const NumberBounds& bounds, Budget& budget);

}  // namespace banyan
