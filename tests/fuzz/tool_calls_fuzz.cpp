// Model outputs through every parser of tool calls and reasoning: no crash, and the result does not
// depend on how the text is cut.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "llm/messages/message_parser.h"

using namespace banyan;

namespace {

std::string read(const MessageParserOptions& options, std::string_view text, size_t piece_bytes) {
  MessageParser parser(options);
  std::string reasoning, content, calls;
  auto take = [&](MessageDelta delta) {
    reasoning += delta.reasoning;
    content += delta.content;
    for (const ToolCallDelta& call : delta.calls) {
      if (!call.name.empty()) calls += "|" + call.name + "|";
      calls += call.arguments;
    }
  };
  for (size_t i = 0; i < text.size(); i += piece_bytes) {
    MessageDelta delta;
    parser.push(text.substr(i, piece_bytes), delta);
    take(std::move(delta));
  }
  MessageDelta delta;
  parser.finish(delta);
  take(std::move(delta));
  return reasoning + "\x01" + content + "\x01" + calls;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  auto formats = tool_call_formats();
  auto reasonings = reasoning_formats();
  MessageParserOptions options;
  if (size_t i = data[0] % (formats.size() + 1); i > 0) {
    options.syntax.tool_calls = &formats[i - 1];
  }
  if (size_t i = data[1] % (reasonings.size() + 1); i > 0) {
    options.syntax.reasoning = &reasonings[i - 1];
  }
  options.start = static_cast<ReasoningStart>(data[2] % 3);
  options.tools = {{"f", Json::parse(R"({"properties":{"a":{"type":"string"}}})"), false}};
  std::string_view text(reinterpret_cast<const char*>(data) + 3, size - 3);
  std::string whole = read(options, text, text.size() + 1);
  CHECK(read(options, text, 1) == whole, "bytes one by one read otherwise");
  CHECK(read(options, text, 7) == whole, "seven bytes at a time read otherwise");
  return 0;
}
