// Reasoning models: how they mark reasoning, and how it is separated from the answer.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

struct ReasoningFormat {
  std::string_view name;
  std::array<std::string_view, 8> aliases;      // other engines' names, and model names
  std::array<std::string_view, 2> in_template;  // as in ToolCallFormat
  std::string_view begin, end;  // empty: harmony's channels (llm/messages/harmony.h)
  bool always = false;          // output starts inside reasoning even without a marker
  // Around the answer, of models that mark it too.
  std::string_view answer_begin = {}, answer_end = {};
  std::string_view label = {};  // a word after `begin` that does not belong to the reasoning
  bool special = false;         // the markers are special tokens
  bool ends_none = false;       // an answer without reasoning may begin with `end`
};

std::span<const ReasoningFormat> reasoning_formats();
// By name or alias; "auto": detected in `chat_template`, nullptr if none; "none": nullptr.
Result<const ReasoningFormat*> find_reasoning_format(std::string_view name,
                                                     std::string_view chat_template);

// Where an output starts.
enum class ReasoningStart : uint8_t {
  kInside,   // the prompt has opened the reasoning
  kOutside,  // the prompt has closed it, or there is none
  kMark,     // in reasoning if it starts with the marker
};
ReasoningStart reasoning_start(const ReasoningFormat& format, std::string_view prompt);

// Places `grammar`, a structural tag format, in the model's answer; harmony has a channel for
// answers.
Json answer_grammar(const ReasoningFormat& format, Json grammar);
// `grammar` after the reasoning.
Json grammar_after_reasoning(const ReasoningFormat& format, ReasoningStart start, Json grammar);

// Splits streamed text into reasoning and content. Whitespace around the markers belongs to
// neither. Text that may start a marker is held back until decided. One per sequence; belongs to
// one thread.
class ReasoningParser {
 public:
  // `also_end`: markers that end reasoning without belonging to it, such as a tool call's.
  ReasoningParser(const ReasoningFormat& format, ReasoningStart start,
                  std::vector<std::string_view> also_end = {});

  void push(std::string_view text, std::string& reasoning, std::string& content);
  void finish(std::string& reasoning, std::string& content);
  // Whether the text so far ends inside reasoning, markers included; nothing while undecided.
  std::optional<bool> inside() const;

 private:
  enum class State : uint8_t { kStart, kInside, kAfter, kAnswer, kContent };

  bool step(std::string& reasoning, std::string& content);
  bool step_between();
  bool step_inside(std::string& reasoning);
  bool step_answer(std::string& content);
  void add_text(std::string_view text, std::string& out);

  const ReasoningFormat& format_;
  std::vector<std::string_view> ends_;
  State state_;
  const ReasoningStart start_;
  std::string buffer_;
  std::string space_;      // trailing whitespace, held back in case the end marker follows
  bool begun_ = false;     // some reasoning, or some of the answer, has been emitted
  bool labelled_ = false;  // the label may follow
};

}  // namespace banyan
