// Models that think before they answer: how they mark it, and taking it apart from the answer.
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
  std::array<std::string_view, 8> aliases;      // other engines' names for it, and models'
  std::array<std::string_view, 2> in_template;  // as in ToolCallFormat
  std::string_view begin, end;  // empty: harmony's channels (llm/messages/harmony.h)
  bool always = false;          // an output begins with reasoning even if no mark says so
};

std::span<const ReasoningFormat> reasoning_formats();
// By name or alias, "auto" (what `chat_template` shows, nullptr if nothing) or "none" (nullptr).
Result<const ReasoningFormat*> find_reasoning_format(std::string_view name,
                                                     std::string_view chat_template);

// How an output begins.
enum class ReasoningStart : uint8_t {
  kInside,   // the prompt has opened the reasoning
  kOutside,  // there is none: the prompt has closed it
  kMark,     // there is some if the output begins with the mark
};
ReasoningStart reasoning_start(const ReasoningFormat& format, std::string_view prompt);

// `grammar`, a format of structural tags, as the model's answer: harmony has a channel for it.
Json answer_grammar(const ReasoningFormat& format, Json grammar);
// `grammar` after the reasoning.
Json grammar_after_reasoning(const ReasoningFormat& format, ReasoningStart start, Json grammar);

// Splits text as it comes. Line breaks and spaces around the marks belong to neither side. What may
// begin a mark is held back until it is certain. One per sequence; belongs to one thread.
class ReasoningParser {
 public:
  // `also_end`: marks that end reasoning without being part of it, such as a tool call's.
  ReasoningParser(const ReasoningFormat& format, ReasoningStart start,
                  std::vector<std::string_view> also_end = {});

  void push(std::string_view text, std::string& reasoning, std::string& content);
  void finish(std::string& reasoning, std::string& content);
  // Whether the text is in the reasoning, its marks included; none: it may yet turn out to be.
  std::optional<bool> inside() const;

 private:
  enum class State : uint8_t { kStart, kInside, kAfter, kContent };

  bool step(std::string& reasoning, std::string& content);
  bool step_inside(std::string& reasoning);
  void add_reasoning(std::string_view text, std::string& reasoning);

  const ReasoningFormat& format_;
  std::vector<std::string_view> ends_;
  State state_;
  const bool inside_;  // an output that does not begin with the mark is reasoning
  std::string buffer_;
  std::string space_;   // reasoning's end, held back: the mark may follow
  bool begun_ = false;  // some reasoning has gone out
};

}  // namespace banyan
