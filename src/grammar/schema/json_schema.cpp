#include "grammar/schema/json_schema.h"

#include <algorithm>
#include <deque>
#include <map>

#include "grammar/automaton.h"
#include "grammar/regex/regex.h"
#include "grammar/run/token_vocabulary.h"
#include "grammar/schema/json_text.h"
#include "grammar/schema/shape.h"

namespace banyan {
namespace {

constexpr size_t kKeyClassesMax = 64;
// Node limit for an object with a bounded number of properties.
constexpr size_t kCountedPropertiesMax = 50'000;

// Unnamed properties, classified by the patterns that their keys match, with the schemas of the
// value.
struct KeyClass {
  std::shared_ptr<const Dfa> keys;
  Conjunction value;
  ExpressionId member = 0;
};

struct Property {
  std::string name;
  bool required = false;
  ExpressionId member = 0;  // "name":value
};

uint32_t bound(uint64_t n) {
  return n >= Shape::kUnbounded ? Rules::kUnbounded : static_cast<uint32_t>(n);
}

class Emitter {
 public:
  Emitter(const Json& document, const JsonSchemaOptions& options, Budget& budget)
      : options_(options), budget_(budget), schemas_(document, options, budget) {}

  Result<Rules> run() {
    TRY(schemas_.index());
    TRY(prepare_separators());
    RuleId root = rules_.add_rule("the schema");
    ExpressionId value = TRY(value_of({&schemas_.document()}));
    rules_.set_body(root, value);
    while (!waiting_.empty()) {
      auto [rule, shapes] = std::move(waiting_.front());
      waiting_.pop_front();
      std::vector<ExpressionId> ways;
      for (const Shape& shape : shapes) ways.push_back(TRY(shape_of(shape)));
      rules_.set_body(rule, rules_.choice(ways));
      TRY(Budget::fits("the schema (expressions)", rules_.size(), budget_.limits().nodes_max));
      TRY(budget_.spend("the schema", 256));
    }
    rules_.notes = schemas_.notes();
    return std::move(rules_);
  }

 private:
  Status prepare_separators() {
    space_ = rules_.empty();
    if (options_.flexible_whitespace) {
      std::string pattern = fmt::format(" ?|\\n[ \\t]{{0,{}}}", kJsonIndentMax);
      space_ = rules_.dfa(TRY(dfa_of_regex(pattern, budget_)));
    }
    comma_ = rules_.sequence({space_, rules_.text(","), space_});
    colon_ = rules_.sequence({space_, rules_.text(":"), space_});
    NumberBounds none, integers{.integer = true};
    number_ = rules_.dfa(TRY(number_dfa(none, budget_)));
    integer_ = rules_.dfa(TRY(number_dfa(integers, budget_)));
    return {};
  }

  // A value for which all of `nodes` hold. Objects and lists become rules that are built later, so
  // schemas may be recursive.
  Result<ExpressionId> value_of(const Conjunction& nodes) {
    Conjunction key = nodes;
    std::sort(key.begin(), key.end());
    key.erase(std::unique(key.begin(), key.end()), key.end());
    if (auto it = values_.find(key); it != values_.end()) return it->second;
    std::vector<Shape> shapes = TRY(schemas_.expand(nodes));
    bool scalar = true;
    for (const Shape& shape : shapes) scalar = scalar && shape.scalar();
    ExpressionId value;
    if (scalar) {
      std::vector<ExpressionId> ways;
      for (const Shape& shape : shapes) ways.push_back(TRY(shape_of(shape)));
      value = rules_.choice(ways);
    } else {
      RuleId rule = rules_.add_rule(nodes.empty() ? "any value" : schemas_.path(nodes[0]));
      value = rules_.call(rule);
      waiting_.emplace_back(rule, std::move(shapes));
    }
    values_.emplace(std::move(key), value);
    return value;
  }

  Result<ExpressionId> shape_of(const Shape& s) {
    std::vector<ExpressionId> ways;
    if (s.values) {
      Shape rest = s;
      rest.values.reset();
      for (const Json& value : *s.values) {
        if (TRY(schemas_.accepts(rest, value))) ways.push_back(literal(value));
      }
      return choice_of_literals(ways);
    }
    if (s.object) ways.push_back(TRY(object_of(s)));
    if (s.array) ways.push_back(TRY(array_of(s)));
    if (s.string) ways.push_back(TRY(string_of(s)));
    if (s.number) ways.push_back(TRY(number_of(s)));
    if (s.boolean) {
      ways.push_back(rules_.text("true"));
      ways.push_back(rules_.text("false"));
    }
    if (s.null) ways.push_back(rules_.text("null"));
    return rules_.choice(ways);
  }

