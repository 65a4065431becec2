// What a piece of a model's output adds to the assistant's message.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace banyan {

// Part of a call: the first one of an index carries the name, later ones more of the arguments.
struct ToolCallDelta {
  size_t index = 0;
  std::string id;    // as the model wrote it; usually empty
  std::string name;  // empty but in the first
  std::string arguments;
};

struct MessageDelta {
  std::string reasoning, content;
  std::vector<ToolCallDelta> calls;

  // Puts what comes next to what there is: parts of a call become one.
  void add(MessageDelta more);
  bool empty() const { return reasoning.empty() && content.empty() && calls.empty(); }
};

}  // namespace banyan
