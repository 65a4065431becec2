// JSON numbers with bounds, as automata over their decimal form.
#pragma once

#include <optional>
#include <string>

#include "banyan/status.h"
#include "base/json.h"
#include "grammar/budget.h"
#include "grammar/regex/dfa.h"

namespace banyan {

// A decimal without exponent: sign, integer digits ("0" or no leading zeros) and fraction digits
// without trailing zeros. Zero has no sign.
struct Decimal {
  bool negative = false;
  std::string whole = "0", fraction;

  // From a JSON number, by the shortest form that reads back as the same double.
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

// The most digits before and after the point if there is no tighter bound. It stops a model that
// repeats digits.
constexpr int kNumberDigitsMax = 32;

// Numbers within `bounds`. Exponents are accepted only without bounds. Bounded numbers have at most
// kNumberDigitsMax integer digits, or as many as the bounds have.
Result<Dfa> number_dfa(const NumberBounds& bounds, Budget& budget);

}  // namespace banyan
