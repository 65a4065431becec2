#include "grammar/schema/shape.h"

#include <algorithm>
#include <array>

#include "base/quote.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/formats.h"
#include "grammar/schema/json_text.h"

namespace banyan {
namespace {

constexpr size_t kShapesMax = 20'000;  // limit per compilation

template <size_t N>
bool among(const std::array<std::string_view, N>& list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

// Assertions and applicators that are not enforced.
constexpr auto kRefused = std::to_array<std::string_view>(
    {"if", "contains", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedItems",
     "unevaluatedProperties", "$dynamicRef", "$recursiveRef", "uniqueItems"});
// How to have a schema relaxed, in a request and on the command line.
constexpr std::string_view kRelaxing =
    "strict: false in response_format.json_schema, or --relaxed-schema,";
// The ones that it ignores.
constexpr auto kRelaxed = std::to_array<std::string_view>(
    {"uniqueItems", "contains", "dependentRequired", "unevaluatedProperties", "unevaluatedItems"});
constexpr auto kObjectKeys =
    std::to_array<std::string_view>({"properties", "patternProperties", "additionalProperties"});
constexpr auto kArrayKeys =
    std::to_array<std::string_view>({"items", "prefixItems", "additionalItems"});
constexpr auto kNumberKeys = std::to_array<std::string_view>(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"});
constexpr auto kCountKeys = std::to_array<std::string_view>(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"});

// Whether this use of a rejected keyword asserts nothing.
bool says_nothing(const Json& node, const std::string& key, const Json& value) {
  if (key == "uniqueItems") return value == false;
  if (key == "if") return !node.contains("then") && !node.contains("else");
  if (key == "unevaluatedItems" || key == "unevaluatedProperties") return value == true;
  return value.is_object() && value.empty() && key != "contains" && !key.starts_with("$");
}

}  // namespace

Schemas::Schemas(const Json& document, const JsonSchemaOptions& options, Budget& budget)
    : document_(document), options_(options), budget_(budget) {
  if (document.is_object() && document.contains("$schema") && document["$schema"].is_string()) {
    std::string draft = document["$schema"];
    for (std::string_view old : {"draft-03", "draft-04", "draft-06", "draft-07"}) {
      references_stand_alone_ |= draft.contains(old);
    }
  }
}

Status Schemas::index() {
  return index(document_, "#", 0);
}

Status Schemas::index(const Json& node, const std::string& path, int depth) {
  if (depth > budget_.limits().depth_max) {
    return exhausted("the schema is nested deeper than {}", budget_.limits().depth_max);
  }
  TRY(budget_.spend("reading the schema"));
  if (node.is_array()) {
    for (size_t i = 0; i < node.size(); ++i) {
      TRY(index(node[i], fmt::format("{}/{}", path, i), depth + 1));
    }
  }
  if (!node.is_object() && !node.is_boolean()) return {};
  paths_.emplace(&node, path);
  if (!node.is_object()) return {};
  for (const auto& [key, value] : node.items()) {
    bool names = key == "$id" || key == "id";
    if (names && value.is_string()) ids_.emplace(value.get<std::string>(), &node);
    bool anchors = key == "$anchor" || key == "$dynamicAnchor";
    if (anchors && value.is_string()) ids_.emplace("#" + value.get<std::string>(), &node);
    if (key == "enum" || key == "const" || key == "default" || key == "examples") continue;
    std::string escaped;
    for (char c : key) {
      if (c == '~') {
        escaped += "~0";
      } else if (c == '/') {
        escaped += "~1";
      } else {
        escaped += c;
      }
    }
    TRY(index(value, path + "/" + escaped, depth + 1));
  }
  return {};
}

std::string Schemas::path(const Json* node) const {
  auto it = paths_.find(node);
  return it == paths_.end() ? "#" : it->second;
}

Status Schemas::refuse(const Json& node, const std::string& key, bool relaxable) {
  std::string where = fmt::format("{}/{}", path(&node), key);
  if (options_.strict || !relaxable) {
    return unsupported("{}: the keyword {} cannot be enforced{}", where, quote(key),
                       relaxable ? fmt::format("; {} leaves it out", kRelaxing) : "");
  }
  if (noted_.insert(where).second) notes_.push_back(fmt::format("{} is not enforced", where));
  return {};
}

// Charges the lookup of a member. Objects keep the order of their keys, so a lookup is a linear
// search.
Status Schemas::spend_search(const Json& object) {
  return budget_.spend("reading the schema", object.size() + 1);
}

Result<const Json*> Schemas::resolve(const Json& node, const std::string& reference) {
  if (auto it = ids_.find(reference); it != ids_.end()) return it->second;
  std::string pointer = reference;
  if (!pointer.starts_with('#')) {
    size_t hash = pointer.find('#');
    auto it = ids_.find(pointer.substr(0, hash));
    if (it == ids_.end() || it->second != &document_ || hash == pointer.npos) {
      return unsupported("{}/$ref: {} is not in this document", path(&node), quote(reference));
    }
    pointer = pointer.substr(hash);
  }
  std::string decoded;
  for (size_t i = 1; i < pointer.size(); ++i) {
    auto hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    if (pointer[i] == '%' && i + 2 < pointer.size() && hex(pointer[i + 1]) && hex(pointer[i + 2])) {
      decoded += static_cast<char>(std::stoi(pointer.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      decoded += pointer[i];
    }
  }
  const Json* at = &document_;
  for (size_t begin = 0; begin < decoded.size();) {
    size_t end = std::min(decoded.find('/', begin + 1), decoded.size());
    std::string part = decoded.substr(begin + 1, end - begin - 1);
    for (size_t i = part.find('~'); i != part.npos; i = part.find('~', i + 1)) {
      if (i + 1 < part.size()) part.replace(i, 2, part[i + 1] == '1' ? "/" : "~");
    }
    bool digits =
        !part.empty() && part.size() < 9 && part.find_first_not_of("0123456789") == part.npos;
    const Json* next = nullptr;
    TRY(spend_search(*at));
    if (decoded[begin] == '/' && at->is_object() && at->contains(part)) next = &(*at)[part];
    if (decoded[begin] == '/' && at->is_array() && digits && std::stoul(part) < at->size()) {
      next = &(*at)[std::stoul(part)];
    }
    if (next == nullptr) {
      return invalid_argument("{}/$ref: {} does not exist", path(&node), quote(reference));
    }
    at = next;
    begin = end;
  }
  return at;
}

Result<std::vector<Shape>> Schemas::expand(const Conjunction& nodes) {
  Partial partial;
  partial.todo.assign(nodes.rbegin(), nodes.rend());
  std::vector<Shape> shapes;
  TRY(process(std::move(partial), shapes, 0));
  return shapes;
}

Status Schemas::process(Partial partial, std::vector<Shape>& shapes, int depth) {
  if (depth > budget_.limits().depth_max) return exhausted("alternatives are nested too deeply");
  while (!partial.todo.empty()) {
    const Json* node = partial.todo.back();
    partial.todo.pop_back();
    TRY(budget_.spend("reading the schema", partial.seen.size()));
    if (std::find(partial.seen.begin(), partial.seen.end(), node) != partial.seen.end()) continue;
    partial.seen.push_back(node);
    TRY(budget_.spend("reading the schema", 16));
    if (*node == false) return {};
    TRY(absorb(*node, partial));
  }
  if (!partial.groups.empty()) return process_group(std::move(partial), shapes, depth);
  const Shape& s = partial.shape;
  bool none = !s.null && !s.boolean && !s.number && !s.string && !s.array && !s.object;
  if (none) return {};  // unsatisfiable, regardless of negations
  TRY(apply_negations(partial));
  if (s.values && s.values->empty()) return {};
  TRY(Budget::fits("the schema (alternatives)", ++shapes_made_, kShapesMax));
  shapes.push_back(std::move(partial.shape));
  return {};
}

Status Schemas::process_group(Partial partial, std::vector<Shape>& shapes, int depth) {
  Group group = partial.groups.front();
  partial.groups.erase(partial.groups.begin());
  std::vector<std::vector<Shape>> branches;
  for (const Json& branch : *group.node) {
    // A copy of the constraints collected so far.
    const Shape& s = partial.shape;
    size_t values = s.values ? s.values->size() * 8 : 0;
    TRY(budget_.spend("reading the schema", partial.seen.size() + partial.todo.size() + values +
                                                s.required.size() * 4 + s.objects.size()));
    Partial with = partial;
    with.todo.push_back(&branch);
    // A branch that is already required constrains the value again when it is chosen.
    std::vector<Shape> made;
    TRY(process(std::move(with), made, depth + 1));
    branches.push_back(std::move(made));
  }
  if (group.one_of) TRY(check_disjoint(*group.node, branches));
  for (auto& branch : branches) {
    std::move(branch.begin(), branch.end(), std::back_inserter(shapes));
  }
  return {};
}

// Charges the comparison of each value of one list with each of the other.
Status Schemas::fit_pairs(size_t a, size_t b) {
  constexpr size_t kPairsMax = 10'000'000;
  return Budget::fits("the lists of values (pairs of them)", pairs_ += a * b, kPairsMax);
}

Status Schemas::check_disjoint(const Json& node, const std::vector<std::vector<Shape>>& branches) {
  for (size_t i = 0; i < branches.size(); ++i) {
    for (size_t j = i + 1; j < branches.size(); ++j) {
      for (const Shape& a : branches[i]) {
        for (const Shape& b : branches[j]) {
          if (a.values && b.values) TRY(fit_pairs(a.values->size(), b.values->size()));
          size_t copied = a.required.size() + b.required.size() + a.objects.size() +
                          (a.values ? a.values->size() : 0);
          TRY(budget_.spend("comparing alternatives", 64 + copied * 4));
          if (!TRY(satisfiable(merge(a, b)))) continue;
          std::string where = path(&node[i]);
          where.resize(std::min(where.rfind('/'), where.size()));
          if (options_.strict) {
            return unsupported(
                "{}: branches {} and {} overlap, so oneOf cannot be enforced; {} treats it as "
                "anyOf",
                where, i, j, kRelaxing);
          }
          if (noted_.insert(where).second) notes_.push_back(where + " is treated as anyOf");
          return {};
        }
      }
    }
  }
  return {};
}

Status Schemas::absorb(const Json& node, Partial& partial) {
  if (node.is_boolean()) return {};
  if (!node.is_object()) {
    return invalid_argument("{}: a schema is an object or a boolean, not {}", path(&node),
                            node.type_name());
  }
  if (references_stand_alone_ && node.contains("$ref") && node["$ref"].is_string()) {
    partial.todo.push_back(TRY(resolve(node, node["$ref"])));
    return {};
  }
  bool in_object = false, in_array = false;
  for (const auto& [key, value] : node.items()) {
    in_object |= among(kObjectKeys, key);
    in_array |= among(kArrayKeys, key);
    TRY(absorb_keyword(node, key, value, partial));
  }
  if (in_object) partial.shape.objects.push_back(&node);
  if (in_array) partial.shape.arrays.push_back(&node);
  return {};
}

Status Schemas::absorb_keyword(const Json& node, const std::string& key, const Json& value,
                               Partial& p) {
  Shape& shape = p.shape;
  auto wrong = [&](std::string_view what) {
    return invalid_argument("{}/{}: must be {}", path(&node), key, what);
  };
  if (key == "$ref") {
    if (!value.is_string()) return wrong("a string");
    p.todo.push_back(TRY(resolve(node, value)));
  } else if (key == "allOf" || key == "anyOf" || key == "oneOf") {
    if (!value.is_array() || value.empty()) return wrong("a list of schemas, not empty");
    if (key == "allOf") {
      for (size_t i = value.size(); i-- > 0;) p.todo.push_back(&value[i]);
    } else {
      p.groups.push_back({&value, key == "oneOf"});
    }
  } else if (key == "const") {
    shape.keep_only_values({value});
  } else if (key == "enum") {
    if (!value.is_array()) return wrong("a list");
    TRY(budget_.spend("reading the schema", value.size()));
    if (shape.values) TRY(fit_pairs(shape.values->size(), value.size()));
    shape.keep_only_values(value.get<std::vector<Json>>());
  } else if (key == "type") {
    return absorb_type(node, value, shape);
  } else if (among(kNumberKeys, key)) {
    return absorb_number(node, key, value, shape);
  } else if (key == "pattern" || key == "format" || among(kCountKeys, key)) {
    return absorb_string(node, key, value, shape);
  } else if (key == "required") {
    if (value.is_boolean()) return {};  // draft 3 places it next to a property; no effect here
    if (!value.is_array()) return wrong("a list of names");
    for (const Json& name : value) {
      if (!name.is_string()) return wrong("a list of names");
      TRY(budget_.spend("reading the schema", shape.required.size() + 1));
      auto text = name.get<std::string>();
      if (std::find(shape.required.begin(), shape.required.end(), text) == shape.required.end()) {
        shape.required.push_back(text);
      }
    }
  } else if (key == "propertyNames") {
    shape.property_names.push_back(&value);
  } else if (key == "properties" || key == "patternProperties") {
    if (!value.is_object()) return wrong("an object of schemas");
  } else if (key == "prefixItems") {
    if (!value.is_array()) return wrong("a list of schemas");
  } else if (key == "not") {
    return absorb_not(node, value, p);
  } else if (among(kRefused, key) && !says_nothing(node, key, value)) {
    return refuse(node, key, among(kRelaxed, key));
  }
  return {};
}

// Decided once it is known whether the values are enumerated. A double negation cancels
// out.
Status Schemas::absorb_not(const Json& node, const Json& value, Partial& p) {
  if (value == false) return {};
  if (value.is_object() && value.size() == 1 && value.contains("not")) {
    p.todo.push_back(&value["not"]);
  } else {
    p.negations.push_back({&node, &value});
  }
  return {};
}

Status Schemas::absorb_type(const Json& node, const Json& value, Shape& shape) {
  std::vector<Json> types =
      value.is_array() ? value.get<std::vector<Json>>() : std::vector<Json>{value};
  bool null = node.contains("nullable") && node["nullable"] == true;
  bool boolean = false, number = false, integer = false, string = false, array = false;
  bool object = false;
  for (const Json& type : types) {
    bool known = true;
    if (type == "null") {
      null = true;
    } else if (type == "boolean") {
      boolean = true;
    } else if (type == "number") {
      number = true;
    } else if (type == "integer") {
      integer = true;
    } else if (type == "string") {
      string = true;
    } else if (type == "array") {
      array = true;
    } else if (type == "object") {
      object = true;
    } else {
      known = false;
    }
    if (!known) {
      return invalid_argument(
          "{}/type: {} is not a JSON Schema type: null, boolean, integer, number, string, array or "
          "object",
          path(&node), quote(type.is_string() ? type.get<std::string>() : type.dump()));
    }
  }
  shape.null &= null;
  shape.boolean &= boolean;
  shape.number &= number || integer;
  if (integer && !number) shape.bounds.integer = true;
  shape.string &= string;
  shape.array &= array;
  shape.object &= object;
  return {};
}

Status Schemas::absorb_number(const Json& node, const std::string& key, const Json& value,
                              Shape& shape) {
  NumberBounds& b = shape.bounds;
  if (value.is_boolean() && key.starts_with("exclusive")) {  // draft 4: next to minimum or maximum
    std::string bound = key == "exclusiveMinimum" ? "minimum" : "maximum";
    if (value == false || !node.contains(bound) || !node[bound].is_number()) return {};
    Decimal at = Decimal::of(node[bound]);
    bound == "minimum" ? b.at_least(at, true) : b.at_most(at, true);
    return {};
  }
  if (!value.is_number()) return invalid_argument("{}/{}: must be a number", path(&node), key);
  Decimal number = Decimal::of(value);
  if (key == "minimum" || key == "exclusiveMinimum") b.at_least(number, key != "minimum");
  if (key == "maximum" || key == "exclusiveMaximum") b.at_most(number, key != "maximum");
  if (key != "multipleOf") return {};
  if (number.negative || number == Decimal()) {
    return invalid_argument("{}/multipleOf: must be greater than 0", path(&node));
  }
  // If one is a multiple of the other, it implies the other.
  if (b.multiple_of && *b.multiple_of != number) return refuse(node, "multipleOf", false);
  b.multiple_of = number;
  return {};
}

Result<uint64_t> Schemas::count(const Json& node, const std::string& key, const Json& value) const {
  bool whole = value.is_number() && is_whole(value) && value.get<double>() >= 0;
  if (!whole) {
    return invalid_argument("{}/{}: must be a whole number, not negative", path(&node), key);
  }
  return static_cast<uint64_t>(std::min(value.get<double>(), double{Shape::kUnbounded}));
}

Status Schemas::absorb_string(const Json& node, const std::string& key, const Json& value,
                              Shape& shape) {
  if (key == "format") return absorb_format(node, value, shape);
  if (key == "pattern") {
    if (!value.is_string()) return invalid_argument("{}/pattern: must be a string", path(&node));
    auto dfa = pattern_dfa(value);
    if (!dfa) return make_error(dfa.error().code, path(&node) + ": " + dfa.error().message);
    shape.patterns.push_back(*dfa);
    return {};
  }
  uint64_t n = TRY(count(node, key, value));
  auto at_least = [n](uint64_t& bound) { bound = std::max(bound, n); };
  auto at_most = [n](uint64_t& bound) { bound = std::min(bound, n); };
  if (key == "minLength") at_least(shape.min_length);
  if (key == "maxLength") at_most(shape.max_length);
  if (key == "minItems") at_least(shape.min_items);
  if (key == "maxItems") at_most(shape.max_items);
  if (key == "minProperties") at_least(shape.min_properties);
  if (key == "maxProperties") at_most(shape.max_properties);
  return {};
}

Status Schemas::absorb_format(const Json& node, const Json& value, Shape& shape) {
  if (!value.is_string()) return invalid_argument("{}/format: must be a string", path(&node));
  std::string name = value;
  auto pattern = format_pattern(name);
  // The patterns leave out rare valid values, which a negation would then accept.
  if (pattern && negating_ > 0) return refuse(node, "format", false);
  if (!pattern) return is_hint_format(name) ? Status() : refuse(node, "format", true);
  std::shared_ptr<const Dfa>& dfa = formats_[name];
  if (!dfa)
    dfa = std::make_shared<Dfa>(TRY(dfa_of_regex(*pattern, budget_, CharacterCoding::kJson)));
  shape.patterns.push_back(dfa);
  return {};
}

Result<std::shared_ptr<const Dfa>> Schemas::pattern_dfa(const std::string& pattern) {
  std::shared_ptr<const Dfa>& dfa = patterns_[pattern];
  if (!dfa) {
    Regex regex = TRY(parse_regex(pattern, RegexDialect::kEcma, budget_));
    dfa = std::make_shared<Dfa>(
        TRY(compile_regex(regex, RegexMatch::kSearch, CharacterCoding::kJson, budget_)));
  }
  return dfa;
}

const std::shared_ptr<const Dfa>& Schemas::all_texts() {
  static const auto kAll = [] {
    Budget unlimited({.compile_s = 1e6});
    return std::make_shared<const Dfa>(*dfa_of_regex("(?s).*", unlimited, CharacterCoding::kJson));
  }();
  all_texts_ = kAll;
  return all_texts_;
}

}  // namespace banyan
