// banyan generate: continues a single text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "cli/format.h"
#include "cli/options/checks.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/options/peer_options.h"
#include "cli/terminal/terminal.h"
#include "cli/verb.h"

namespace banyan::cli {
namespace {

struct GenerateOptions {
  EngineConfig config;
  TextSource prompt;
  SamplingOptions sampling;
  GrammarOptions grammar;
  int64_t max_new_tokens = 128;
  bool no_special_tokens = false;
  int top_logprobs = 0;
  bool chat = false;
  bool json = false;
  bool stream = false;
};

Json logprobs_json(const Llm& llm, const std::vector<GeneratedToken>& tokens) {
  auto entry = [&](TokenId id, float logprob) {
    return Json{{"id", id}, {"token", token_text(llm, id)}, {"logprob", logprob}};
  };
  Json list = Json::array();
  for (const GeneratedToken& token : tokens) {
    Json one = entry(token.token, token.logprob);
    one["top"] = Json::array();
    for (const TokenLogprob& top : token.top) one["top"].push_back(entry(top.token, top.logprob));
    list.push_back(std::move(one));
  }
  return list;
}

Json matched_stop_json(const Generation& g) {
  if (g.matched_stop_text) return *g.matched_stop_text;
  if (g.matched_stop_token) return *g.matched_stop_token;
  return nullptr;
}

Json to_json(const Llm& llm, const Generation& g, const TextRequest& request) {
  const SamplingParams& sampling = request.sampling;
  Json json = {{"prompt_ids", g.prompt_ids},
               {"output_ids", g.output_ids},
               {"text", g.text},
               {"finish_reason", to_string(g.finish)},
               {"matched_stop", matched_stop_json(g)},
               {"prompt_tokens", g.prompt_ids.size()},
               {"completion_tokens", g.output_ids.size()},
               {"cached_tokens", g.cached_tokens},
               {"logprobs", logprobs_json(llm, g.logprobs)},
               {"timings",
                {{"load_s", llm.load_s()},
                 {"ttft_s", g.ttft_s},
                 {"prefill_tokens_per_s", g.prefill_tokens_per_s},
                 {"decode_tokens_per_s", g.decode_tokens_per_s}}},
               {"seed", sampling.temperature > 0 ? Json(sampling.seed) : Json(nullptr)}};
  if (request.options.grammar) json["not_enforced"] = g.grammar_notes;
  return json;
}

Result<TextRequest> make_request(const GenerateOptions& o) {
  if (o.json && o.stream) {
    return invalid_argument("--json prints one object at the end; leave out --stream");
  }
  if (o.config.expert_counts && !o.json) {
    return invalid_argument("--expert-counts is shown by --json only; add it");
  }
  if (o.top_logprobs > 0 && !o.json) {
    return invalid_argument("--top-logprobs {} is shown by --json only; add it", o.top_logprobs);
  }
  if (o.chat && o.prompt.ids) {
    return invalid_argument("--chat needs a text; --prompt-ids gives token ids");
  }
  TextRequest request;
  request.sampling = TRY(sampling_params(o.sampling, {.temperature = 0}));
  request.options = TRY(generation_options(o.sampling));
  request.options.grammar = TRY(grammar_source(o.grammar));
  constexpr int64_t kAllThatFits = int64_t{1} << 31;  // capped at the end of the context
  request.options.max_new_tokens = o.max_new_tokens > 0 ? o.max_new_tokens : kAllThatFits;
  request.add_special_tokens = !o.no_special_tokens;
  request.options.logprobs = o.json;
  request.options.top_logprobs = o.top_logprobs;
  TextOrIds prompt =
      TRY(read_source(o.prompt, o.config.model_path,
                      "PROMPT, --prompt-ids 1,2,3, --prompt-file FILE, - for stdin"));
  request.text = std::move(prompt.text);
  request.ids = std::move(prompt.ids);
  return request;
}

void print_plain(const Llm& llm, const Generation& g, bool streamed) {
  if (!llm.has_tokenizer()) {  // no text; only ids can be shown
    write_stdout(fmt::format("{}\n", fmt::join(g.output_ids, ",")));
  } else if (streamed) {
    write_stdout("\n");
  } else {
    write_stdout(g.text + "\n");
  }
}

// Wraps the prompt as a user message in the model's chat template.
Status ask_in_chat(const Llm& llm, const GenerateOptions& o, TextRequest& request) {
  if (!llm.has_chat_template()) {
    return invalid_argument(
        "{} has no chat template; leave out --chat, or give one with "
        "--chat-template FILE",
        o.config.model_path);
  }
  request.text = TRY(llm.apply_chat_template({{.role = "user", .content = request.text}}));
  request.add_special_tokens = false;
  return {};
}

// Chat models often reply to a bare text with nothing.
void note_bare_prompt(const Llm& llm, const GenerateOptions& o, const Generation& g) {
  bool bare = llm.has_chat_template() && !o.chat && !o.prompt.ids && !o.no_special_tokens;
  bool blank = g.text.find_first_not_of(" \n\t") == std::string::npos;
  if (!bare || !(blank || stderr_is_terminal())) return;
  fmt::print(stderr,
             "{}banyan: this model is made for chats, and {} the bare prompt{}; --chat asks it as "
             "a message{}\n",
             dim(), blank ? "wrote nothing after" : "continued", blank ? "" : " as text", undim());
}

Result<int> generate(const GenerateOptions& o) {
  TextRequest request = TRY(make_request(o));
  std::unique_ptr<Llm> llm = TRY(load_llm(o.config));
  if (o.chat) TRY(ask_in_chat(*llm, o, request));
  InterruptScope interrupt(InterruptScope::Second::kEndsProgram);
  TextSink sink;
  if (o.stream) sink = write_stdout;
  Generation g = TRY(llm->generate(request, sink, InterruptScope::raised));
  if (o.json) {
    Json json = to_json(*llm, g, request);
    if (o.config.expert_counts) {
      json["expert_counts"] = expert_counts_json(llm->engine().expert_counts());
    }
    fmt::print("{}\n", dump_json(json));
  } else {
    print_plain(*llm, g, o.stream);
    for (const std::string& note : g.grammar_notes) fmt::print(stderr, "banyan: {}\n", note);
  }
  note_bare_prompt(*llm, o, g);
  return g.finish == FinishReason::kCancelled ? kExitInterrupt : kExitSuccess;
}

VerbAction declare_generate(CLI::App& app) {
  auto o = std::make_shared<GenerateOptions>();
  NextWord prompt{"PROMPT", "The text to continue; - reads it from stdin, byte for byte",
                  &o->prompt.positional};
  add_model_options(app, o->config, {.next = prompt});
  app.add_option("--prompt,-p", o->prompt.text, "The same as PROMPT")->type_name("TEXT");
  app.add_option("--prompt-file,-f,--file", o->prompt.file,
                 "The prompt is this file, byte for byte")
      ->type_name("FILE");
  app.add_option("--prompt-ids", o->prompt.ids, "The prompt as token ids")->type_name("1,2,3");
  app.add_flag("--chat", o->chat, "Ask PROMPT as a message, through the model's chat template");
  add_length_option(app, o->max_new_tokens,
                    "Length of the output at most, in tokens; -1: the rest of the context");
  add_sampling_options(app, o->sampling, "0: the same output every time");
  add_adapter_options(app, o->config, o->sampling.adapters);
  add_grammar_options(app, o->grammar);
  app.add_flag("--stream", o->stream, "Print the text while it is generated");
  app.add_flag("--json", o->json, "Print one JSON object with text, ids, logprobs and timings");
  OptionGroup group(app, "Tokens");
  app.add_flag("--no-special-tokens", o->no_special_tokens,
               "Do not prepend the beginning-of-text token");
  app.add_option("--top-logprobs", o->top_logprobs,
                 "With --json: alternatives to list for each token")
      ->check(between(0, o->config.top_logprobs_max))
      ->type_name("N");
  app.add_flag("--expert-counts", o->config.expert_counts,
               "With --json: how often each expert of each layer was chosen");
  add_peer_options(app);
  o->config.running_max = 1;
  return [o] { return generate(*o); };
}

}  // namespace

const Verb kGenerateVerb = {
    "generate", "Continue a text",
    "  banyan generate models/Qwen3-0.6B \"Once upon a time\" --stream -n 200\n"
    "  banyan generate models/Qwen3-0.6B \"Why is the sky blue?\" --chat\n"
    "  cat prompt.txt | banyan generate models/Qwen3-0.6B --temp 0.7 --seed 1 -\n"
    "  banyan generate models/Qwen3-0.6B \"Paris is in\" --choice France --choice Spain\n"
    "  banyan generate models/Qwen3-0.6B \"A user: \" --json-schema user.json\n"
    "\n"
    "The JSON object has prompt_ids, output_ids, text, finish_reason (stop, length, cancelled),\n"
    "matched_stop (the token id or string), prompt_tokens, completion_tokens, cached_tokens,\n"
    "logprobs [{id, token, logprob, top}], timings, the seed, and with a grammar not_enforced,\n"
    "the parts of a schema that --relaxed-schema left out. A `token` is the text that its bytes\n"
    "stand for, with U+FFFD for part of a character. Ctrl-C prints what there is so far.\n"
    "A grammar's output ends where the grammar does, or where --max-tokens cuts it.\n",
    declare_generate, respell_peer_option};

}  // namespace banyan::cli
