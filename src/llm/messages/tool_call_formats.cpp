// The list of formats. tests/unit/llm/tool_calls_test.cpp covers every entry.
#include "llm/messages/marks.h"
#include "llm/messages/tool_calls.h"

namespace banyan {
namespace {

using Style = ToolCallFormat::Style;

// Formats with rarer markers come first, since "auto" takes the first match.
constexpr auto kToolCallFormats = std::to_array<ToolCallFormat>({
    {.name = "gpt-oss",
     .aliases = {"harmony", "openai"},
     .in_template = {"<|channel|>", "<|start|>assistant"},
     .style = Style::kHarmony,
     .special = true},
    {.name = "kimi_k2",
     .aliases = {"kimi"},
     .in_template = {"<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"},
     .style = Style::kNamed,
     .begin = "<|tool_call_begin|>",
     .before_name = "functions.",
     .after_name = "<|tool_call_argument_begin|>",
     .end = "<|tool_call_end|>",
     .section_begin = "<|tool_calls_section_begin|>",
     .section_end = "<|tool_calls_section_end|>",
     .numbered = true,
     .special = true},
    {.name = "deepseekv3",
     .aliases = {"deepseek_v3", "deepseek-r1"},
     .in_template = {"<｜tool▁call▁begin｜>", "```json"},
     .style = Style::kNamed,
     .begin = "<｜tool▁call▁begin｜>",
     .before_name = "function<｜tool▁sep｜>",
     .after_name = "\n```json\n",
     .close = "\n```",
     .end = "<｜tool▁call▁end｜>",
     .section_begin = "<｜tool▁calls▁begin｜>",
     .section_end = "<｜tool▁calls▁end｜>",
     .special = true},
    {.name = "deepseekv31",
     .aliases = {"deepseek_v31"},
     .in_template = {"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"},
     .style = Style::kNamed,
     .begin = "<｜tool▁call▁begin｜>",
     .after_name = "<｜tool▁sep｜>",
     .end = "<｜tool▁call▁end｜>",
     .section_begin = "<｜tool▁calls▁begin｜>",
     .section_end = "<｜tool▁calls▁end｜>",
     .special = true},
    {.name = "qwen3_coder",
     .aliases = {"qwen3coder", "qwen3_xml"},
     .in_template = {"<tool_call>", "<function="},
     .style = Style::kTagged,
     .begin = "<tool_call>",
     .before_name = "\n<function=",
     .after_name = ">\n",
     .close = "</function>\n",
     .end = "</tool_call>",
     .parameter = {"<parameter=", ">\n", "\n</parameter>\n"}},
    {.name = "glm45",
     .aliases = {"glm", "glm4_moe", "glm47", "ling3"},
     .in_template = {"<tool_call>", "<arg_key>"},
     .style = Style::kTagged,
     .begin = "<tool_call>",
     .after_name = "\n",
     .end = "</tool_call>",
     .parameter = {"<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"}},
    {.name = "minimax-m2",
     .aliases = {"minimax_m2", "minimax"},
     .in_template = {"<minimax:tool_call>", "<invoke name="},
     .style = Style::kTagged,
     .begin = "<invoke name=\"",
     .after_name = "\">\n",
     .end = "</invoke>",
     .parameter = {"<parameter name=\"", "\">", "</parameter>\n"},
     .section_begin = "<minimax:tool_call>",
     .section_end = "</minimax:tool_call>"},
    {.name = "mistral",
     .in_template = {"[TOOL_CALLS]", "[ARGS]"},
     .style = Style::kNamed,
     .begin = "[TOOL_CALLS]",
     .after_name = "[ARGS]",
     .special = true},
    {.name = "qwen",
     .aliases = {"qwen25", "qwen3", "hermes"},
     .in_template = {"<tool_call>", "</tool_call>"},
     .begin = "<tool_call>",
     .before_name = "\n",
     .close = "\n",
     .end = "</tool_call>"},
    {.name = "llama3",
     .aliases = {"llama3_json", "llama4_json"},
     .in_template = {"\"parameters\": ", "<|eot_id|>"},
     .begin = "<|python_tag|>",
     .arguments = "parameters",
     .bare = true,
     .special = true},
});

}  // namespace

std::span<const ToolCallFormat> tool_call_formats() {
  return kToolCallFormats;
}

Result<const ToolCallFormat*> find_tool_call_format(std::string_view name,
                                                    std::string_view chat_template) {
  return find_format<ToolCallFormat>(kToolCallFormats, name, chat_template, "tool calls");
}

}  // namespace banyan
