// Reasoning, and harmony's messages: where they begin and end, and grammars after them.
#include "llm/messages/reasoning.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/llm/read_message.h"

namespace banyan::reasoning_test {
namespace {

using namespace test::messages;

const std::string kCall =
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 3}}\n"
    "</tool_call>";

MessageParserOptions thinking(ReasoningStart start, const char* format = "qwen3") {
  MessageParserOptions options = with_tools("qwen");
  options.syntax.reasoning = find_reasoning_format(format, {}).value();
  options.start = start;
  return options;
}

TEST(Reasoning, IsTakenApartWhereverItBegins) {
  struct Case {
    ReasoningStart start;
    std::string text, reasoning, content;
  };
  const std::vector<Case> cases = {
      {ReasoningStart::kInside, "\nHm. </th\n</think>\n\nYes", "Hm. </th", "Yes"},
      {ReasoningStart::kInside, "<think>Hm.</think>Yes", "Hm.", "Yes"},
      {ReasoningStart::kInside, "only thoughts \n", "only thoughts", ""},
      {ReasoningStart::kInside, "</think> Yes", "", "Yes"},
      {ReasoningStart::kOutside, "<think>Yes</think>", "", "<think>Yes</think>"},
      {ReasoningStart::kMark, "\n<think>Hm.</think>Yes <think>", "Hm.", "Yes <think>"},
      {ReasoningStart::kMark, " <thin>Yes", "", " <thin>Yes"},
      {ReasoningStart::kMark, "<thi", "", "<thi"}};
  for (const Case& c : cases) {
    for (size_t bytes : {size_t{1}, size_t{3}, size_t{100}}) {
      Read got = read(thinking(c.start), c.text, bytes);
      EXPECT_EQ(got.reasoning, c.reasoning) << c.text;
      EXPECT_EQ(got.content, c.content) << c.text;
    }
  }
  Read call = read(thinking(ReasoningStart::kInside), "Hm." + kCall, 2);
  EXPECT_EQ(call.reasoning, "Hm.");
  EXPECT_EQ(call.calls.size(), 1u);
}

TEST(Reasoning, AnAnswerMayBeMarkedToo) {
  struct Case {
    const char* format;
    ReasoningStart start;
    std::string text, reasoning, content;
  };
  const std::vector<Case> cases = {
      {"ernie45", ReasoningStart::kInside,
       "Hm.\n</think>\n\n\n<response>\nYes\n\nno\n</response>\n", "Hm.", "Yes\n\nno"},
      {"ernie45", ReasoningStart::kInside, "Hm.\n</think>\n\nYes</response>", "Hm.",
       "Yes</response>"},
      {"ernie45", ReasoningStart::kInside, "Hm.</think><resp", "Hm.", "<resp"},
      {"granite3.3", ReasoningStart::kMark, "<think>Hm.</think><response>Yes </resp> ", "Hm.",
       "Yes </resp> "},
      {"hunyuan_a13b", ReasoningStart::kMark, "<think>\nHm.\n</think>\n<answer>\nYes\n</answer>",
       "Hm.", "Yes"},
      {"hunyuan_a13b", ReasoningStart::kOutside, "<answer>\nYes\n</answer>", "", "Yes"},
      {"hunyuan_a13b", ReasoningStart::kOutside, " <think>Yes", "", " <think>Yes"},
      {"hunyuan_a13b", ReasoningStart::kMark, "<ans", "", "<ans"},
      {"granite", ReasoningStart::kMark,
       "Here is my thought process: Hm. Here is mine. Here is my response: Yes",
       "Hm. Here is mine.", "Yes"},
      {"seed_oss", ReasoningStart::kMark, "<seed:think>Hm.</seed:think>Yes", "Hm.", "Yes"},
      {"minimax-m3", ReasoningStart::kMark, "<mm:think>Hm.</mm:think>Yes", "Hm.", "Yes"},
      {"minimax-m3", ReasoningStart::kMark, "</mm:think>\nYes </mm:think>", "", "Yes </mm:think>"},
      {"minimax-m3", ReasoningStart::kMark, "</mm:th", "", "</mm:th"},
      {"minimax-m3", ReasoningStart::kOutside, "</mm:think>Yes", "", "</mm:think>Yes"},
      {"longcat", ReasoningStart::kMark, "<longcat_think>Hm.</longcat_think>Yes", "Hm.", "Yes"},
      {"gemma4", ReasoningStart::kMark, "<|channel>thought\nHm.\n<channel|>Yes", "Hm.", "Yes"},
      {"gemma4", ReasoningStart::kMark, "<|channel>thou<channel|>Yes", "thou", "Yes"},
      {"gemma4", ReasoningStart::kMark, "<|channel>\nThought", "Thought", ""}};
  for (const Case& c : cases) {
    for (size_t bytes = 1; bytes <= c.text.size(); ++bytes) {
      Read got = read(thinking(c.start, c.format), c.text, bytes);
      EXPECT_EQ(got.reasoning, c.reasoning) << c.text << bytes;
      EXPECT_EQ(got.content, c.content) << c.text << bytes;
    }
  }
  std::string text = "Hm.\n</think>\n\n\n<response>\nI look.\n</response>\n\n\n" + kCall;
  Read call = read(thinking(ReasoningStart::kInside, "ernie45"), text, 3);
  EXPECT_EQ(call.content, "I look.");
  EXPECT_EQ(call.calls.size(), 1u);
  const ReasoningFormat& hunyuan = **find_reasoning_format("hunyuan_a13b", {});
  EXPECT_EQ(reasoning_start(hunyuan, "...<|extra_0|><think>\n\n</think>\n"),
            ReasoningStart::kOutside);
  const ReasoningFormat& gemma = **find_reasoning_format("gemma4", {});
  EXPECT_EQ(reasoning_start(gemma, "<|turn>model\n<|channel>thought\n<channel|>"),
            ReasoningStart::kOutside);
}

