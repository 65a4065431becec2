#include "program/remote/backend.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "client/event_stream.h"

namespace banyan {
namespace {

constexpr size_t kAnswerBytesMax = 256 << 20;

class RemoteBackend final : public Backend {
 public:
  RemoteBackend(Transport transport, RemoteOptions options)
      : transport_(std::move(transport)), options_(std::move(options)) {}

  std::string name() const override { return options_.name; }
  bool takes_messages() const override { return api() == ServingApi::kChat; }
  bool may_speculate() const override { return api() != ServingApi::kSglang; }
  bool continues_answers() const override {
    return api() != ServingApi::kChat || options_.style.continues_answers;
  }
  bool can_prefill() const override { return api() == ServingApi::kSglang; }
  Result<std::string> render(const std::vector<ChatMessage>& messages, bool answer) const override;

  Cancel generate(GenCall call, PieceSink piece, Done<GenResult> done) override;
  Cancel score(ScoreCall call, Done<ScoreResult> done) override;
  Cancel prefill(Prompt prompt, Done<CallUsage> done) override;

 private:
  // A complete answer as JSON, or an error.
  using TakeJson = std::function<void(Result<Json>)>;

  ServingApi api() const { return options_.style.api; }
  Cancel ask(std::string body, TakeJson take);
  Cancel stream(std::string body, PieceSink piece, Done<GenResult> done);
  Error server_error(int status, std::string_view body) const;

