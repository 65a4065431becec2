// `tools`, `tool_choice` and `parallel_tool_calls` of a chat, and the grammar that a chat's answer
// follows: what the request constrains, calls of its tools, and the reasoning before both.
//
// Stateless; safe from many threads at once.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "banyan/grammar.h"
#include "llm/messages/message_parser.h"
#include "server/fields/request.h"

namespace banyan {

using ToolNames = std::set<std::string, std::less<>>;

struct ToolRequest {
  enum class Choice : uint8_t { kNone, kAuto, kRequired };

  std::vector<Tool> tools;  // those that may be called
  Choice choice = Choice::kNone;
  bool parallel = true;
  bool limited = false;  // to some of those that the template shows
  // Of OpenAI's custom tools (server/openai/custom_tools.h): their names, and all tools in the form
  // that templates know, null where the request's own is that.
  ToolNames custom = {};
  Json shown = {};

  bool may_call() const { return choice != Choice::kNone; }
};

ToolRequest read_tools(RequestFields& fields);
// `tools` alone.
std::vector<Tool> read_tool_list(RequestFields& fields);

// What an answer that begins at `start` must follow, if anything. `asked` is the request's own
// constraint, if any.
Result<std::optional<GrammarSource>> chat_grammar(const ChatSyntax& syntax, ReasoningStart start,
                                                  const ToolRequest& tools,
                                                  const std::optional<GrammarSource>& asked);

}  // namespace banyan