  ExpressionId literal(const Json& value) {
    if (value.is_string()) return rules_.text(json_quoted(value.get<std::string>()));
    if (!value.is_structured() || value.empty()) return rules_.text(value.dump());
    std::vector<ExpressionId> parts = {rules_.text(value.is_object() ? "{" : "["), space_};
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!first) parts.push_back(comma_);
      first = false;
      if (value.is_object()) {
        parts.push_back(rules_.text(json_quoted(key)));
        parts.push_back(colon_);
      }
      parts.push_back(literal(member));
    }
    parts.push_back(space_);
    parts.push_back(rules_.text(value.is_object() ? "}" : "]"));
    return rules_.sequence(parts);
  }

  // Strings become one automaton, so the cost of a long enum is that of its longest string.
  Result<ExpressionId> choice_of_literals(const std::vector<ExpressionId>& ways) {
    std::vector<std::string> texts;
    std::vector<ExpressionId> others;
    for (ExpressionId way : ways) {
      if (rules_[way].kind == Rules::Kind::kText) {
        texts.push_back(rules_[way].text);
      } else {
        others.push_back(way);
      }
    }
    if (texts.size() == 1) {
      others.push_back(rules_.text(texts[0]));
    } else if (!texts.empty()) {
      others.push_back(rules_.dfa(TRY(dfa_of_texts(std::move(texts), budget_))));
    }
    return rules_.choice(others);
  }

  Result<ExpressionId> string_of(const Shape& s) {
    ExpressionId content;
    uint32_t min = bound(s.min_length), max = bound(s.max_length);
    if (min > max) return rules_.never();
    if (s.patterns.empty()) {
      content = rules_.counted(json_string_dfa(), min, max);
    } else if (auto it = strings_.find({s.patterns, min, max}); it != strings_.end()) {
      content = it->second;
    } else {
      auto dfa = TRY(schemas_.string_dfa(s));
      if (min > 0 || max != Rules::kUnbounded) {
        content = TRY(counted_pattern(*dfa, min, max));
      } else {
        content = rules_.dfa(dfa);
      }
      strings_.emplace(std::tuple(s.patterns, min, max), content);
    }
    return rules_.sequence({rules_.text("\""), content, rules_.text("\"")});
  }

  // Counts while matching where that is exact, otherwise in the automaton.
  Result<ExpressionId> counted_pattern(const Dfa& dfa, uint32_t min, uint32_t max) {
    Dfa marked = TRY(mark_character_ends(dfa, *schemas_.all_texts(), budget_));
    CharacterCounts counts = TRY(CharacterCounts::of(marked, budget_));
    uint32_t shortest = counts.shortest[marked.start()], longest = counts.longest[marked.start()];
    if (shortest >= min && longest <= max) return rules_.dfa(dfa);
    if (counts.no_gaps) {
      return rules_.counted(std::make_shared<const Dfa>(std::move(marked)), min, max);
    }
    Dfa bounds = TRY(lengths(min, std::min(max, longest)));
    return rules_.dfa(TRY(combine(dfa, bounds, DfaOperation::kIntersection, budget_)));
  }

  // Strings of min to max characters.
  Result<Dfa> lengths(uint64_t min, uint64_t max) {
    std::string upper = max < Shape::kUnbounded ? fmt::format("{}", max) : std::string();
    std::string pattern = fmt::format("(?s).{{{},{}}}", min, upper);
    return dfa_of_regex(pattern, budget_, CharacterCoding::kJson);
  }

  Result<ExpressionId> number_of(const Shape& s) {
    const NumberBounds& b = s.bounds;
    if (!b.min && !b.max && !b.multiple_of) return b.integer ? integer_ : number_;
    return rules_.dfa(TRY(schemas_.numbers(b)));
  }