  const Transport transport_;
  const RemoteOptions options_;
};

// The server prepends the beginning-of-text token; drop it if the template writes one, or it would
// be doubled.
Result<std::string> RemoteBackend::render(const std::vector<ChatMessage>& messages,
                                          bool answer) const {
  if (!options_.chat_template) {
    return unsupported(
        "{} takes text, and messages need the model's chat template: name its folder "
        "(ConnectOptions::template_path), or use the chat API",
        name());
  }
  Json variables = Json::object();
  for (const auto& [token, text] : options_.special.named) variables[token] = text;
  Json list = Json::array();
  for (const ChatMessage& m : messages) {
    list.push_back({{"role", m.role}, {"content", m.content}});
  }
  variables["messages"] = std::move(list);
  variables["tools"] = Json();
  variables["documents"] = Json();
  variables["add_generation_prompt"] = answer;
  std::string text = TRY(options_.chat_template->render(variables));
  auto begin = options_.special.named.find("bos_token");
  if (begin != options_.special.named.end() && text.starts_with(begin->second)) {
    text.erase(0, begin->second.size());
  }
  return text;
}

Error RemoteBackend::server_error(int status, std::string_view body) const {
  ErrorCode code = status == 503 || status == 429 ? ErrorCode::kExhausted
                   : status >= 500                ? ErrorCode::kIo
                                                  : ErrorCode::kInvalidArgument;
  return make_error(code, fmt::format("{} answers {}: {}", name(), status, error_message(body)))
      .error();
}

// --- exchanges ------------------------------------------------------------------------------

Backend::Cancel RemoteBackend::ask(std::string body, TakeJson take) {
  auto answer = std::make_shared<std::string>();
  ClientSinks sinks;
  sinks.body = [answer](int, std::string_view piece) {
    if (answer->size() + piece.size() <= kAnswerBytesMax) *answer += piece;
  };
  sinks.end = [this, answer, take = std::move(take)](int status, Status outcome) {
    if (!outcome) {
      const Error& error = outcome.error();
      return take(make_error(error.code, fmt::format("{}: {}", name(), error.message)));
    }
    if (status != 200) return take(std::unexpected(server_error(status, *answer)));
    JsonLimits limits{.bytes_max = kAnswerBytesMax};
    take(parse_json(*answer, "the answer of " + name(), limits));
  };
  return transport_({.path = path_of(api()), .body = std::move(body)}, std::move(sinks));
}

Backend::Cancel RemoteBackend::stream(std::string body, PieceSink piece, Done<GenResult> done) {
  struct Run {
    EventStream events;
    GenResult result;
    std::string refusal;  // the body of an error response
    std::optional<Error> error;
  };
  auto run = std::make_shared<Run>();
  run->result.info.usage.calls = 1;
  ClientSinks sinks;
  sinks.body = [this, run, piece = std::move(piece)](int status, std::string_view bytes) {
    if (status != 200) {
      if (run->refusal.size() < 4096) run->refusal += bytes;
      return;
    }
    Status fed = run->events.feed(bytes, [&](std::string_view data) {
      if (data == "[DONE]" || run->error) return;
      EventFacts facts = read_event(api(), data);
      Result<Json> event = parse_json(data, "an event of " + name());
      Result<std::string> text = !facts.error.empty()
                                     ? make_error(ErrorCode::kIo, name() + ": " + facts.error)
                                 : event ? read_gen_event(api(), *event, run->result)
                                         : std::unexpected(event.error());
      if (!text) {
        run->error = text.error();
      } else if (!text->empty()) {
        piece(*text);
      }
    });
    if (!fed && !run->error) run->error = fed.error();
  };
  sinks.end = [this, run, done = std::move(done)](int status, Status outcome) {
    if (!outcome) return done(std::unexpected(outcome.error()));
    if (status != 200) return done(std::unexpected(server_error(status, run->refusal)));
    if (run->error) return done(std::unexpected(*run->error));
    if (run->result.info.finish == FinishReason::kNone) {
      return done(corrupt("{}: the stream ends without a finish reason", name()));
    }
    done(std::move(run->result));
  };
  return transport_({.path = path_of(api()), .body = std::move(body)}, std::move(sinks));
}

// --- calls ----------------------------------------------------------------------------------

// A server may silently ignore fields it does not know, so the result is checked.
Status check_grammar(const GenCall& call, const GenResult& result, const std::string& name) {
  const std::optional<GrammarSource>& source = call.options.grammar;
  if (!source) return {};
  Grammar grammar = TRY(Grammar::from_source(*source));
  bool ended = result.info.finish == FinishReason::kStop && !result.info.matched_stop;
  bool follows = ended ? grammar.matches(result.text) : grammar.matches_prefix(result.text);
  // The server chooses whitespace; nothing else may differ.
  bool json = source->kind == GrammarSource::Kind::kJsonSchema ||
              source->kind == GrammarSource::Kind::kJsonObject;
  if (follows || json) return {};
  return unsupported("{} did not follow the grammar of the gen: it wrote {}", name,
                     quote(result.text));
}

Backend::Cancel RemoteBackend::generate(GenCall call, PieceSink piece, Done<GenResult> done) {
  if (!call.prompt.answer.empty() && !continues_answers()) {
    return refuse(
        unsupported("{} cannot continue a partial assistant message ({}): write "
                    "assistant(gen(...)), set ConnectOptions::continues_answers if the server "
                    "knows continue_final_message, or RunOptions::speculation_tokens",
                    name(), quote(call.prompt.answer)),
        done);
  }
  if (call.options.logprobs) piece = nullptr;  // only unstreamed answers include logprobs
  Result<std::string> body = gen_body(options_.style, call, static_cast<bool>(piece));
  if (!body) return refuse(std::unexpected(body.error()), done);
  auto check = [this, call = std::move(call), done = std::move(done)](Result<GenResult> result) {
    if (!result) return done(std::move(result));
    Status follows = check_grammar(call, *result, name());
    if (!follows) return done(std::unexpected(follows.error()));
    if (!call.options.logprobs) result->info.logprobs.clear();
    done(std::move(result));
  };
  if (piece) return stream(*std::move(body), std::move(piece), std::move(check));
  return ask(*std::move(body), [this, check = std::move(check)](Result<Json> answer) {
    if (!answer) return check(std::unexpected(answer.error()));
    Result<GenResult> result = read_gen(api(), *answer);
    if (!result) {
      return check(make_error(result.error().code, name() + ": " + result.error().message));
    }
    check(std::move(result));
  });
}

Backend::Cancel RemoteBackend::prefill(Prompt prompt, Done<CallUsage> done) {
  return ask(prefill_body(prompt.text), [this, done = std::move(done)](Result<Json> answer) {
    if (!answer) return done(std::unexpected(answer.error()));
    Result<GenResult> result = read_gen(api(), *answer);
    if (!result) return done(std::unexpected(result.error()));
    done(result->info.usage);
  });
}

// --- score ----------------------------------------------------------------------------------

// Extracts what the texts add to the prompt; the prompt's own tokens come first in `scored`.
Result<ScoreResult> take_scores(const std::vector<ScoredPrompt>& scored, const ScoreCall& call) {
  if (scored.size() != call.texts.size() + 1) {
    return corrupt("{} prompts were scored, not {}", scored.size(), call.texts.size() + 1);
  }
  const std::vector<PromptToken>& prefix = scored.front().tokens;
  ScoreResult result;
  for (const ScoredPrompt& one : scored) {
    result.usage.calls += one.usage.calls;
    result.usage.prompt_tokens += one.usage.prompt_tokens;
    result.usage.cached_tokens += one.usage.cached_tokens;
  }
  for (size_t i = 1; i < scored.size(); ++i) {
    const std::vector<PromptToken>& tokens = scored[i].tokens;
    size_t at = 0;
    while (at < prefix.size() && at < tokens.size() && prefix[at].same(tokens[at])) ++at;
    ScoredText& text = result.texts.emplace_back();
    for (; at < tokens.size(); ++at) {
      if (tokens[at].logprob) text.tokens.push_back({tokens[at].id, *tokens[at].logprob});
    }
    if (text.tokens.empty()) {
      return invalid_argument("the text {} adds no token to the prompt", quote(call.texts[i - 1]));
    }
  }
  return result;
}

// A score takes up to three exchanges, each started when the previous one ends. With /generate:
// count the prompt's tokens (which also caches it), score the texts after it, then score their
// tokens alone. `next` is the exchange that can be cancelled.
struct ScoreRun {
  ScoreCall call;
  ScoreResult result;
  Backend::Done<ScoreResult> done;
  std::mutex mutex;
  Backend::Cancel next;
  bool cancelled = false;

