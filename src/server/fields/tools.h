// Reads `tools`, `tool_choice` and `parallel_tool_calls` of a chat. Builds the grammar of the
// answer: reasoning, then tool calls or the request's own constraint.
//
// Stateless; thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/grammar.h"
#include "llm/messages/message_parser.h"
#include "server/fields/request.h"

namespace banyan {

using ToolNames = std::set<std::string, std::less<>>;

struct ToolRequest {
  enum class Choice : uint8_t { kNone, kAuto, kRequired };

  std::vector<Tool> tools;  // the callable tools
  Choice choice = Choice::kNone;
  bool parallel = true;
  bool limited = false;  // to a subset of the tools shown in the template
  // OpenAI's custom tools (server/openai/custom_tools.h): their names, and all tools in the form
  // that templates expect; null if the request's list has that form already.
  ToolNames custom = {};
  Json shown = {};
  // What the model is not offered, although the request asks for it: reported in the answer.
  std::vector<std::string> warnings = {};

  bool may_call() const { return choice != Choice::kNone; }
};

// Such a warning about what only the servers of the API's owner can run.
std::string cannot_run(const std::string& place, std::string_view type);

ToolRequest read_tools(RequestFields& fields);
// Only `tools`.
std::vector<Tool> read_tool_list(RequestFields& fields);

// The grammar of an answer that begins at `start`, if any. `asked` is the request's own constraint,
// if any.
Result<std::optional<GrammarSource>> chat_grammar(const ChatSyntax& syntax, ReasoningStart start,
                                                  const ToolRequest& tools,
                                                  const std::optional<GrammarSource>& asked);

}  // namespace banyan
