#include "llm/messages/message_delta.h"

#include <utility>

namespace banyan {

void MessageDelta::add(MessageDelta more) {
  reasoning += more.reasoning;
  content += more.content;
  for (ToolCallDelta& call : more.calls) {
    if (call.index < calls.size()) {
      calls[call.index].arguments += call.arguments;
    } else {
      calls.push_back(std::move(call));
    }
  }
}

}  // namespace banyan
