// Reads what a model wrote in pieces, for tests of tool calls and reasoning.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "banyan/grammar.h"
#include "llm/messages/message_parser.h"
#include "llm/messages/tool_calls.h"

namespace banyan::test::messages {

inline const Json kSchema = Json::parse(R"({"type":"object","properties":{
    "city":{"type":"string"},"days":{"type":"integer"},"unit":{"enum":["C","F"]}},
    "required":["city","days"],"additionalProperties":false})");

inline std::vector<Tool> tools(bool strict = false) {
  return {{"get_weather", kSchema, strict}, {"now", Json::parse(R"({"type":"object"})"), strict}};
}

struct Read {
  std::string reasoning, content;
  std::vector<ToolCallDelta> calls;
  size_t pieces = 0;  // of arguments

  void add(const MessageDelta& delta) {
    reasoning += delta.reasoning;
    content += delta.content;
    for (const ToolCallDelta& call : delta.calls) {
      if (call.index >= calls.size()) {
        EXPECT_FALSE(call.name.empty());
        calls.push_back(call);
      } else {
        EXPECT_TRUE(call.name.empty());
        EXPECT_EQ(call.index, calls.size() - 1);
        calls.back().arguments += call.arguments;
      }
      pieces += call.arguments.empty() ? 0 : 1;
    }
  }
  Json arguments(size_t i) const { return Json::parse(calls.at(i).arguments, nullptr, false); }
};

inline Read read(const MessageParserOptions& options, std::string_view text, size_t piece_bytes) {
  MessageParser parser(options);
  Read all;
  for (size_t i = 0; i < text.size(); i += piece_bytes) {
    MessageDelta delta;
    parser.push(text.substr(i, piece_bytes), delta);
    all.add(delta);
  }
  MessageDelta delta;
  parser.finish(delta);
  all.add(delta);
  EXPECT_EQ(parser.calls(), all.calls.size());
  return all;
}

inline MessageParserOptions with_tools(const std::string& format) {
  return {.syntax = {.tool_calls = find_tool_call_format(format, {}).value()}, .tools = tools()};
}

inline Grammar grammar_of(const Json& format) {
  Json tag = {{"type", "structural_tag"}, {"format", format}};
  auto grammar = Grammar::from_structural_tag(tag.dump(), {.flexible_whitespace = true});
  EXPECT_TRUE(grammar) << grammar.error().message << tag.dump();
  return grammar.value();
}

}  // namespace banyan::test::messages
