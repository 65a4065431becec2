// Normalizes JSON schemas: a conjunction of schema nodes becomes a list of alternative shapes of a
// value. References are resolved, allOf is merged, anyOf and oneOf are multiplied out.
//
// Children stay unexpanded conjunctions until requested, so recursive schemas stay finite. One
// Schemas per compilation, one thread. Nodes point into the document, which must outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "banyan/grammar.h"
#include "base/json.h"
#include "grammar/budget.h"
#include "grammar/regex/dfa.h"
#include "grammar/schema/numbers.h"

namespace banyan {

// Schema nodes that must all hold. Their order determines the order of properties.
using Conjunction = std::vector<const Json*>;

struct Shape {
  static constexpr uint64_t kUnbounded = UINT32_MAX;

  bool null = true, boolean = true, number = true, string = true, array = true, object = true;
  NumberBounds bounds;
  uint64_t min_length = 0, max_length = kUnbounded;
  std::vector<std::shared_ptr<const Dfa>> patterns;  // of the contents between the quotes
  uint64_t min_items = 0, max_items = kUnbounded;
  uint64_t min_properties = 0, max_properties = kUnbounded;
  std::vector<const Json*> arrays;   // nodes whose items and prefixItems apply
  std::vector<const Json*> objects;  // nodes whose properties etc. apply
  std::vector<const Json*> property_names;
  std::vector<std::string> required;
  std::optional<std::vector<Json>> values;  // from const and enum

  bool scalar() const { return values || (!array && !object); }
  void keep_only_values(const std::vector<Json>& others);
};

class Schemas {
 public:
  Schemas(const Json& document, const JsonSchemaOptions& options, Budget& budget);

  Status index();  // call first: collects $id and $anchor
  const Json& document() const { return document_; }

  Result<std::vector<Shape>> expand(const Conjunction& nodes);
  // The schemas of item `i`, or of property `name`, of a value of this shape.
  Conjunction item(const Shape& shape, size_t i) const;
  Result<Conjunction> property(const Shape& shape, const std::string& name);
  // May return true for an unsatisfiable shape, never false for a satisfiable one.
  Result<bool> satisfiable(const Shape& shape, int depth = 0);
  Result<bool> satisfiable(const Conjunction& nodes, int depth);
  Result<bool> accepts(const Conjunction& nodes, const Json& value, int depth = 0);
  Result<bool> accepts(const Shape& shape, const Json& value, int depth = 0);
  // The strings allowed by the patterns and lengths; null without patterns.
  Result<std::shared_ptr<const Dfa>> string_dfa(const Shape& shape);
  Result<std::shared_ptr<const Dfa>> numbers(const NumberBounds& bounds);
  // The string contents in which a search for `pattern` succeeds.
  Result<std::shared_ptr<const Dfa>> pattern_dfa(const std::string& pattern);
  // All string contents, in canonical spelling.
  const std::shared_ptr<const Dfa>& all_texts();

  std::string path(const Json* node) const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Group {
    const Json* node;  // the list of branches
    bool one_of;
  };
  struct Negation {
    const Json* node;  // the node with the keyword
    const Json* schema;
  };
  struct Partial {
    Shape shape;
    std::vector<const Json*> todo, seen;
    std::vector<Group> groups;
    std::vector<Negation> negations;
  };

  Status index(const Json& node, const std::string& path, int depth);
  Status process(Partial partial, std::vector<Shape>& shapes, int depth);
  Status process_group(Partial partial, std::vector<Shape>& shapes, int depth);
  Status absorb(const Json& node, Partial& partial);
  Status absorb_keyword(const Json& node, const std::string& key, const Json& value, Partial& p);
  Status absorb_type(const Json& node, const Json& value, Shape& shape);
  Status absorb_not(const Json& node, const Json& value, Partial& p);
  Status apply_negations(Partial& partial);
  Status absorb_number(const Json& node, const std::string& key, const Json& value, Shape& shape);
  Status absorb_string(const Json& node, const std::string& key, const Json& value, Shape& shape);
  Status absorb_format(const Json& node, const Json& value, Shape& shape);
  Status refuse(const Json& node, const std::string& key, bool relaxable);
  Status spend_search(const Json& object);
  Result<const Json*> resolve(const Json& node, const std::string& reference);
  Result<uint64_t> count(const Json& node, const std::string& key, const Json& value) const;
  Status fit_pairs(size_t a, size_t b);
  Status check_disjoint(const Json& node, const std::vector<std::vector<Shape>>& branches);
  Result<bool> accepts_object(const Shape& shape, const Json& value, int depth);

  const Json& document_;
  JsonSchemaOptions options_;
  Budget& budget_;
  bool references_stand_alone_ = false;  // up to draft 7, $ref hides its siblings
  std::unordered_map<const Json*, std::string> paths_;
  std::map<std::string, const Json*> ids_;  // "#anchor" and $id
  std::map<std::string, std::shared_ptr<const Dfa>> patterns_, formats_, numbers_;
  std::shared_ptr<const Dfa> all_texts_;
  std::vector<std::string> notes_;
  std::set<std::string> noted_;
  size_t pairs_ = 0;  // pairs of values compared so far
  size_t shapes_made_ = 0;
  int negating_ = 0;  // depth of negation being evaluated
};

Shape merge(const Shape& a, const Shape& b);

// The number of characters of a string's contents in canonical spelling.
uint64_t characters_of(std::string_view text);

}  // namespace banyan
