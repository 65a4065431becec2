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
  // Models usually write line breaks around the markers.
  Json thought =
      sequence({optional(constant("\n")), tag(inside ? "" : format.begin, any_text(), format.end),
                optional(constant("\n\n"))});
  return sequence({inside ? std::move(thought) : optional(std::move(thought)), std::move(grammar)});
}

ReasoningParser::ReasoningParser(const ReasoningFormat& format, ReasoningStart start,
                                 std::vector<std::string_view> also_end)
    : format_(format),
      ends_(std::move(also_end)),
      state_(start == ReasoningStart::kOutside ? State::kContent : State::kStart),
      inside_(start == ReasoningStart::kInside) {
  std::erase(ends_, "");
  ends_.insert(ends_.begin(), format.end);
}

void ReasoningParser::push(std::string_view text, std::string& reasoning, std::string& content) {
  buffer_ += text;
  while (step(reasoning, content)) {
  }
}

bool ReasoningParser::step(std::string& reasoning, std::string& content) {
  if (state_ == State::kContent) {
    content += std::exchange(buffer_, {});
    return false;
  }
  if (state_ == State::kInside) return step_inside(reasoning);
  size_t first = std::min(buffer_.find_first_not_of(kSpace), buffer_.size());
  if (first == buffer_.size()) return false;
  if (state_ == State::kAfter) {  // whitespace after the marker is dropped
    buffer_.erase(0, first);
    state_ = State::kContent;
    return true;
  }
  std::string_view text = std::string_view(buffer_).substr(first);
  if (text.starts_with(format_.begin)) {
    buffer_.erase(0, first + format_.begin.size());
    state_ = State::kInside;
    return true;
  }
  if (format_.begin.starts_with(text)) return false;
  state_ = inside_ ? State::kInside : State::kContent;
  return true;
}

bool ReasoningParser::step_inside(std::string& reasoning) {
  FoundMark found = find_mark(buffer_, ends_);
  size_t certain = found.at;
  if (found.mark.empty()) certain = buffer_.size() - partial_mark(buffer_, ends_);
  add_reasoning(std::string_view(buffer_).substr(0, certain), reasoning);
  buffer_.erase(0, certain);
  if (found.mark.empty()) return false;
  if (found.mark == format_.end) buffer_.erase(0, found.mark.size());
  space_.clear();
  state_ = State::kAfter;
  return true;
}

// Leading and trailing whitespace is dropped.
void ReasoningParser::add_reasoning(std::string_view text, std::string& reasoning) {
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
  reasoning += std::exchange(space_, {});
  reasoning += text.substr(0, end + 1);
  space_ = text.substr(end + 1);
}

void ReasoningParser::finish(std::string& reasoning, std::string& content) {
  if (state_ == State::kInside || (state_ == State::kStart && inside_)) {
    add_reasoning(std::exchange(buffer_, {}), reasoning);
  } else if (state_ != State::kAfter) {
    content += std::exchange(buffer_, {});
  }
  buffer_.clear();
}

std::optional<bool> ReasoningParser::inside() const {
  if (state_ == State::kInside || (state_ == State::kStart && inside_)) return true;
  if (state_ == State::kStart) return std::nullopt;
  return false;
}

}  // namespace banyan
