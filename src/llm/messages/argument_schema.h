// A tool's schema as parsers use it: the types of values that a format does not mark.
//
// Immutable; thread-safe. The tool's parameters must outlive it.
#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"

namespace banyan {

class ArgumentSchema {
 public:
  // Of all arguments; definitions are looked up in it.
  explicit ArgumentSchema(const Json& parameters) : ArgumentSchema(parameters, &parameters) {}

  ArgumentSchema member(std::string_view key) const;  // of an object
  ArgumentSchema item() const;                        // of a list

  bool is_object() const { return has_type("object"); }
  bool is_list() const { return has_type("array"); }
  // Whether the text `value` is a string: no other type is allowed, or the schema lists it.
  bool is_string(std::string_view value) const;

 private:
  ArgumentSchema(const Json& root, const Json* schema);
  void add(const Json* schema, int depth);
  bool has_type(std::string_view type) const;

  const Json* root_;
  std::vector<const Json*> ways_;  // the schema, or its alternatives; none: anything
};

// `text` as a string or, if it may be something else, as the JSON that it is.
Json value_of_text(std::string_view text, const ArgumentSchema& schema);

}  // namespace banyan
