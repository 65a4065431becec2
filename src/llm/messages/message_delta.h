// The part of an assistant message that a piece of output adds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace banyan {

// Part of a tool call: the first of an index carries the name, later ones more arguments.
struct ToolCallDelta {
  size_t index = 0;
  std::string id;    // as written by the model; usually empty
  std::string name;  // only in the first part
  std::string arguments;
};

struct MessageDelta {
  std::string reasoning, content;
  std::vector<ToolCallDelta> calls;

  // Appends `more`; parts of the same call are merged.
  void add(MessageDelta more);
  bool empty() const { return reasoning.empty() && content.empty() && calls.empty(); }
};

}  // namespace banyan
