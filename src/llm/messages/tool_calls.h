// How models write calls of tools: a registry of formats, one entry each, and what follows from an
// entry: the grammar of its calls (here) and the parser of them (llm/messages/tool_call_parser.h).
//
// A format is data: the texts that stand before, between and after the parts of a call. Three
// styles cover what models write today, and OpenAI's harmony, which is messages rather than marks,
// has code of its own (llm/messages/harmony.h).
//
// Stateless and immutable; safe from many threads.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/grammar.h"
#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

struct ToolCallFormat {
  enum class Style : uint8_t {
    kEnvelope,  // {"name": NAME, "arguments": {...}}
    kNamed,     // NAME, then the arguments as JSON
    kTagged,    // NAME, then each argument between tags
    kHarmony,
  };
  struct Parameter {  // kTagged: begin KEY after_key VALUE end
    std::string_view begin, after_key, end;
  };

  std::string_view name;
  std::array<std::string_view, 5> aliases;  // other engines' names for it, and models'
  // Texts that only templates of this format have, all of them; for `auto`.
  std::array<std::string_view, 2> in_template;
  Style style = Style::kEnvelope;
  // A call. Line breaks may be left out when reading and writing.
  std::string_view begin, before_name, after_name, close, end;
  Parameter parameter = {};
  std::string_view arguments = "arguments";               // kEnvelope: the key
  std::string_view section_begin = {}, section_end = {};  // around all calls; empty: nothing
  bool bare = false;      // a call may begin without its mark, at the beginning of an answer
  bool numbered = false;  // the name is followed by a colon and the call's number
  bool special = false;   // the marks are special tokens
};

std::span<const ToolCallFormat> tool_call_formats();
// By name or alias, "auto" (what `chat_template` shows, nullptr if nothing) or "none" (nullptr).
Result<const ToolCallFormat*> find_tool_call_format(std::string_view name,
                                                    std::string_view chat_template);

struct Tool {
  std::string name;
  Json parameters;  // a JSON schema
  bool strict = false;
};

struct ToolRules {
  bool required = false;  // the answer is calls; otherwise text, in which a mark starts one
  bool parallel = true;   // more than one call
};

// The grammar of an answer that may call `tools`, as a format of structural tags
// (Grammar::from_structural_tag). Unless `required`, tools that are not strict take any object.
// kUnsupported names what a format cannot write by a grammar.
Result<Json> tool_call_grammar(const ToolCallFormat& format, std::span<const Tool> tools,
                               const ToolRules& rules);

// What is asked for, as a format of structural tags, so that it can be part of a larger one.
Result<Json> structural_format(const GrammarSource& source);

}  // namespace banyan