// One letter for each piece: in the reasoning, or not, or not known yet.
std::string places(const MessageParserOptions& options, const std::vector<std::string>& pieces) {
  MessageParser parser(options);
  MessageDelta delta;
  std::string letters;
  for (const std::string& piece : pieces) {
    parser.push(piece, delta);
    std::optional<bool> inside = parser.in_reasoning();
    letters += !inside ? '.' : *inside ? 'r' : '-';
  }
  return letters;
}

TEST(Reasoning, SaysWhereTheTextIs) {
  const std::vector<std::string> marked = {"<th", "ink>", "Hm.", "</", "think>", "\n\n", "Yes"};
  EXPECT_EQ(places(thinking(ReasoningStart::kMark), marked), ".rrr---");
  EXPECT_EQ(places(thinking(ReasoningStart::kMark), {"<th", "in>", "Yes"}), ".--");
  EXPECT_EQ(places(thinking(ReasoningStart::kInside), {"Hm.", "</think>", "Yes"}), "r--");
  EXPECT_EQ(places(thinking(ReasoningStart::kOutside), {"<think>", "Yes"}), "--");
  MessageParserOptions kept = thinking(ReasoningStart::kMark);
  kept.keep_reasoning = true;
  EXPECT_EQ(places(kept, marked), ".rrr---");
  Read all = read(kept, " <think>Hm.</think>\n\nYes", 3);
  EXPECT_EQ(all.content, " <think>Hm.</think>\n\nYes");
  EXPECT_EQ(all.reasoning, "");
  MessageParserOptions harmony = with_tools("gpt-oss");
  EXPECT_EQ(places(harmony, {"<|channel|>", "analysis", "<|message|>", "Hm.", "<|end|>",
                             "<|start|>", "assistant<|channel|>final", "<|message|>", "Hello"}),
            "..rr...--");
}

TEST(Reasoning, ThePromptSaysHowAnAnswerBegins) {
  const ReasoningFormat& qwen = **find_reasoning_format("qwen3", {});
  EXPECT_EQ(reasoning_start(qwen, "...assistant\n<think>\n"), ReasoningStart::kInside);
  EXPECT_EQ(reasoning_start(qwen, "...\n<think>\n\n</think>\n\n"), ReasoningStart::kOutside);
  EXPECT_EQ(reasoning_start(qwen, "say <think> assistant\n"), ReasoningStart::kMark);
  const ReasoningFormat& r1 = **find_reasoning_format("deepseek-r1", {});
  EXPECT_EQ(reasoning_start(r1, "assistant\n"), ReasoningStart::kInside);
}

