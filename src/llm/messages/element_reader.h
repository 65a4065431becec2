// Reads an argument that is written as nested elements (ToolCallFormat::Parameter::nested): text,
// or the members of an object or a list between tags of their own.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "llm/messages/argument_schema.h"

namespace banyan {

struct ToolCallFormat;

// The value ends at `value`, and what follows its tag begins at `next`.
struct ElementEnd {
  size_t value = 0, next = 0;
};

// Finds the end of one argument while it arrives. One per argument; belongs to one thread.
class ElementExtent {
 public:
  // `text`: all that has followed the argument's opening tag. Nothing if more is needed. The end of
  // the call ends the argument too.
  std::optional<ElementEnd> find(const ToolCallFormat& format, std::string_view text);

 private:
  size_t searched_ = 0;
  int depth_ = 0;  // of open tags
};

// The value of an argument. Where tags do not match, or are nested too deeply, they are text.
Json element_value(const ToolCallFormat& format, std::string_view text,
                   const ArgumentSchema& schema);

}  // namespace banyan