  Result<ExpressionId> array_of(const Shape& s) {
    if (s.min_items > s.max_items) return rules_.never();
    size_t prefix = 0;
    for (const Json* node : s.arrays) {
      for (const char* key : {"prefixItems", "items"}) {
        if (node->contains(key) && (*node)[key].is_array()) {
          prefix = std::max(prefix, (*node)[key].size());
        }
      }
    }
    prefix = std::min<uint64_t>(prefix, s.max_items);
    ExpressionId item = TRY(value_of(schemas_.item(s, prefix)));
    uint32_t min = bound(s.min_items), max = bound(s.max_items);
    uint32_t done = static_cast<uint32_t>(prefix);
    uint32_t least = min > done ? min - done : 0;
    uint32_t most = max == Rules::kUnbounded ? max : max - done;
    ExpressionId more = rules_.sequence({comma_, item});
    ExpressionId tail;
    if (prefix > 0) {
      tail = rules_.repeat(more, least, most);
    } else if (most == 0) {
      tail = rules_.empty();
    } else {
      uint32_t others = most == Rules::kUnbounded ? most : most - 1;
      tail = rules_.sequence({item, rules_.repeat(more, least > 0 ? least - 1 : 0, others)});
      if (least == 0) tail = rules_.optional(tail);
    }
    for (size_t i = prefix; i-- > 0;) {
      ExpressionId value = TRY(value_of(schemas_.item(s, i)));
      tail = rules_.sequence({i > 0 ? comma_ : rules_.empty(), value, tail});
      if (i >= min) tail = rules_.optional(tail);
    }
    return rules_.sequence({rules_.text("["), space_, tail, space_, rules_.text("]")});
  }

  Result<std::vector<Property>> properties_of(const Shape& s) {
    std::vector<Property> properties;
    std::map<std::string, size_t> index;
    auto add = [&](const std::string& name) {
      if (index.emplace(name, properties.size()).second) properties.push_back({.name = name});
    };
    for (const Json* node : s.objects) {
      if (!node->contains("properties")) continue;
      for (const auto& [name, schema] : (*node)["properties"].items()) add(name);
    }
    for (const std::string& name : s.required) {
      add(name);
      properties[index[name]].required = true;
    }
    for (Property& p : properties) {
      Conjunction nodes = TRY(schemas_.property(s, p.name));
      bool allowed =
          s.property_names.empty() || TRY(schemas_.accepts(s.property_names, Json(p.name)));
      bool possible = allowed && TRY(schemas_.satisfiable(nodes, 0));
      ExpressionId value = possible ? TRY(value_of(nodes)) : rules_.never();
      p.member = rules_.sequence({rules_.text(json_quoted(p.name)), colon_, value});
    }
    return properties;
  }

  // Whether the object admits only keys that its keywords mention.
  bool is_closed(const Shape& s, const std::vector<Property>& properties) const {
    if (!options_.disable_additional_properties || !s.property_names.empty()) return false;
    auto any = [&](auto is_it) { return std::ranges::any_of(s.objects, is_it); };
    bool mentions_others = any([](const Json* node) {
      return node->contains("additionalProperties") ||
             node->value("unevaluatedProperties", Json()) == true;
    });
    bool names = any([](const Json* node) { return node->contains("properties"); });
    if (!names || mentions_others) return false;
    auto possible = std::ranges::count_if(properties, [&](const Property& p) {
      return rules_[p.member].kind != Rules::Kind::kNever;
    });
    return s.min_properties <= static_cast<uint64_t>(possible);
  }

  // Partitions the names that are not in `properties` by the patterns that they match.
  Result<std::vector<KeyClass>> key_classes(const Shape& s,
                                            const std::vector<Property>& properties) {
    std::vector<KeyClass> classes;
    std::vector<std::string> names;
    for (const Property& p : properties) {
      std::string quoted = json_quoted(p.name);
      names.push_back(quoted.substr(1, quoted.size() - 2));
    }
    std::shared_ptr<const Dfa> keys = schemas_.all_texts();
    if (!names.empty()) {
      Dfa named = TRY(dfa_of_texts(std::move(names), budget_));
      keys = std::make_shared<Dfa>(TRY(combine(*keys, named, DfaOperation::kDifference, budget_)));
    }
    if (!s.property_names.empty()) {
      std::vector<Shape> shapes = TRY(schemas_.expand(s.property_names));
      keys = TRY(keys_that_are(shapes, *keys));
    }
    classes.push_back({.keys = keys, .value = {}});
    for (const Json* node : s.objects) TRY(split_by(*node, classes));
    if (is_closed(s, properties)) {
      std::erase_if(classes, [](const KeyClass& c) { return c.value.empty(); });
    }
    std::erase_if(classes, [](const KeyClass& c) { return c.keys->empty(); });
    std::vector<KeyClass> possible;
    for (KeyClass& c : classes) {
      if (!TRY(schemas_.satisfiable(c.value, 0))) continue;
      ExpressionId value = TRY(value_of(c.value));
      c.member = rules_.sequence(
          {rules_.text("\""), rules_.dfa(c.keys), rules_.text("\""), colon_, value});
      possible.push_back(std::move(c));
    }
    return possible;
  }

