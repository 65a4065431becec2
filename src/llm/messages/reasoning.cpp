#include "llm/messages/reasoning.h"

#include <algorithm>
#include <utility>

#include "llm/messages/marks.h"
#include "llm/structural.h"

namespace banyan {
namespace {

// Formats with rarer markers come first, since "auto" takes the first match.
constexpr auto kReasoningFormats = std::to_array<ReasoningFormat>({
    {.name = "gpt-oss",
     .aliases = {"gpt_oss", "openai_gptoss", "harmony"},
     .in_template = {"<|channel|>", "<|start|>assistant"}},
    {.name = "kimi",
     .aliases = {},
     .in_template = {"◁think▷", "◁/think▷"},
     .begin = "◁think▷",
     .end = "◁/think▷"},
    {.name = "mistral",
     .aliases = {},
     .in_template = {"[THINK]", "[/THINK]"},
     .begin = "[THINK]",
     .end = "[/THINK]"},
    {.name = "gemma4",
     .aliases = {},
     .in_template = {"<|channel>", "<channel|>"},
     .begin = "<|channel>",
     .end = "<channel|>",
     .label = "thought",
     .special = true},
    {.name = "minimax-m3",
     .aliases = {"minimax_m3"},
     .in_template = {"<mm:think>", "</mm:think>"},
     .begin = "<mm:think>",
     .end = "</mm:think>",
     .ends_none = true},
    {.name = "seed_oss",
     .aliases = {"seed"},
     .in_template = {"<seed:think>", "</seed:think>"},
     .begin = "<seed:think>",
     .end = "</seed:think>",
     .special = true},
    {.name = "longcat",
     .aliases = {},
     .in_template = {"<longcat_think>", "</longcat_think>"},
     .begin = "<longcat_think>",
     .end = "</longcat_think>",
     .special = true},
    {.name = "granite",  // 3.2
     .aliases = {},
     .in_template = {"Here is my thought process:", "Here is my response:"},
     .begin = "Here is my thought process:",
     .end = "Here is my response:"},
    {.name = "hunyuan_a13b",
     .aliases = {},
     .in_template = {"<|extra_0|>", "<think>"},
     .begin = "<think>",
     .end = "</think>",
     .answer_begin = "<answer>",
     .answer_end = "</answer>"},
    {.name = "ernie45",
     .aliases = {},
     .in_template = {"<global_setting>", "<response>"},
     .begin = "<think>",
     .end = "</think>",
     .answer_begin = "<response>",
     .answer_end = "</response>"},
    {.name = "granite3.3",
     .aliases = {},
     .in_template = {"<think></think>", "<response></response>"},
     .begin = "<think>",
     .end = "</think>",
     .answer_begin = "<response>",
     .answer_end = "</response>"},
    // Selected by name only: its models reason even if neither template nor output has a marker.
    {.name = "deepseek-r1",
     .aliases = {"deepseek_r1", "qwen3-thinking", "minimax", "minimax-m2", "minimax_m2", "step3"},
     .begin = "<think>",
     .end = "</think>",
     .always = true},
    {.name = "qwen3",
     .aliases = {"deepseek-v3", "deepseek_v3", "glm45", "kimi_k2", "ling3", "hunyuan", "interns1",
                 "nemotron_3"},
     .in_template = {"<think>", "</think>"},
     .begin = "<think>",
     .end = "</think>"},
});

}  // namespace

std::span<const ReasoningFormat> reasoning_formats() {
  return kReasoningFormats;
}

Result<const ReasoningFormat*> find_reasoning_format(std::string_view name,
                                                     std::string_view chat_template) {
  return find_format<ReasoningFormat>(kReasoningFormats, name, chat_template, "reasoning");
}

ReasoningStart reasoning_start(const ReasoningFormat& format, std::string_view prompt) {
  if (format.begin.empty()) return ReasoningStart::kMark;
  prompt = prompt.substr(0, prompt.find_last_not_of(kSpace) + 1);
  if (prompt.ends_with(format.begin)) return ReasoningStart::kInside;
  if (prompt.ends_with(format.end)) return ReasoningStart::kOutside;
  return format.always ? ReasoningStart::kInside : ReasoningStart::kMark;
}

Json answer_grammar(const ReasoningFormat& format, Json grammar) {
  using namespace structural;
  if (!format.begin.empty()) return grammar;
  return sequence(
      {constant("<|channel|>"), constant("final"), constant("<|message|>"), std::move(grammar)});
}

Json grammar_after_reasoning(const ReasoningFormat& format, ReasoningStart start, Json grammar) {
  using namespace structural;
  if (start == ReasoningStart::kOutside) return grammar;
  if (format.begin.empty()) {
    Json analysis =
        tag("<|channel|>", sequence({constant("analysis"), constant("<|message|>"), any_text()}),
            "<|end|>");
    Json message = sequence({std::move(analysis), constant("<|start|>"), constant("assistant")});
    return sequence({optional(std::move(message)), std::move(grammar)});
  }
  bool inside = start == ReasoningStart::kInside;
  if (!format.answer_begin.empty()) {
    Json marked = sequence({constant(format.answer_begin), optional(constant("\n")), grammar,
                            optional(constant("\n")), constant(format.answer_end)});
    grammar = either({std::move(grammar), std::move(marked)});
  }
  // Models usually write line breaks around the markers.
  Json thought =
      sequence({optional(constant("\n")), tag(inside ? "" : format.begin, any_text(), format.end),
                optional(constant("\n\n"))});
  if (inside) return sequence({std::move(thought), std::move(grammar)});
  Json none = constant("");
  if (format.ends_none) none = optional(constant(format.end));
  return sequence({either({std::move(thought), std::move(none)}), std::move(grammar)});
}

ReasoningParser::ReasoningParser(const ReasoningFormat& format, ReasoningStart start,
                                 std::vector<std::string_view> also_end)
    : format_(format), ends_(std::move(also_end)), state_(State::kStart), start_(start) {
  bool outside = start == ReasoningStart::kOutside;
  if (outside && format.answer_begin.empty()) state_ = State::kContent;
  std::erase(ends_, "");
  ends_.insert(ends_.begin(), format.end);
}

void ReasoningParser::push(std::string_view text, std::string& reasoning, std::string& content) {
  buffer_ += text;
  while (step(reasoning, content)) {
  }
}

bool ReasoningParser::step(std::string& reasoning, std::string& content) {
  switch (state_) {
    case State::kStart:
    case State::kAfter:
      return step_between();
    case State::kInside:
      return step_inside(reasoning);
    case State::kAnswer:
      return step_answer(content);
    case State::kContent:
      content += std::exchange(buffer_, {});
      break;
  }
  return false;
}

// Before the first marker, or before the answer.
bool ReasoningParser::step_between() {
  size_t first = std::min(buffer_.find_first_not_of(kSpace), buffer_.size());
  if (state_ == State::kAfter) buffer_.erase(0, std::exchange(first, 0));  // it is dropped
  if (first == buffer_.size()) return false;
  std::string_view text = std::string_view(buffer_).substr(first);
  bool inside = state_ == State::kStart && start_ == ReasoningStart::kInside;
  std::string_view begin, answer, none;
  if (state_ == State::kStart && start_ != ReasoningStart::kOutside) begin = format_.begin;
  bool undecided = state_ == State::kStart && start_ == ReasoningStart::kMark;
  if (undecided && format_.ends_none) none = format_.end;
  if (!inside) answer = format_.answer_begin;
  for (std::string_view mark : {begin, answer, none}) {
    if (mark.empty() || !text.starts_with(mark)) continue;
    state_ = mark == begin ? State::kInside : mark == none ? State::kAfter : State::kAnswer;
    labelled_ = mark == begin && !format_.label.empty();
    begun_ = false;
    buffer_.erase(0, first + mark.size());
    return true;
  }
  for (std::string_view mark : {begin, answer, none}) {
    if (mark.starts_with(text)) return false;
  }
  state_ = inside ? State::kInside : State::kContent;
  return true;
}

bool ReasoningParser::step_inside(std::string& reasoning) {
  if (labelled_) {
    buffer_.erase(0, std::min(buffer_.find_first_not_of(kSpace), buffer_.size()));
    if (format_.label.starts_with(buffer_) && buffer_ != format_.label) return false;
    if (buffer_.starts_with(format_.label)) buffer_.erase(0, format_.label.size());
    labelled_ = false;
  }
  FoundMark found = find_mark(buffer_, ends_);
  size_t certain = found.at;
  if (found.mark.empty()) certain = buffer_.size() - partial_mark(buffer_, ends_);
  add_text(std::string_view(buffer_).substr(0, certain), reasoning);
  buffer_.erase(0, certain);
  if (found.mark.empty()) return false;
  if (found.mark == format_.end) buffer_.erase(0, found.mark.size());
  space_.clear();
  state_ = State::kAfter;
  return true;
}

bool ReasoningParser::step_answer(std::string& content) {
  const std::string_view marks[] = {format_.answer_end};
  size_t end = buffer_.find(format_.answer_end);
  size_t certain = std::min(end, buffer_.size() - partial_mark(buffer_, marks));
  add_text(std::string_view(buffer_).substr(0, certain), content);
  buffer_.erase(0, certain);
  if (end == buffer_.npos) return false;
  buffer_.erase(0, format_.answer_end.size());
  space_.clear();
  state_ = State::kAfter;
  return true;
}

// Leading and trailing whitespace is dropped.
void ReasoningParser::add_text(std::string_view text, std::string& out) {
  size_t end = text.find_last_not_of(kSpace);
  if (end == text.npos) {
    if (begun_) space_ += text;
    return;
  }
  if (!begun_) {
    size_t begin = text.find_first_not_of(kSpace);
    text.remove_prefix(begin);
    end -= begin;
  }
  begun_ = true;
  out += std::exchange(space_, {});
  out += text.substr(0, end + 1);
  space_ = text.substr(end + 1);
}

void ReasoningParser::finish(std::string& reasoning, std::string& content) {
  bool inside = state_ == State::kStart && start_ == ReasoningStart::kInside;
  if (state_ == State::kInside || inside) {
    add_text(std::exchange(buffer_, {}), reasoning);
  } else if (state_ == State::kAnswer) {
    content += std::exchange(space_, {}) + std::exchange(buffer_, {});
  } else {
    content += std::exchange(buffer_, {});
  }
}

std::optional<bool> ReasoningParser::inside() const {
  if (state_ == State::kInside) return true;
  if (state_ != State::kStart || start_ == ReasoningStart::kOutside) return false;
  if (start_ == ReasoningStart::kInside) return true;
  return std::nullopt;
}

}  // namespace banyan
