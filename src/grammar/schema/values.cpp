// Queries on shapes: their intersection, whether one is satisfiable, whether it accepts a value.
#include <algorithm>

#include "grammar/schema/json_text.h"
#include "grammar/schema/shape.h"

namespace banyan {
namespace {

// Children deeper than this are assumed to be satisfiable.
constexpr int kLookMax = 4;

std::string content(const std::string& text) {
  std::string quoted = json_quoted(text);
  return quoted.substr(1, quoted.size() - 2);
}

// Ignores the order of object members.
bool same_value(const Json& a, const Json& b) {
  if (a.is_structured() && a.size() != b.size()) return false;
  if (a.is_object() && b.is_object()) {
    for (const auto& [name, member] : a.items()) {
      auto it = b.find(name);
      if (it == b.end() || !same_value(member, *it)) return false;
    }
    return true;
  }
  if (a.is_array() && b.is_array()) {
    return std::equal(a.begin(), a.end(), b.begin(), same_value);
  }
  return a == b;
}

bool among(const std::vector<Json>& values, const Json& value) {
  return std::any_of(values.begin(), values.end(),
                     [&](const Json& other) { return same_value(other, value); });
}

}  // namespace

uint64_t characters_of(std::string_view text) {
  return static_cast<uint64_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

void Shape::keep_only_values(const std::vector<Json>& others) {
  if (!values) {
    values = others;
    return;
  }
  std::erase_if(*values, [&](const Json& value) { return !among(others, value); });
}

Shape merge(const Shape& a, const Shape& b) {
  Shape m = a;
  m.null &= b.null;
  m.boolean &= b.boolean;
  m.number &= b.number;
  m.string &= b.string;
  m.array &= b.array;
  m.object &= b.object;
  m.bounds.integer |= b.bounds.integer;
  if (b.bounds.min) m.bounds.at_least(*b.bounds.min, b.bounds.min_exclusive);
  if (b.bounds.max) m.bounds.at_most(*b.bounds.max, b.bounds.max_exclusive);
  if (!m.bounds.multiple_of) m.bounds.multiple_of = b.bounds.multiple_of;
  m.min_length = std::max(a.min_length, b.min_length);
  m.max_length = std::min(a.max_length, b.max_length);
  m.min_items = std::max(a.min_items, b.min_items);
  m.max_items = std::min(a.max_items, b.max_items);
  m.min_properties = std::max(a.min_properties, b.min_properties);
  m.max_properties = std::min(a.max_properties, b.max_properties);
  auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(m.patterns, b.patterns);
  append(m.arrays, b.arrays);
  append(m.objects, b.objects);
  append(m.property_names, b.property_names);
  append(m.required, b.required);
  if (b.values) m.keep_only_values(*b.values);
  return m;
}

Conjunction Schemas::item(const Shape& shape, size_t i) const {
  Conjunction nodes;
  for (const Json* node : shape.arrays) {
    const Json* prefix = node->contains("prefixItems") ? &(*node)["prefixItems"] : nullptr;
    const Json* rest = node->contains("items") ? &(*node)["items"] : nullptr;
    if (prefix == nullptr && rest != nullptr && rest->is_array()) {  // up to draft 2019-09
      prefix = rest;
      rest = node->contains("additionalItems") ? &(*node)["additionalItems"] : nullptr;
    }
    if (prefix != nullptr && i < prefix->size()) {
      nodes.push_back(&(*prefix)[i]);
    } else if (rest != nullptr) {
      nodes.push_back(rest);
    }
  }
  return nodes;
}

Result<Conjunction> Schemas::property(const Shape& shape, const std::string& name) {
  Conjunction nodes;
  for (const Json* node : shape.objects) {
    bool matched = false;
    if (node->contains("properties")) TRY(spend_search((*node)["properties"]));
    if (node->contains("properties") && (*node)["properties"].contains(name)) {
      nodes.push_back(&(*node)["properties"][name]);
      matched = true;
    }
    if (node->contains("patternProperties")) {
      for (const auto& [pattern, schema] : (*node)["patternProperties"].items()) {
        auto dfa = TRY(pattern_dfa(pattern));
        TRY(budget_.spend("matching names", name.size() + 8));
        if (!dfa->matches(content(name))) continue;
        nodes.push_back(&schema);
        matched = true;
      }
    }
    if (!matched && node->contains("additionalProperties")) {
      nodes.push_back(&(*node)["additionalProperties"]);
    }
  }
  return nodes;
}

Result<std::shared_ptr<const Dfa>> Schemas::string_dfa(const Shape& shape) {
  std::shared_ptr<const Dfa> all;
  for (const auto& pattern : shape.patterns) {
    if (!all || all == pattern) {
      all = pattern;
    } else {
      all =
          std::make_shared<Dfa>(TRY(combine(*all, *pattern, DfaOperation::kIntersection, budget_)));
    }
  }
  return all;
}

Result<std::shared_ptr<const Dfa>> Schemas::numbers(const NumberBounds& b) {
  std::string key = b.integer ? "integer" : "number";
  auto add = [&key](char mark, const std::optional<Decimal>& d) {
    key += mark;
    if (d) key += (d->negative ? "-" : "") + d->whole + "." + d->fraction;
  };
  add(b.min_exclusive ? '>' : 'g', b.min);
  add(b.max_exclusive ? '<' : 'l', b.max);
  add('*', b.multiple_of);
  std::shared_ptr<const Dfa>& dfa = numbers_[key];
  if (!dfa) dfa = std::make_shared<const Dfa>(TRY(number_dfa(b, budget_)));
  return dfa;
}

Result<bool> Schemas::satisfiable(const Conjunction& nodes, int depth) {
  if (depth > kLookMax) return true;
  for (const Shape& shape : TRY(expand(nodes))) {
    if (TRY(satisfiable(shape, depth))) return true;
  }
  return false;
}

Result<bool> Schemas::satisfiable(const Shape& s, int depth) {
  if (s.values) {
    for (const Json& value : *s.values) {
      if (TRY(accepts(s, value, depth))) return true;
    }
    return false;
  }
  if (s.null || s.boolean) return true;
  if (s.number) {
    bool ordered = !s.bounds.min || !s.bounds.max ||
                   s.bounds.min->compare(*s.bounds.max) <
                       (s.bounds.min_exclusive || s.bounds.max_exclusive ? 0 : 1);
    if (!s.bounds.min && !s.bounds.max && !s.bounds.multiple_of) return true;
    if (ordered && !TRY(numbers(s.bounds))->empty()) return true;
  }
  if (s.string && s.min_length <= s.max_length) {
    auto dfa = TRY(string_dfa(s));
    if (!dfa || !dfa->empty()) return true;
  }
  if (s.array && s.min_items <= s.max_items) {
    bool possible = true;
    for (size_t i = 0; possible && i < std::min<uint64_t>(s.min_items, 16); ++i) {
      possible = TRY(satisfiable(item(s, i), depth + 1));
    }
    if (possible) return true;
  }
  if (!s.object || s.min_properties > s.max_properties) return false;
  std::vector<std::string> required = s.required;
  std::sort(required.begin(), required.end());
  required.erase(std::unique(required.begin(), required.end()), required.end());
  if (required.size() > s.max_properties) return false;
  for (const std::string& name : required) {
    if (!TRY(satisfiable(TRY(property(s, name)), depth + 1))) return false;
  }
  return true;
}

Result<bool> Schemas::accepts(const Conjunction& nodes, const Json& value, int depth) {
  if (depth > budget_.limits().depth_max) return exhausted("a value is nested too deeply");
  for (const Shape& shape : TRY(expand(nodes))) {
    if (TRY(accepts(shape, value, depth))) return true;
  }
  return false;
}

Result<bool> Schemas::accepts(const Shape& s, const Json& value, int depth) {
  TRY(budget_.spend("comparing values", s.values ? 4 * s.values->size() : 16));
  if (s.values && !among(*s.values, value)) return false;
  if (value.is_null()) return s.null;
  if (value.is_boolean()) return s.boolean;
  if (value.is_number()) {
    if (!s.number || (s.bounds.integer && !is_whole(value))) return false;
    Decimal number = Decimal::of(value);
    const NumberBounds& b = s.bounds;
    int low = b.min ? number.compare(*b.min) : 1, high = b.max ? number.compare(*b.max) : -1;
    if (low < 0 || (low == 0 && b.min_exclusive)) return false;
    if (high > 0 || (high == 0 && b.max_exclusive)) return false;
    if (!b.multiple_of) return true;
    // The automaton reads a limited number of digits; a negation would accept all longer numbers.
    if (negating_ > 0 && number.whole.size() > size_t{kNumberDigitsMax}) {
      return exhausted("a number under \"not\" has more than {} digits", kNumberDigitsMax);
    }
    std::string text = (number.negative ? "-" : "") + number.whole;
    if (!number.fraction.empty()) text += "." + number.fraction;
    NumberBounds multiples{.multiple_of = b.multiple_of};
    return TRY(numbers(multiples))->matches(text);
  }
  if (value.is_string()) {
    std::string text = value;
    uint64_t length = characters_of(text);
    if (!s.string || length < s.min_length || length > s.max_length) return false;
    for (const auto& pattern : s.patterns) {
      if (!pattern->matches(content(text))) return false;
    }
    return true;
  }
  if (value.is_object()) return accepts_object(s, value, depth);
  if (!s.array || value.size() < s.min_items || value.size() > s.max_items) return false;
  for (size_t i = 0; i < value.size(); ++i) {
    if (!TRY(accepts(item(s, i), value[i], depth + 1))) return false;
  }
  return true;
}

// Removes enumerated values that a negated schema accepts. Rejects a negation without enumerated
// values.
Status Schemas::apply_negations(Partial& partial) {
  constexpr int kNegationsMax = 8;  // nesting depth
  for (const Negation& negation : partial.negations) {
    std::optional<std::vector<Json>>& values = partial.shape.values;
    if (!values) return refuse(*negation.node, "not", false);
    if (negating_ == kNegationsMax) return exhausted("negations are nested too deeply");
    std::vector<Json> kept;
    for (const Json& value : *values) {
      ++negating_;
      Result<bool> accepted = accepts(Conjunction{negation.schema}, value);
      --negating_;
      if (!TRY(std::move(accepted))) kept.push_back(value);
    }
    values = std::move(kept);
  }
  return {};
}

Result<bool> Schemas::accepts_object(const Shape& s, const Json& value, int depth) {
  if (!s.object || value.size() < s.min_properties || value.size() > s.max_properties) {
    return false;
  }
  for (const std::string& name : s.required) {
    TRY(spend_search(value));
    if (!value.contains(name)) return false;
  }
  for (const auto& [name, member] : value.items()) {
    if (!TRY(accepts(TRY(property(s, name)), member, depth + 1))) return false;
    if (!TRY(accepts(s.property_names, name, depth + 1))) return false;
  }
  return true;
}

}  // namespace banyan
