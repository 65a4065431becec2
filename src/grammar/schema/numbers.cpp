#include "grammar/schema/numbers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/signed.h"
#include "grammar/regex/regex.h"

namespace banyan {
namespace {

// Largest remainder table for multipleOf.
constexpr uint64_t kMultipleMax = 10'000;

int compare_whole(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

int compare_magnitude(const Decimal& a, const Decimal& b) {
  int whole = compare_whole(a.whole, b.whole);
  return whole != 0 ? whole : a.fraction.compare(b.fraction);
}

constexpr std::string_view kAnyFraction = "(?:\\.[0-9]{1,32})?";

std::string digits(int min) {
  return fmt::format("[0-9]{{{},{}}}", min, kNumberDigitsMax);
}

// Integers with as many digits as `bound` that are greater (or less) than it: one alternative per
// digit, without leading zeros.
void beyond_same_length(const std::string& bound, bool greater, std::vector<std::string>& ways) {
  for (size_t i = 0; i < bound.size(); ++i) {
    char d = bound[i];
    char first = greater ? static_cast<char>(d + 1) : '0';
    char last = greater ? '9' : static_cast<char>(d - 1);
    if (!greater && i == 0 && bound.size() > 1) first = '1';
    if (first > last) continue;
    ways.push_back(
        fmt::format("{}[{}-{}][0-9]{{{}}}", bound.substr(0, i), first, last, bound.size() - i - 1));
  }
}

std::string join(const std::vector<std::string>& ways) {
  return fmt::format("(?:{})", fmt::join(ways, "|"));
}

// A pattern for non-negative numbers >= `bound` (> if exclusive).
std::string at_least_pattern(const Decimal& bound, bool exclusive) {
  std::vector<std::string> ways, wholes;
  beyond_same_length(bound.whole, true, wholes);
  size_t longer = bound.whole.size();
  wholes.push_back(
      fmt::format("[1-9][0-9]{{{},{}}}", longer, std::max<size_t>(longer, kNumberDigitsMax - 1)));
  ways.push_back(join(wholes) + std::string(kAnyFraction));
  const std::string& f = bound.fraction;
  if (f.empty() && !exclusive) ways.push_back(bound.whole + std::string(kAnyFraction));
  if (f.empty() && exclusive) {
    ways.push_back(fmt::format("{}\\.0{{0,32}}[1-9]{}", bound.whole, digits(0)));
  }
  for (size_t i = 0; i < f.size(); ++i) {
    if (f[i] == '9') continue;
    ways.push_back(fmt::format("{}\\.{}[{}-9]{}", bound.whole, f.substr(0, i),
                               static_cast<char>(f[i] + 1), digits(0)));
  }
  if (!f.empty()) {
    std::string tail = exclusive ? "0{0,32}[1-9]" + digits(0) : digits(0);
    ways.push_back(fmt::format("{}\\.{}{}", bound.whole, f, tail));
  }
  return join(ways);
}

// A pattern for non-negative numbers <= `bound` (< if exclusive).
std::string at_most_pattern(const Decimal& bound, bool exclusive) {
  std::vector<std::string> ways, wholes;
  beyond_same_length(bound.whole, false, wholes);
  if (bound.whole.size() > 1) {
    wholes.push_back("0");
    wholes.push_back(fmt::format("[1-9][0-9]{{0,{}}}", bound.whole.size() - 2));
  }
  if (!wholes.empty()) ways.push_back(join(wholes) + std::string(kAnyFraction));
  const std::string& f = bound.fraction;
  if (!f.empty() || !exclusive) ways.push_back(bound.whole);
  if (f.empty() && !exclusive) ways.push_back(bound.whole + "\\.0{1,32}");
  for (size_t i = 0; i < f.size(); ++i) {
    std::string head = fmt::format("{}\\.{}", bound.whole, f.substr(0, i));
    if (i > 0) ways.push_back(head);
    if (f[i] == '0') continue;
    ways.push_back(fmt::format("{}[0-{}]{}", head, static_cast<char>(f[i] - 1), digits(0)));
  }
  if (!f.empty() && !exclusive) ways.push_back(fmt::format("{}\\.{}0{{0,32}}", bound.whole, f));
  return ways.empty() ? "[^\\x00-\\x{10FFFF}]" : join(ways);
}

// Non-negative numbers between the bounds; either may be missing.
Result<Dfa> magnitudes(const std::optional<Decimal>& low, bool low_exclusive,
                       const std::optional<Decimal>& high, bool high_exclusive, Budget& budget) {
  Decimal zero;
  Dfa above = TRY(dfa_of_regex(at_least_pattern(low.value_or(zero), low && low_exclusive), budget));
  if (!high) return above;
  Dfa below = TRY(dfa_of_regex(at_most_pattern(*high, high_exclusive), budget));
  return combine(above, below, DfaOperation::kIntersection, budget);
}

// `dfa` preceded by a minus sign.
Result<Dfa> negated(const Dfa& dfa, Budget& budget) {
  DfaTable t;
  t.classes = dfa.classes() + 1;
  for (int b = 0; b < 256; ++b) t.class_of[b] = dfa.class_of(static_cast<uint8_t>(b));
  t.class_of['-'] = static_cast<uint8_t>(dfa.classes());
  for (uint32_t s = 0; s < dfa.states(); ++s) {
    t.accepting.push_back(dfa.accepting(s) ? kAccepts : 0);
    for (uint32_t c = 0; c < dfa.classes(); ++c) t.next.push_back(dfa.step_class(s, c));
    t.next.push_back(0);
  }
  t.start = dfa.states();
  t.accepting.push_back(0);
  t.next.resize(t.next.size() + t.classes, 0);
  t.next.back() = dfa.start();
  return Dfa::make(std::move(t), budget);
}

Decimal opposite(Decimal d) {
  if (d.whole != "0" || !d.fraction.empty()) d.negative = !d.negative;
  return d;
}

Result<Dfa> within(const NumberBounds& b, Budget& budget) {
  Decimal zero;
  Dfa result;
  bool may_be_positive = !b.max || b.max->compare(zero) > 0 || (*b.max == zero && !b.max_exclusive);
  if (may_be_positive) {
    bool low = b.min && !b.min->negative;
    result = TRY(
        magnitudes(low ? b.min : std::nullopt, b.min_exclusive, b.max, b.max_exclusive, budget));
  }
  if (b.min && !b.min->negative) return result;
  // Negative numbers: the magnitudes run from -max (or just above 0) to -min.
  bool ends_below = b.max && b.max->negative;
  Decimal low = ends_below ? opposite(*b.max) : zero;
  bool exclusive = ends_below ? b.max_exclusive : true;
  std::optional<Decimal> high;
  if (b.min) high = opposite(*b.min);
  Dfa below = TRY(magnitudes(low, exclusive, high, b.min_exclusive, budget));
  return combine(result, TRY(negated(below, budget)), DfaOperation::kUnion, budget);
}

// Numbers whose digits, shifted by `places`, are a multiple of `m`. States: dead; start; after the
// sign; then (0 before the point, or fraction digits read + 1; remainder; whether a digit was
// read).
Result<Dfa> multiples(uint64_t m, size_t places, Budget& budget) {
  DfaTable t;
  for (int b = 0; b < 256; ++b) t.class_of[b] = 0;
  for (int d = 0; d < 10; ++d) t.class_of['0' + d] = static_cast<uint8_t>(1 + d);
  t.class_of['-'] = 11;
  t.class_of['.'] = 12;
  t.classes = 13;
  // Phase 0: integer digits; 1: the point; 2 + i: i + 1 fraction digits.
  size_t phases = 2 + places;
  auto state = [&](size_t phase, uint64_t rest) {
    return static_cast<uint32_t>(3 + phase * m + rest);
  };
  size_t states = 3 + phases * m;
  t.next.assign(states * t.classes, 0);
  t.accepting.assign(states, 0);
  t.start = 1;
  auto set = [&](uint32_t from, int byte_class, uint32_t to) {
    t.next[size_t{from} * t.classes + byte_class] = to;
  };
  set(1, 11, 2);
  for (int d = 0; d < 10; ++d) {
    set(1, 1 + d, state(0, static_cast<uint64_t>(d) % m));
    set(2, 1 + d, state(0, static_cast<uint64_t>(d) % m));
  }
  for (size_t phase = 0; phase < phases; ++phase) {
    size_t read = phase < 2 ? 0 : phase - 1;
    for (uint64_t rest = 0; rest < m; ++rest) {
      uint32_t s = state(phase, rest);
      uint64_t shifted = rest;
      for (size_t i = read; i < places; ++i) shifted = shifted * 10 % m;
      t.accepting[s] = phase != 1 && shifted == 0 ? kAccepts : 0;
      if (phase == 0 && places > 0) set(s, 12, state(1, rest));
      if (phase > 0 && read >= places) continue;
      for (uint64_t d = 0; d < 10; ++d) {
        size_t to = phase == 0 ? 0 : phase + 1;
        set(s, static_cast<int>(1 + d), state(to, (rest * 10 + d) % m));
      }
    }
  }
  return Dfa::make(std::move(t), budget);
}

}  // namespace

Decimal Decimal::of(const Json& number) {
  // "-12.5e+20": digits around a point, then the exponent that shifts it.
  std::string text =
      number.is_number_float() ? fmt::format("{}", number.get<double>()) : number.dump();
  Decimal d;
  d.negative = text.starts_with('-');
  if (d.negative) text.erase(0, 1);
  int exponent = 0;
  if (size_t e = text.find('e'); e != text.npos) {
    exponent = std::stoi(text.substr(e + 1));
    text.resize(e);
  }
  size_t point = std::min(text.find('.'), text.size());
  std::string all = text.substr(0, point) + (point < text.size() ? text.substr(point + 1) : "");
  int whole = static_cast<int>(point) + exponent;
  if (whole < 0) all.insert(0, as_size(-whole), '0');
  whole = std::max(whole, 0);
  if (std::ssize(all) < whole) all.resize(as_size(whole), '0');
  d.whole = all.substr(0, as_size(whole));
  d.fraction = all.substr(as_size(whole));
  d.whole.erase(0, std::min(d.whole.find_first_not_of('0'), d.whole.size()));
  d.fraction.erase(d.fraction.find_last_not_of('0') + 1);
  if (d.whole.empty()) d.whole = "0";
  if (d.whole == "0" && d.fraction.empty()) d.negative = false;
  return d;
}

int Decimal::compare(const Decimal& other) const {
  if (negative != other.negative) return negative ? -1 : 1;
  int magnitude = compare_magnitude(*this, other);
  return negative ? -magnitude : magnitude;
}

void NumberBounds::at_least(const Decimal& bound, bool exclusive) {
  int order = min ? bound.compare(*min) : 1;
  if (order < 0) return;
  min_exclusive = order == 0 ? min_exclusive || exclusive : exclusive;
  min = bound;
}

void NumberBounds::at_most(const Decimal& bound, bool exclusive) {
  int order = max ? bound.compare(*max) : -1;
  if (order > 0) return;
  max_exclusive = order == 0 ? max_exclusive || exclusive : exclusive;
  max = bound;
}

Result<Dfa> number_dfa(const NumberBounds& b, Budget& budget) {
  bool free = !b.min && !b.max && !b.multiple_of;
  std::string whole = fmt::format("-?(?:0|[1-9][0-9]{{0,{}}})", kNumberDigitsMax - 1);
  if (free && !b.integer) {
    return dfa_of_regex(whole + std::string(kAnyFraction) + "(?:[eE][+-]?[0-9]{1,2})?", budget);
  }
  if (free) return dfa_of_regex(whole, budget);
  Dfa dfa = TRY(within(b, budget));
  if (b.integer) {
    Dfa integers = TRY(dfa_of_regex("-?(?:0|[1-9][0-9]*)", budget));
    dfa = TRY(combine(dfa, integers, DfaOperation::kIntersection, budget));
  }
  if (!b.multiple_of) return dfa;
  std::string scaled = b.multiple_of->whole + b.multiple_of->fraction;
  scaled.erase(0, std::min(scaled.find_first_not_of('0'), scaled.size()));
  if (scaled.empty() || scaled.size() > 6 || std::stoull(scaled) > kMultipleMax) {
    return exhausted("multipleOf with digits {} is too large: more than {}", scaled, kMultipleMax);
  }
  size_t places = b.multiple_of->fraction.size();
  uint64_t m = std::stoull(scaled);
  TRY(Budget::fits("multipleOf (states)", m * (places + 2), budget.limits().dfa_states_max));
  Dfa of_m = TRY(multiples(m, places, budget));
  return combine(dfa, of_m, DfaOperation::kIntersection, budget);
}

}  // namespace banyan