  Result<std::shared_ptr<const Dfa>> keys_that_are(const std::vector<Shape>& shapes,
                                                   const Dfa& keys) {
    Dfa all;
    for (const Shape& shape : shapes) {
      if (!shape.string) continue;
      Dfa some = keys;
      if (shape.values) {
        std::vector<std::string> texts;
        for (const Json& value : *shape.values) {
          if (!value.is_string()) continue;
          std::string quoted = json_quoted(value.get<std::string>());
          texts.push_back(quoted.substr(1, quoted.size() - 2));
        }
        Dfa named = TRY(dfa_of_texts(std::move(texts), budget_));
        some = TRY(combine(some, named, DfaOperation::kIntersection, budget_));
      }
      for (const auto& pattern : shape.patterns) {
        some = TRY(combine(some, *pattern, DfaOperation::kIntersection, budget_));
      }
      if (shape.min_length > 0 || shape.max_length < Shape::kUnbounded) {
        Dfa lengths = TRY(this->lengths(shape.min_length, shape.max_length));
        some = TRY(combine(some, lengths, DfaOperation::kIntersection, budget_));
      }
      all = TRY(combine(all, some, DfaOperation::kUnion, budget_));
    }
    return std::make_shared<const Dfa>(std::move(all));
  }

  Status split_by(const Json& node, std::vector<KeyClass>& classes) {
    const Json* patterns =
        node.contains("patternProperties") ? &node["patternProperties"] : nullptr;
    size_t count = patterns == nullptr ? 0 : patterns->size();
    std::vector<std::vector<bool>> matched(classes.size(), std::vector<bool>(count, false));
    size_t k = 0;
    auto item = patterns == nullptr ? Json::const_iterator() : patterns->begin();
    for (size_t i = 0; i < count; ++i, ++item) {
      auto dfa = TRY(schemas_.pattern_dfa(item.key()));
      for (size_t c = 0, end = classes.size(); c < end; ++c) {
        Dfa in = TRY(combine(*classes[c].keys, *dfa, DfaOperation::kIntersection, budget_));
        if (in.empty()) continue;
        Dfa out = TRY(combine(*classes[c].keys, *dfa, DfaOperation::kDifference, budget_));
        KeyClass inside = classes[c];
        inside.keys = std::make_shared<const Dfa>(std::move(in));
        inside.value.push_back(&*item);
        std::vector<bool> flags = matched[c];
        flags[i] = true;
        classes[c].keys = std::make_shared<const Dfa>(std::move(out));
        classes.push_back(std::move(inside));
        matched.push_back(std::move(flags));
      }
      TRY(Budget::fits(schemas_.path(&node) + "/patternProperties (combinations)", classes.size(),
                       kKeyClassesMax));
    }
    if (!node.contains("additionalProperties")) return {};
    for (KeyClass& c : classes) {
      const std::vector<bool>& flags = matched[k++];
      bool any = std::find(flags.begin(), flags.end(), true) != flags.end();
      if (!any) c.value.push_back(&node["additionalProperties"]);
    }
    return {};
  }

  Result<ExpressionId> object_of(const Shape& s) {
    std::vector<Property> properties = TRY(properties_of(s));
    std::vector<KeyClass> classes = TRY(key_classes(s, properties));
    std::vector<ExpressionId> others;
    for (const KeyClass& c : classes) others.push_back(c.member);
    ExpressionId other = rules_.choice(others);
    std::erase_if(properties, [&](const Property& p) {
      return !p.required && rules_[p.member].kind == Rules::Kind::kNever;
    });
    auto required = std::count_if(properties.begin(), properties.end(),
                                  [](const Property& p) { return p.required; });
    bool bounded = s.max_properties < properties.size() ||
                   (s.max_properties < Shape::kUnbounded && !classes.empty()) ||
                   s.min_properties > static_cast<uint64_t>(required);
    ExpressionId members = bounded ? TRY(counted_members(s, properties, other, classes.empty()))
                                   : plain_members(properties, other);
    return rules_.sequence({rules_.text("{"), space_, members, space_, rules_.text("}")});
  }

