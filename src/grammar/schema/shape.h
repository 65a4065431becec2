// JSON schemas made plain: a conjunction of schema nodes becomes a list of shapes, any of which a
// value may have. References are followed, allOf merged, anyOf and oneOf multiplied out.
//
// Children stay conjunctions of nodes until somebody asks, so recursive schemas are finite: there
// are only so many nodes. One Schemas per compilation, one thread; nodes point into the document.
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

// Schema nodes that all hold. Their order is that of properties.
using Conjunction = std::vector<const Json*>;

struct Shape {
  static constexpr uint64_t kUnbounded = UINT32_MAX;

  bool null = true, boolean = true, number = true, string = true, array = true, object = true;
  NumberBounds bounds;
  uint64_t min_length = 0, max_length = kUnbounded;
  std::vector<std::shared_ptr<const Dfa>> patterns;  // of what stands between the quotes
  uint64_t min_items = 0, max_items = kUnbounded;
  uint64_t min_properties = 0, max_properties = kUnbounded;
  std::vector<const Json*> arrays;   // nodes whose items and prefixItems hold
  std::vector<const Json*> objects;  // nodes whose properties and so on hold
  std::vector<const Json*> property_names;
  std::vector<std::string> required;
  std::optional<std::vector<Json>> values;  // of const and enum

  bool scalar() const { return values || (!array && !object); }
  void keep_only_values(const std::vector<Json>& others);
};

class Schemas {
 public:
  Schemas(const Json& document, const JsonSchemaOptions& options, Budget& budget);

  Status index();  // to be called first: finds $id and $anchor
  const Json& document() const { return document_; }

  Result<std::vector<Shape>> expand(const Conjunction& nodes);
  // The schemas of item `i`, and of property `name`, of a value of this shape.
  Conjunction item(const Shape& shape, size_t i) const;
  Result<Conjunction> property(const Shape& shape, const std::string& name);
  // Errs on the side of true.
  Result<bool> satisfiable(const Shape& shape, int depth = 0);
  Result<bool> satisfiable(const Conjunction& nodes, int depth);
  Result<bool> accepts(const Conjunction& nodes, const Json& value, int depth = 0);
  Result<bool> accepts(const Shape& shape, const Json& value, int depth = 0);
  // All that the patterns and lengths leave: null when there are no patterns.
  Result<std::shared_ptr<const Dfa>> string_dfa(const Shape& shape);
  Result<std::shared_ptr<const Dfa>> numbers(const NumberBounds& bounds);
  // What a search for `pattern` accepts between the quotes of a string.
  Result<std::shared_ptr<const Dfa>> pattern_dfa(const std::string& pattern);
  // All texts, in their one spelling.
  const std::shared_ptr<const Dfa>& all_texts();

  std::string path(const Json* node) const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Group {
    const Json* node;  // the list of branches
    bool one_of;
  };
  struct Negation {
    const Json* node;  // that has it
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
  size_t pairs_ = 0;  // of values that were compared
  size_t shapes_made_ = 0;
  int negating_ = 0;  // negations that are being asked
};

Shape merge(const Shape& a, const Shape& b);

// The number of characters of a text between quotes in its one spelling.
uint64_t characters_of(std::string_view text);

}  // namespace banyan
