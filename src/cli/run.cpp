// banyan run: chat in the terminal, or line by line through a pipe.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "cli/chat.h"
#include "cli/format.h"
#include "cli/options/checks.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/options/peer_options.h"
#include "cli/terminal/line_reader.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"

namespace banyan::cli {
namespace {

constexpr std::string_view kPrompt = ">>> ";
constexpr std::string_view kContinuation = "... ";
constexpr std::string_view kFence = "\"\"\"";

struct RunOptions {
  EngineConfig config;
  SamplingOptions sampling;
  std::optional<std::string> question, prompt;  // ask this one instead of starting a chat
  int64_t max_new_tokens = -1;                  // per reply; -1: the rest of the context
  GrammarOptions grammar;
  std::string system;
  std::string template_variables;
  std::string tools;
};

Result<ChatSettings> make_settings(const RunOptions& o, const SamplingParams& recommended) {
  ChatSettings settings{.sampling = TRY(sampling_params(o.sampling, recommended)),
                        .seed = o.sampling.seed,
                        .options = TRY(generation_options(o.sampling)),
                        .system = o.system,
                        .one_question = o.question || o.prompt};
  if (o.max_new_tokens > 0) settings.max_new_tokens = o.max_new_tokens;
  settings.options.grammar = TRY(grammar_source(o.grammar));
  if (!o.tools.empty()) settings.tools = TRY(read_chat_tools(o.tools));
  if (!o.template_variables.empty()) {
    settings.variables = TRY(parse_json(o.template_variables, "--chat-template-kwargs"));
  }
  return settings;
}

// Reads a message: one line, lines joined by a trailing backslash, or lines between """ and """. A
// message cut off by an interrupt is dropped; one cut off by the end of input is kept.
LineRead read_message(LineReader& reader) {
  LineRead read = reader.read(std::string(kPrompt));
  bool fenced = read.text.starts_with(kFence);
  std::string message;
  if (fenced) read.text.erase(0, kFence.size());
  while (read.kind == LineRead::Kind::kLine) {
    message += read.text;
    if (fenced && message.ends_with(kFence)) {
      message.erase(message.size() - kFence.size());
      return {LineRead::Kind::kLine, std::move(message)};
    }
    if (!fenced && !message.ends_with('\\')) return {LineRead::Kind::kLine, std::move(message)};
    if (!fenced) message.pop_back();
    message += '\n';
    read = reader.read(std::string(kContinuation));
  }
  if (read.kind == LineRead::Kind::kEnd && !message.empty()) {
    message.pop_back();  // remove the newline before the missing line
    return {LineRead::Kind::kLine, std::move(message)};
  }
  return read;
}

void introduce(Llm& llm, const EngineConfig& config, bool interactive) {
  const EngineInfo& info = llm.engine().info();
  if (interactive) {
    fmt::print(stderr, "{}{}: {}, {} parameters, {} tokens of context. ", dim(), config.model_path,
               info.architecture, format_count(info.parameters_total),
               format_digits(info.context_length_tokens));
    fmt::print(stderr, "/help lists commands, Ctrl-D leaves.{}\n", undim());
  }
  if (!llm.has_chat_template()) {
    fmt::print(stderr,
               "{}This model has no chat template: it continues text. Each line you type is added "
               "to the\ntext so far, and an empty line lets it go on.{}\n",
               dim(), undim());
  }
}

// Handles one message or command. Prints an error and sets `failed`, but continues the chat.
Chat::Next handle(Chat& chat, std::string message, bool& failed) {
  if (message.starts_with("//")) {
    message.erase(0, 1);
  } else if (message.starts_with('/')) {
    return chat.command(message);
  }
  Status answered = chat.reply(message);
  if (!answered) {
    fmt::print(stderr, "banyan: {}\n", answered.error().message);
    failed = true;
  }
  return Chat::Next::kGoOn;
}

// A person has seen each error; for a pipe the exit status reports it.
int talk(Chat& chat, LineReader& reader) {
  bool failed = false;
  auto exit_code = [&] { return failed && !reader.interactive() ? kExitFailure : kExitSuccess; };
  while (true) {
    LineRead read = read_message(reader);
    switch (read.kind) {
      case LineRead::Kind::kEnd:
        return exit_code();
      case LineRead::Kind::kInterrupted:
        if (!reader.interactive()) return kExitInterrupt;
        if (read.text.empty()) fmt::print(stderr, "{}Ctrl-D or /bye leaves.{}\n", dim(), undim());
        break;
      case LineRead::Kind::kLine:
        if (handle(chat, std::move(read.text), failed) == Chat::Next::kLeave) return exit_code();
        if (InterruptScope::raised() && !reader.interactive()) return kExitInterrupt;
        InterruptScope::clear();
    }
  }
}

// Asks a single question; output may go to a pipe.
Result<int> ask(Chat& chat, const std::string& question) {
  std::string message = question == "-" ? TRY(read_stdin()) : question;
  while (message.ends_with('\n')) message.pop_back();
  if (message.empty()) return invalid_argument("the question is empty");
  InterruptScope interrupt(InterruptScope::Second::kEndsProgram);
  TRY(chat.reply(message));
  return InterruptScope::raised() ? kExitInterrupt : kExitSuccess;
}

Result<int> run(const RunOptions& o) {
  if (o.question && o.prompt) {
    return invalid_argument("more than one input is given; give one of QUESTION, --prompt TEXT");
  }
  TRY(make_settings(o, {}));  // report wrong values before a long load
  std::unique_ptr<Llm> llm = TRY(load_llm(o.config));
  if (!llm->has_tokenizer()) {
    return unsupported(
        "{} has no tokenizer files, which a chat needs; `banyan generate --prompt-ids` takes token "
        "ids",
        o.config.model_path);
  }
  bool needs_template = !(o.system.empty() && o.template_variables.empty() && o.tools.empty());
  if (!llm->has_chat_template() && needs_template) {
    return invalid_argument(
        "--system, --tools and --chat-template-kwargs need a chat template, which {} does not have",
        o.config.model_path);
  }
  Chat chat(*llm, TRY(make_settings(o, llm->recommended_sampling())));
  TRY(chat.check_tools());
  if (o.question || o.prompt) return ask(chat, o.question ? *o.question : *o.prompt);
  bool interactive = stdin_is_terminal() && stderr_is_terminal();
  InterruptScope interrupt(interactive ? InterruptScope::Second::kRaisesFlag
                                       : InterruptScope::Second::kEndsProgram);
  LineReader reader(interactive);
  introduce(*llm, o.config, interactive);
  return talk(chat, reader);
}

VerbAction declare_run(CLI::App& app) {
  auto o = std::make_shared<RunOptions>();
  NextWord question{"QUESTION", "Answer this and end; - reads it from stdin", &o->question};
  add_model_options(app, o->config, {.next = question});
  app.add_option("--prompt,-p", o->prompt, "The same as QUESTION")->type_name("TEXT");
  app.add_option("--system,--system-prompt", o->system, "System message")->type_name("TEXT");
  add_length_option(app, o->max_new_tokens,
                    "Length of a reply at most, in tokens; -1: the rest of the context");
  add_sampling_options(app, o->sampling, "the model's generation_config.json");
  add_adapter_options(app, o->config, o->sampling.adapters);
  add_grammar_options(app, o->grammar);
  app.add_option("--tools", o->tools,
                 "Tools that the model may call, a JSON list as OpenAI's clients write it")
      ->type_name("FILE|JSON");
  OptionGroup group(app, "Chat");
  app.add_option("--chat-template-kwargs", o->template_variables,
                 "Variables for the chat template, a JSON object")
      ->type_name("JSON");
  add_peer_options(app);
  o->config.running_max = 1;
  return [o] { return run(*o); };
}

}  // namespace

const Verb kRunVerb = {
    "run", "Chat in the terminal, or answer one question",
    "  banyan run models/Qwen3-0.6B\n"
    "  banyan run models/Qwen3-0.6B \"Why is the sky blue?\"\n"
    "  banyan run models/Qwen3-0.6B --system \"Answer in one sentence.\" --temp 0\n"
    "  banyan run models/Qwen3-0.6B --tools tools.json\n"
    "  cat letter.txt | banyan run models/Qwen3-0.6B --system \"Summarize this.\" -\n"
    "\n"
    "In the chat, /help lists commands, Ctrl-C stops a reply, Ctrl-D leaves. A model without a\n"
    "chat template continues the text so far.\n",
    declare_run, respell_peer_option};

}  // namespace banyan::cli