  // Builds from the last property to the first. `rest` is one or more members, from this property
  // on; `after` is what may follow a member. One comma precedes all members that may follow it, so
  // there is one alternative between two members instead of one per member.
  ExpressionId plain_members(const std::vector<Property>& properties, ExpressionId other) {
    bool needed = false;
    ExpressionId rest = rules_.sequence(
        {other, rules_.repeat(rules_.sequence({comma_, other}), 0, Rules::kUnbounded)});
    for (size_t i = properties.size(); i-- > 0;) {
      const Property& p = properties[i];
      ExpressionId after = rules_.sequence({comma_, rest});
      if (!needed) after = rules_.optional(after);
      ExpressionId here = rules_.sequence({p.member, after});
      rest = p.required ? here : rules_.choice({here, rest});
      needed = needed || p.required;
    }
    return needed ? rest : rules_.optional(rest);
  }

  // What may follow for each number of members so far. An unnamed member may repeat a name, so only
  // the first one surely counts.
  Result<ExpressionId> counted_members(const Shape& s, const std::vector<Property>& properties,
                                       ExpressionId other, bool closed) {
    size_t n = properties.size();
    size_t cap = std::min<uint64_t>(
        n,
        std::max(s.min_properties, s.max_properties == Shape::kUnbounded ? 0 : s.max_properties));
    TRY(Budget::fits("an object with a bounded number of properties", (n + 1) * (cap + 1),
                     kCountedPropertiesMax));
    if (!closed && s.min_properties > n + 1) {
      return unsupported("{}: minProperties {} with names that are not given cannot be enforced",
                         s.objects.empty() ? "#" : schemas_.path(s.objects[0]), s.min_properties);
    }
    std::vector<ExpressionId> after(n + 1), next(n + 1);  // by number of members so far
    auto others_after = [&](size_t count) {
      if (count > s.max_properties) return rules_.never();
      uint64_t missing = s.min_properties > count ? s.min_properties - count : 0;
      if (missing > 1) return rules_.never();
      uint32_t most = bound(s.max_properties == Shape::kUnbounded ? s.max_properties
                                                                  : s.max_properties - count);
      if (missing > most) return rules_.never();
      ExpressionId member = rules_.sequence({count > 0 ? comma_ : rules_.empty(), other});
      if (count > 0) return rules_.repeat(member, static_cast<uint32_t>(missing), most);
      if (most == 0) return rules_.empty();
      ExpressionId more = rules_.repeat(rules_.sequence({comma_, other}), 0,
                                        most == Rules::kUnbounded ? most : most - 1);
      ExpressionId some = rules_.sequence({member, more});
      return missing > 0 ? some : rules_.optional(some);
    };
    for (size_t count = 0; count <= n; ++count) after[count] = others_after(count);
    for (size_t i = n; i-- > 0;) {
      const Property& p = properties[i];
      for (size_t count = 0; count <= i; ++count) {
        ExpressionId taken =
            rules_.sequence({count > 0 ? comma_ : rules_.empty(), p.member, after[count + 1]});
        next[count] = p.required ? taken : rules_.choice({taken, after[count]});
      }
      std::copy_n(next.begin(), i + 1, after.begin());
    }
    return after[0];
  }

  JsonSchemaOptions options_;
  Budget& budget_;
  Schemas schemas_;
  Rules rules_;
  ExpressionId space_ = 0, comma_ = 0, colon_ = 0, number_ = 0, integer_ = 0;
  std::map<Conjunction, ExpressionId> values_;
  std::map<std::tuple<std::vector<std::shared_ptr<const Dfa>>, uint32_t, uint32_t>, ExpressionId>
      strings_;
  std::deque<std::pair<RuleId, std::vector<Shape>>> waiting_;
};

}  // namespace

Result<Rules> rules_of_json_schema(const Json& schema, const JsonSchemaOptions& options,
                                   Budget& budget) {
  return Emitter(schema, options, budget).run();
}

}  // namespace banyan
