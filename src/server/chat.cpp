#include "server/chat.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "llm/llm_parts.h"

namespace banyan {
namespace {

void set_default(Json& variables, const char* name, Json value) {
  if (!variables.contains(name)) variables[name] = std::move(value);
}

// Sets what to parse in the answer to `prompt`, and the grammar it must follow.
Parsed<MessageParserOptions> set_syntax(const ChatSyntax& model, std::string_view prompt,
                                        const ToolRequest& tools, bool separate_reasoning,
                                        PromptRequest& request) {
  ChatSyntax syntax = model;
  bool required = tools.choice == ToolRequest::Choice::kRequired;
  // A forced call does not depend on the model's own format, so any format will do.
  if (required && syntax.tool_calls == nullptr) {
    syntax.tool_calls = find_tool_call_format("hermes", {}).value();
  }
  ReasoningStart start = ReasoningStart::kOutside;
  if (syntax.reasoning != nullptr) start = reasoning_start(*syntax.reasoning, prompt);
  auto grammar = chat_grammar(syntax, start, tools, request.text.options.grammar);
  if (!grammar) return std::unexpected(RequestError(grammar.error(), "tools"));
  request.text.options.grammar = *std::move(grammar);
  if (tools.may_call() && request.grammar_field.empty()) request.grammar_field = "tools";

  if (!tools.may_call()) syntax.tool_calls = nullptr;
  if (syntax.has_special_marks()) request.text.options.skip_special_tokens = false;
  return MessageParserOptions{.syntax = syntax,
                              .start = start,
                              .tools = tools.tools,
                              .calls_end_reasoning = !request.text.options.grammar,
                              .keep_reasoning = !separate_reasoning};
}

// Derives the rules of the thinking budget. An answer without reasoning needs none.
std::expected<void, RequestError> bound_reasoning(const Llm& llm,
                                                  const MessageParserOptions& options,
                                                  bool may_call, PromptRequest& request) {
  const ChatSyntax& syntax = options.syntax;
  if (!request.thinking_tokens_max || syntax.reasoning == nullptr) return {};
  ThinkingAnswer answer{.start = options.start, .may_call = may_call};
  if (options.calls_end_reasoning && syntax.tool_calls != nullptr) {
    const ToolCallFormat& calls = *syntax.tool_calls;
    answer.call = calls.section_begin.empty() ? calls.begin : calls.section_begin;
  }
  auto rules =
      thinking_rules(*tokenizer_of(llm), *syntax.reasoning, answer, *request.thinking_tokens_max);
  if (!rules) return std::unexpected(RequestError(rules.error(), "thinking_token_budget"));
  request.thinking = *std::move(rules);
  return {};
}

}  // namespace

void set_thinking(Json& variables, bool thinks) {
  if (!variables.is_object()) return;  // the renderer reports that error
  set_default(variables, "enable_thinking", thinks);
  set_default(variables, "thinking", thinks);
}

void set_reasoning_effort(Json& variables, const std::string& effort) {
  if (effort.empty() || !variables.is_object()) return;
  set_default(variables, "reasoning_effort", effort);
  set_thinking(variables, effort != "none");
}

void set_verbosity(Json& variables, RequestFields& fields) {
  fields.accept_only({{"verbosity", R"(["low","medium","high"])"}});
  const Json* verbosity = fields.find("verbosity");
  if (verbosity != nullptr && variables.is_object())
    set_default(variables, "verbosity", *verbosity);
}

Parsed<std::string> render_prompt(const RequestContext& context, ChatPrompt prompt) {
  if (prompt.variables.is_object()) {
    for (const auto& [name, value] : context.defaults.template_variables.items()) {
      set_default(prompt.variables, name.c_str(), value);
    }
  }
  auto text = render_chat(context.llm, std::move(prompt));
  if (!text) return std::unexpected(RequestError(text.error(), "messages"));
  return *std::move(text);
}

Parsed<size_t> count_prompt_tokens(const RequestContext& context, ChatPrompt prompt) {
  std::string text = TRY(render_prompt(context, std::move(prompt)));
  auto tokens = TRY(tokenizer_of(context.llm)->encode(text, {.add_special_tokens = false}));
  return tokens.size();
}

Parsed<MessageParserOptions> plan_messages(const RequestContext& context, ChatRequest chat,
                                           GenerationPlan& plan) {
  PromptRequest& request = chat.options;
  request.text.text = TRY(render_prompt(context, std::move(chat.prompt)));
  request.text.add_special_tokens = false;
  MessageParserOptions options = TRY(
      set_syntax(context.syntax, request.text.text, chat.tools, chat.separate_reasoning, request));
  TRY(bound_reasoning(context.llm, options, chat.tools.may_call(), request));
  TRY(plan.add_prompt(context.llm, request));
  TRY(plan.check_rids());
  plan.warnings.insert(plan.warnings.end(), chat.tools.warnings.begin(), chat.tools.warnings.end());
  return options;
}

MessageDelta MessageStream::take(const Choice& choice, const TextDelta& delta) {
  MessageDelta message;
  bool reasoned = parser_.in_reasoning().value_or(false);
  if (!delta.text.empty()) parser_.push(delta.text, message);
  if (delta.counted) count_token(reasoned);
  if (choice.stream.done()) parser_.finish(message);
  return message;
}

// A token counts as reasoning if any of its text does, markers included. While the parser cannot
// decide yet, tokens are counted as undecided.
void MessageStream::count_token(bool reasoned) {
  ++undecided_tokens_;
  std::optional<bool> reasons = parser_.in_reasoning();
  if (!reasons && !reasoned) return;
  if (reasoned || *reasons) reasoning_tokens_ += undecided_tokens_;
  undecided_tokens_ = 0;
}

}  // namespace banyan
