// How models write tool calls: a registry with one entry per format. An entry yields the grammar of
// its calls (here) and drives their parser (llm/messages/tool_call_parser.h).
//
// A format is data: the texts before, between and after the parts of a call. Four styles cover
// current models. OpenAI's harmony, which uses messages instead of markers, has its own code
// (llm/messages/harmony.h).
//
// Immutable; thread-safe.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/grammar.h"
#include "banyan/status.h"
#include "base/json.h"
#include "llm/messages/literal_reader.h"

namespace banyan {

struct ToolCallFormat {
  enum class Style : uint8_t {
    kEnvelope,  // {"name": NAME, "arguments": {...}}
    kNamed,     // NAME, then the arguments as JSON
    kTagged,    // NAME, then each argument between tags
    kLiteral,   // NAME, then the arguments as literals
    kHarmony,
  };
  struct Parameter {  // kTagged: begin KEY after_key VALUE end
    std::string_view begin, after_key, end;
    // Between after_key and a value that is a string, or another; empty: the schema says which.
    std::string_view if_string = {}, if_other = {};
    // The value ends with end KEY after_key. Members of objects, and items of lists with the key
    // "item", are written in the same way.
    bool nested = false;
  };

  struct List {  // of all calls, between the section's markers
    std::string_view open = {}, separator = {}, close = {};
  };

  std::string_view name;
  std::array<std::string_view, 7> aliases;  // other engines' names, and model names
  // Texts that together identify templates of this format, for "auto".
  std::array<std::string_view, 2> in_template;
  Style style = Style::kEnvelope;
  // The texts of a call. Line breaks in them are optional, in parsing and in the grammar.
  std::string_view begin, before_name, after_name, close, end;
  Parameter parameter = {};
  LiteralSyntax literals = {};                            // kLiteral
  std::string_view arguments = "arguments";               // kEnvelope: the key
  std::string_view section_begin = {}, section_end = {};  // around all calls; empty: none
  std::string_view other_section_begin = {};  // that some models write; read, but never forced
  List list = {};         // without a separator: none. The calls in a list have no begin and end
  bool bare = false;      // a call or list at the start of an answer may omit its start marker
  bool numbered = false;  // the name is followed by a colon and the call's index
  bool special = false;   // the markers are special tokens

  bool is_list() const { return !list.separator.empty(); }
};

std::span<const ToolCallFormat> tool_call_formats();
// By name or alias; "auto": detected in `chat_template`, nullptr if none; "none": nullptr.
Result<const ToolCallFormat*> find_tool_call_format(std::string_view name,
                                                    std::string_view chat_template);

struct Tool {
  std::string name;
  Json parameters;  // a JSON schema
  bool strict = false;
};

struct ToolRules {
  bool required = false;  // only calls; otherwise text, in which a marker starts a call
  bool parallel = true;   // several calls are allowed
};

// The grammar of an answer that may call `tools`, as a structural tag format
// (Grammar::from_structural_tag). Unless `required`, tools that are not strict accept any object.
// kUnsupported names what the format's grammar cannot express.
Result<Json> tool_call_grammar(const ToolCallFormat& format, std::span<const Tool> tools,
                               const ToolRules& rules);

// A grammar as a structural tag format, so that it can be embedded in a larger one.
Result<Json> structural_format(const GrammarSource& source);

}  // namespace banyan