  void follow(Backend::Cancel cancel) {
    std::unique_lock lock(mutex);
    next = cancel;
    bool late = cancelled;
    lock.unlock();
    if (late) cancel();
  }
  void cancel() {
    std::unique_lock lock(mutex);
    cancelled = true;
    Backend::Cancel now = next;
    lock.unlock();
    if (now) now();
  }
};

Backend::Cancel RemoteBackend::score(ScoreCall call, Done<ScoreResult> done) {
  if (api() == ServingApi::kChat) {
    return refuse(unsupported("{} does not return prompt logprobs, which select and score need; "
                              "use gen with choices or a regex",
                              name()),
                  done);
  }
  if (call.unconditional && api() != ServingApi::kSglang) {
    return refuse(
        unsupported("{}: kUnconditionalNormalized needs tokens as prompts; use /generate", name()),
        done);
  }
  auto run = std::make_shared<ScoreRun>();
  run->call = std::move(call);
  run->done = std::move(done);
  auto alone = [this, run] {  // the last exchange
    std::vector<std::vector<TokenId>> ids;
    for (const ScoredText& text : run->result.texts) {
      ids.emplace_back();
      for (const TokenLogprob& token : text.tokens) ids.back().push_back(token.token);
    }
    run->follow(ask(score_ids_body(ids), [this, run](Result<Json> answer) {
      if (!answer) return run->done(std::unexpected(answer.error()));
      auto scored = read_scores(api(), *answer);
      if (!scored) return run->done(std::unexpected(scored.error()));
      if (scored->size() != run->result.texts.size()) {
        return run->done(corrupt("{}: {} prompts were scored, not {}", name(), scored->size(),
                                 run->result.texts.size()));
      }
      for (size_t i = 0; i < scored->size(); ++i) {
        ScoredText& text = run->result.texts[i];
        text.unconditional.assign(text.tokens.size(), 0);
        const std::vector<PromptToken>& tokens = (*scored)[i].tokens;
        for (size_t t = 0; t < std::min(tokens.size(), text.tokens.size()); ++t) {
          text.unconditional[t] = tokens[t].logprob.value_or(0);
        }
        ++run->result.usage.calls;
        run->result.usage.prompt_tokens += (*scored)[i].usage.prompt_tokens;
      }
      run->done(std::move(run->result));
    }));
  };
  auto behind = [this, run, alone](int64_t start) {
    std::vector<std::string> prompts = {run->call.prompt.text};
    for (const std::string& text : run->call.texts) prompts.push_back(prompts.front() + text);
    run->follow(ask(score_body(options_.style, prompts, start), [=, this](Result<Json> answer) {
      if (!answer) return run->done(std::unexpected(answer.error()));
      auto scored = read_scores(api(), *answer);
      if (!scored) return run->done(std::unexpected(scored.error()));
      Result<ScoreResult> result = take_scores(*scored, run->call);
      if (!result || !run->call.unconditional) return run->done(std::move(result));
      run->result = *std::move(result);
      alone();
    }));
  };
  if (api() != ServingApi::kSglang) {
    behind(0);
  } else {
    run->follow(ask(prefill_body(run->call.prompt.text), [run, behind](Result<Json> answer) {
      if (!answer) return run->done(std::unexpected(answer.error()));
      Result<GenResult> prefix = read_gen(ServingApi::kSglang, *answer);
      if (!prefix) return run->done(std::unexpected(prefix.error()));
      // The prompt's last token, rarely the last two, may merge with the start of a text.
      behind(std::max<int64_t>(prefix->info.usage.prompt_tokens - 2, 0));
    }));
  }
  return [run] { run->cancel(); };
}

}  // namespace

std::shared_ptr<Backend> remote_backend(Transport transport, RemoteOptions options) {
  return std::make_shared<RemoteBackend>(std::move(transport), std::move(options));
}

namespace {

// As the first of the servers says that answers.
Result<std::string> model_of(const std::string& urls, const std::string& api_key) {
  HttpClient::Headers headers = TRY(auth_headers(api_key));
  Status failed;
  for (size_t begin = 0; begin < urls.size();) {
    size_t end = std::min(urls.find(',', begin), urls.size());
    std::string url = urls.substr(begin, end - begin);
    begin = end + 1;
    boost::asio::io_context io;
    HttpClient client(io, TRY(parse_server_url(url)), headers);
    failed = client.resolve();
    if (!failed) continue;
    Result<ServerFacts> facts = ask_server(client, url);
    if (facts) return facts->model;
    failed = std::unexpected(facts.error());
  }
  return std::unexpected(failed.error());
}

}  // namespace

Result<std::shared_ptr<Backend>> connect_backend(const std::string& url, ConnectOptions options) {
  RemoteOptions remote;
  remote.style.api = options.api == RemoteApi::kGenerate      ? ServingApi::kSglang
                     : options.api == RemoteApi::kCompletions ? ServingApi::kCompletions
                                                              : ServingApi::kChat;
  remote.style.continues_answers = options.continues_answers;
  remote.style.model = options.model;
  remote.name = url + path_of(remote.style.api);
  if (remote.style.model.empty() && options.api != RemoteApi::kGenerate) {
    remote.style.model = TRY(model_of(url, options.api_key));
  }
  if (!options.template_path.empty()) {
    TokenizerConfig config = TRY(read_tokenizer_config(options.template_path));
    if (!config.chat_template) {
      return unsupported("{} has no chat template", options.template_path);
    }
    remote.chat_template = TRY(ChatTemplate::parse(*config.chat_template));
    remote.special = config.special;
  }
  return remote_backend(TRY(http_transport(url, options.api_key)), std::move(remote));
}

}  // namespace banyan