TEST(Reasoning, AGrammarBeginsAfterIt) {
  const ReasoningFormat& qwen = **find_reasoning_format("qwen3", {});
  const Json digit = {{"type", "regex"}, {"pattern", "[0-9]"}};
  auto after = [&](ReasoningStart start) {
    return grammar_of(grammar_after_reasoning(qwen, start, digit));
  };
  EXPECT_TRUE(after(ReasoningStart::kInside).matches("Hm, 5?</think>\n\n7"));
  EXPECT_FALSE(after(ReasoningStart::kInside).matches("7"));
  EXPECT_TRUE(after(ReasoningStart::kOutside).matches("7"));
  EXPECT_FALSE(after(ReasoningStart::kOutside).matches_prefix("H"));
  EXPECT_TRUE(after(ReasoningStart::kMark).matches("7"));
  EXPECT_TRUE(after(ReasoningStart::kMark).matches("\n<think>Hm</think>7"));
  EXPECT_FALSE(after(ReasoningStart::kMark).matches_prefix("Hm"));
  const ReasoningFormat& ernie = **find_reasoning_format("ernie45", {});
  Grammar framed = grammar_of(grammar_after_reasoning(ernie, ReasoningStart::kInside, digit));
  EXPECT_TRUE(framed.matches("Hm</think>\n\n<response>\n7\n</response>"));
  EXPECT_TRUE(framed.matches("Hm</think>\n\n7"));
  EXPECT_FALSE(framed.matches("Hm</think>\n\n<response>7"));
  const ReasoningFormat& minimax = **find_reasoning_format("minimax_m3", {});
  Grammar adaptive = grammar_of(grammar_after_reasoning(minimax, ReasoningStart::kMark, digit));
  EXPECT_TRUE(adaptive.matches("<mm:think>Hm</mm:think>7"));
  EXPECT_TRUE(adaptive.matches("</mm:think>7"));
  EXPECT_TRUE(adaptive.matches("7"));
  EXPECT_FALSE(adaptive.matches_prefix("Hm"));
}

TEST(Harmony, ChannelsAreReasoningContentAndCalls) {
  MessageParserOptions options = with_tools("gpt-oss");
  options.syntax.reasoning = find_reasoning_format("gpt-oss", {}).value();
  std::string text =
      "<|channel|>analysis<|message|>Hm. 1 < 2<|end|><|start|>assistant<|channel|>commentary"
      "<|message|>I look.<|end|><|start|>assistant to=functions.now<|channel|>commentary json"
      "<|message|>{}<|call|><|start|>assistant<|channel|>final<|message|>Hello<|return|>";
  for (size_t bytes : {size_t{1}, size_t{6}, size_t{1000}}) {
    Read got = read(options, text, bytes);
    EXPECT_EQ(got.reasoning, "Hm. 1 < 2");
    EXPECT_EQ(got.content, "I look.Hello");
    ASSERT_EQ(got.calls.size(), 1u);
    EXPECT_EQ(got.calls[0].name, "now");
    EXPECT_EQ(got.calls[0].arguments, "{}");
    EXPECT_EQ(read(options, "plain text", bytes).content, "plain text");
  }
  const ReasoningFormat& format = *options.syntax.reasoning;
  Json answer = answer_grammar(format, {{"type", "regex"}, {"pattern", "[0-9]"}});
  Grammar grammar = grammar_of(grammar_after_reasoning(format, ReasoningStart::kMark, answer));
  EXPECT_TRUE(
      grammar.matches("<|channel|>analysis<|message|>Hm<|end|><|start|>assistant"
                      "<|channel|>final<|message|>7"));
  EXPECT_TRUE(grammar.matches("<|channel|>final<|message|>7"));
  EXPECT_FALSE(grammar.matches("7"));
}

}  // namespace
}  // namespace banyan::reasoning_test
