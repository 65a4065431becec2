// Llm: loads a model with its text parts, and runs requests on the caller's thread.
#include "banyan/llm.h"
#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/gguf.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/signed.h"
#include "engine/assemble.h"
#include "grammar/compiler.h"
#include "llm/chat_prompt.h"
#include "llm/chat_template_cache.h"
#include "llm/dry_breakers.h"
#include "llm/embedding.h"
#include "llm/generation_builder.h"
#include "llm/generation_config.h"
#include "llm/llm_parts.h"
#include "text/tokenizer/gguf_tokenizer.h"

namespace banyan {
namespace {

Result<bool> comes_with_tokenizer(const std::string& model) {
  if (!is_gguf_file(model)) {
    return file_exists(model + "/tokenizer.json") || file_exists(model + "/tiktoken.model");
  }
  MappedFile file = TRY(MappedFile::open(model));
  return has_gguf_tokenizer(TRY(GgufPairs::parse(file.bytes(), model)));
}

// The draft model's token ids must mean the same as the model's.
Status check_draft_tokenizer(const EngineConfig& config, const Tokenizer& tokenizer) {
  auto draft = TRY(Tokenizer::load(config.draft_model_path));
  int sizes[] = {tokenizer.vocab_size(), draft->vocab_size()};
  for (TokenId id = 0; id < std::min(sizes[0], sizes[1]); ++id) {
    if (tokenizer.token(id) == draft->token(id)) continue;
    return invalid_argument(
        "the draft model {} has another vocabulary ({} tokens) than {} ({} tokens): token {} is {} "
        "in one and {} in the other; take a smaller model of the same family",
        config.draft_model_path, sizes[1], config.model_path, sizes[0], id, quote(draft->token(id)),
        quote(tokenizer.token(id)));
  }
  return {};
}

}  // namespace

class Llm::Impl {
 public:
  static Result<std::unique_ptr<Impl>> load(const EngineConfig& config,
                                            const LoadProgress& progress,
                                            EngineAssembly::Storage storage = {});
  static Result<std::unique_ptr<Impl>> load_without_engine(const EngineConfig& config);

  Result<Generation> generate(const TextRequest& request, const TextSink& sink,
                              const std::function<bool()>& cancelled);
  Result<std::vector<std::optional<float>>> score(const std::vector<TokenId>& ids,
                                                  const std::string& adapter);
  Result<std::vector<std::vector<float>>> embed(const std::vector<TextRequest>& texts,
                                                int64_t dimensions);
  Result<GenerateRequest> to_tokens(const TextRequest& request, CompiledGrammarPtr compiled) const;
  Result<std::vector<TokenId>> encode(std::string_view text, bool add_special_tokens) const;
  Result<const ChatTemplate*> find_chat_template() const;
  Result<std::shared_ptr<const ChatTemplate>> request_template(const std::string& source) const {
    return chat_templates_.find(source);
  }
  Result<CompiledGrammarPtr> compile(const GrammarSource& grammar) const;
  CompiledGrammarPtr compiled(const GrammarSource& grammar) const;
  std::shared_ptr<TokenConstraint> constraint(const GenerationOptions& options,
                                              CompiledGrammarPtr grammar) const;
  GrammarStats grammar_stats() const;

  EngineConfig config;
  std::unique_ptr<Engine> engine;  // null: it runs elsewhere
  EngineInfo info;
  std::unique_ptr<Tokenizer> tokenizer;  // null without tokenizer files
  // Absent, or the result of parsing: a template that cannot be parsed fails chats, not
  // completions.
  std::optional<Result<ChatTemplate>> chat_template;
  SamplingParams recommended;
  EmbeddingConfig embedding;
  double load_s = 0;

 private:
  Status load_text();
  Status check_ends() const;
  Status check_engine(std::string_view what) const;
  Status check(const GenerationOptions& options) const;
  Status check_dry(const SamplingParams& sampling) const;
  void resolve_dry(SamplingParams& sampling) const;
  GrammarCompiler& compiler() const;

  std::vector<TokenId> eos_ids_;
  // Created for the first grammar: a table over the vocabulary that most programs never need.
  mutable std::mutex compiler_mutex_;
  mutable std::unique_ptr<GrammarCompiler> compiler_;
  mutable std::atomic<GrammarCompiler*> made_compiler_ = nullptr;
  mutable ChatTemplateCache chat_templates_;
  mutable DryBreakerCache dry_breakers_;
};

// Small files first, so that an error in them shows before gigabytes are read.
Status Llm::Impl::load_text() {
  const std::string& folder = config.model_path;
  if (TRY(comes_with_tokenizer(folder))) {
    tokenizer = TRY(Tokenizer::load(folder));
    eos_ids_ = tokenizer->special().eos_ids;
    bool replaced = !config.chat_template.empty();
    if (replaced) tokenizer->set_chat_template(TRY(read_chat_template(config.chat_template)));
    if (const auto& source = tokenizer->chat_template()) {
      chat_template.emplace(ChatTemplate::parse(*source));
      if (replaced && !*chat_template) {
        return invalid_argument("chat template: {}", chat_template->error().message);
      }
    }
  } else {
    if (!config.chat_template.empty()) {
      return invalid_argument("a chat template needs a tokenizer; {} has none", folder);
    }
    eos_ids_ = TRY(read_tokenizer_config(folder)).special.eos_ids;
  }
  if (tokenizer != nullptr && !config.draft_model_path.empty() &&
      TRY(comes_with_tokenizer(config.draft_model_path))) {
    TRY(check_draft_tokenizer(config, *tokenizer));
  }
  embedding = read_embedding_config(config);
  if (config.sampling_defaults == "model") recommended = TRY(read_recommended_sampling(folder));
  return {};
}

Status Llm::Impl::check_ends() const {
  for (TokenId eos : eos_ids_) {
    if (eos >= 0 && eos < info.vocabulary) continue;
    return corrupt(
        "{}: the end of sequence {} is outside the vocabulary of {} tokens, so no answer would "
        "end; "
        "correct eos_token_id in config.json, generation_config.json or tokenizer_config.json",
        config.model_path, eos, info.vocabulary);
  }
  return {};
}

Result<std::unique_ptr<Llm::Impl>> Llm::Impl::load(const EngineConfig& config,
                                                   const LoadProgress& progress,
                                                   EngineAssembly::Storage storage) {
  auto begin = std::chrono::steady_clock::now();
  auto impl = std::make_unique<Impl>();
  impl->config = config;
  TRY(impl->load_text());
  impl->engine =
      TRY(EngineAssembly::load(config, registered_families(), progress, {}, std::move(storage)));
  impl->info = impl->engine->info();
  spdlog::info("kernels {}: {}", impl->info.kernels, impl->info.kernels_reason);
  TRY(impl->check_ends());
  impl->load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return impl;
}

// A model that is only planned has made-up weights and little memory.
Result<std::unique_ptr<Llm::Impl>> Llm::Impl::load_without_engine(const EngineConfig& config) {
  auto impl = std::make_unique<Impl>();
  impl->config = config;
  TRY(impl->load_text());
  EngineConfig plan = config;
  plan.load_format = "dummy";
  plan.kernels = "portable";
  plan.threads = 1;
  plan.state_digest = false;
  plan.total_tokens_max = 16 * plan.page_size_tokens;
  impl->info = TRY(inspect_model(plan));
  // Who has an engine knows how much of a prompt it has room for.
  impl->info.total_tokens_max = impl->info.context_length_tokens;
  TRY(impl->check_ends());
  return impl;
}

Status Llm::Impl::check_engine(std::string_view what) const {
  if (engine != nullptr) return {};
  return unsupported("{} needs the engine, and {} was loaded without one", what, config.model_path);
}

Status Llm::Impl::check(const GenerationOptions& options) const {
  if (narrow<int>(options.stop.size()) > config.stop_strings_max) {
    return invalid_argument("{} stop strings, the limit is {}", options.stop.size(),
                            config.stop_strings_max);
  }
  for (const std::string& stop : options.stop) {
    if (stop.empty()) return invalid_argument("a stop string is empty");
    if (narrow<int>(stop.size()) > config.stop_string_bytes_max) {
      return invalid_argument("a stop string has {} bytes, the limit is {}", stop.size(),
                              config.stop_string_bytes_max);
    }
  }
  if (tokenizer == nullptr && !(options.stop.empty() && options.stop_regex.empty())) {
    return unsupported("stop strings and regexes need a tokenizer; {} has none", config.model_path);
  }
  return {};
}

Status Llm::Impl::check_dry(const SamplingParams& sampling) const {
  if (!sampling.dry_sequence_breakers) return {};
  const std::vector<std::string>& breakers = *sampling.dry_sequence_breakers;
  if (narrow<int>(breakers.size()) > config.stop_strings_max) {
    return invalid_argument("dry_sequence_breakers has {} strings, the limit is {}",
                            breakers.size(), config.stop_strings_max);
  }
  for (const std::string& breaker : breakers) {
    if (!breaker.empty() && breaker.size() <= kDryBreakerBytesMax) continue;
    return invalid_argument("dry_sequence_breakers: a string has {} bytes; it must have 1 to {}",
                            breaker.size(), kDryBreakerBytesMax);
  }
  if (tokenizer == nullptr && !breakers.empty()) {
    return unsupported("dry_sequence_breakers need a tokenizer; {} has none", config.model_path);
  }
  return {};
}

// Translates strings to tokens for the engine.
void Llm::Impl::resolve_dry(SamplingParams& sampling) const {
  auto strings = std::exchange(sampling.dry_sequence_breakers, std::nullopt);
  if (!sampling.has_dry() || tokenizer == nullptr || sampling.dry_breakers) return;
  sampling.dry_breakers =
      dry_breakers_.find(*tokenizer, strings ? *strings : default_dry_breakers());
}

Result<std::vector<TokenId>> Llm::Impl::encode(std::string_view text,
                                               bool add_special_tokens) const {
  if (tokenizer == nullptr) {
    return unsupported("{} has no tokenizer.json or tiktoken.model; give the prompt as token ids",
                       config.model_path);
  }
  return tokenizer->encode(text, {.add_special_tokens = add_special_tokens});
}

Result<GenerateRequest> Llm::Impl::to_tokens(const TextRequest& request,
                                             CompiledGrammarPtr compiled) const {
  TRY(check(request.options));
  TRY(check_dry(request.sampling));
  GenerateRequest tokens{
      .prompt = request.ids, .sampling = request.sampling, .options = request.options};
  resolve_dry(tokens.sampling);
  if (tokens.prompt.empty()) {
    tokens.prompt = TRY(encode(request.text, request.add_special_tokens));
  }
  GenerationOptions& options = tokens.options;
  options.stop.clear();  // TextStream handles these
  options.stop_regex.clear();
  if (std::string prediction = std::exchange(options.prediction, {}); !prediction.empty()) {
    if (tokenizer == nullptr) {
      return unsupported("a prediction needs a tokenizer; {} has none", config.model_path);
    }
    options.prediction_token_ids =
        TRY(tokenizer->encode(prediction, {.add_special_tokens = false, .parse_special = false}));
  }
  if (std::exchange(options.grammar, std::nullopt)) {
    if (!compiled) compiled = TRY(compile(*request.options.grammar));
    tokens.constraint = constraint(request.options, std::move(compiled));
    options.min_new_tokens = 0;  // the constraint handles it
  } else if (options.ignore_eos) {
    return tokens;
  }
  for (TokenId end : eos_ids_) options.stop_token_ids.push_back(end);
  return tokens;
}

Result<CompiledGrammarPtr> Llm::Impl::compile(const GrammarSource& grammar) const {
  if (tokenizer == nullptr) {
    return unsupported("a grammar needs a tokenizer; {} has no tokenizer.json or tiktoken.model",
                       config.model_path);
  }
  if (eos_ids_.empty()) {
    return unsupported("a grammar needs an end-of-text token, but {} defines no eos_token_id",
                       config.model_path);
  }
  return compiler().compile(grammar);
}

CompiledGrammarPtr Llm::Impl::compiled(const GrammarSource& grammar) const {
  GrammarCompiler* made = made_compiler_;
  return made != nullptr ? made->find(grammar) : nullptr;
}

GrammarCompiler& Llm::Impl::compiler() const {
  std::lock_guard lock(compiler_mutex_);
  if (compiler_) return *compiler_;
  auto tokenize = [this](std::string_view text) {
    auto ids = tokenizer->encode(text, {.add_special_tokens = false, .parse_special = false});
    return ids ? *std::move(ids) : std::vector<TokenId>();
  };
  auto vocabulary = TokenVocabulary::make(*tokenizer, eos_ids_, narrow<int>(info.vocabulary));
  compiler_ = std::make_unique<GrammarCompiler>(std::move(vocabulary), std::move(tokenize),
                                                GrammarCompiler::Options{});
  made_compiler_ = compiler_.get();
  return *compiler_;
}

std::shared_ptr<TokenConstraint> Llm::Impl::constraint(const GenerationOptions& options,
                                                       CompiledGrammarPtr grammar) const {
  EarlyStops early{.tokens_min = options.min_new_tokens, .stops = eos_ids_};
  if (options.ignore_eos) {
    early.tokens_min = std::numeric_limits<int64_t>::max();
  } else {
    for (TokenId stop : options.stop_token_ids) {
      if (stop >= 0 && stop < info.vocabulary) early.stops.push_back(stop);
    }
  }
  return std::make_shared<Matcher>(std::move(grammar), std::move(early));
}

GrammarStats Llm::Impl::grammar_stats() const {
  const GrammarCompiler* made = made_compiler_;
  return made != nullptr ? made->counters() : GrammarStats();
}

Result<Generation> Llm::Impl::generate(const TextRequest& request, const TextSink& sink,
                                       const std::function<bool()>& cancelled) {
  TRY(check_engine("generate"));
  Generation generation;
  StopRegexes stops = TRY(compile_stop_regexes(request.options.stop_regex));
  CompiledGrammarPtr compiled;
  if (request.options.grammar) {
    compiled = TRY(compile(*request.options.grammar));
    generation.grammar_notes = compiled->grammar.notes();
  }
  GenerateRequest tokens = TRY(to_tokens(request, std::move(compiled)));
  generation.prompt_ids = tokens.prompt;
  GenerationBuilder builder(request.options, std::move(stops), tokenizer.get(),
                            std::move(generation));
  auto emit = [&](const std::string& piece) {
    if (sink && !piece.empty()) sink(piece);
  };
  bool ended = false;  // in the engine; a stop string or cancellation may come before
  SequenceId id = TRY(engine->submit(std::move(tokens), [&](const TokenEvent& event) {
    emit(builder.take(event).text);
    ended = event.finish != FinishReason::kNone;
  }));
  while (!ended) {
    engine->step();
    if (!builder.done() && cancelled && cancelled()) emit(builder.cancel());
    if (builder.done()) engine->cancel(id);
  }
  return builder.finish();
}

Result<std::vector<std::optional<float>>> Llm::Impl::score(const std::vector<TokenId>& ids,
                                                           const std::string& adapter) {
  TRY(check_engine("score"));
  std::vector<std::optional<float>> logprobs(ids.size());
  std::optional<Error> error;
  bool done = false;
  TRY(engine->submit(
      {.prompt = ids,
       .options = {.max_new_tokens = 0, .prompt_logprobs_begin = 0, .adapter = adapter}},
      [&](const TokenEvent& event) {
        if (event.has_token) {
          at(logprobs, event.position) = event.logprob;
        }
        if (event.finish == FinishReason::kError) error = event.error;
        done = event.finish != FinishReason::kNone;
      }));
  while (!done && engine->step()) {
  }
  if (error) return std::unexpected(*error);
  return logprobs;
}

// All at once, in batches, since there may be many short texts.
Result<std::vector<std::vector<float>>> Llm::Impl::embed(const std::vector<TextRequest>& texts,
                                                         int64_t dimensions) {
  TRY(check_engine("embed"));
  TRY(check_dimensions(dimensions, info.hidden));
  Pooling pooling = TRY(embedding.pooling);
  std::vector<GenerateRequest> requests;
  for (const TextRequest& text : texts) {
    requests.push_back(TRY(to_tokens(embedding_request(text, pooling), nullptr)));
  }
  std::vector<std::vector<float>> embeddings(texts.size());
  std::optional<Error> error;
  size_t submitted = 0, done = 0;
  auto submit = [&]() -> Status {
    TRY(engine->submit(std::move(requests[submitted]), [&, i = submitted](const TokenEvent& event) {
      if (event.finish == FinishReason::kNone) return;
      ++done;
      if (event.finish == FinishReason::kError) error = event.error;
      if (!error) embeddings[i] = normalised(event.embedding, dimensions);
    }));
    ++submitted;
    return {};
  };
  for (;;) {
    while (!error && submitted < requests.size() && engine->stats().queued < config.queued_max) {
      if (Status queued = submit(); !queued) error = queued.error();
    }
    if (done == submitted) break;
    engine->step();
  }
  if (error) return std::unexpected(*error);
  return embeddings;
}

Result<const ChatTemplate*> Llm::Impl::find_chat_template() const {
  if (!chat_template) {
    return unsupported(
        "{} has no chat template; give one with --chat-template FILE, or the prompt as plain text, "
        "as /v1/completions takes it",
        config.model_path);
  }
  if (!*chat_template) {
    return corrupt("{}: {}", config.model_path, chat_template->error().message);
  }
  return &**chat_template;
}

Llm::Llm(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Llm::~Llm() = default;

Result<std::unique_ptr<Llm>> Llm::load(const EngineConfig& config, const LoadProgress& progress) {
  return load_with_storage(config, progress, {});
}

Result<std::unique_ptr<Llm>> Llm::load_without_engine(const EngineConfig& config) {
  return guard([&]() -> Result<std::unique_ptr<Llm>> {
    auto impl = TRY(Impl::load_without_engine(config));
    return std::unique_ptr<Llm>(new Llm(std::move(impl)));
  });
}

Result<Generation> Llm::generate(const TextRequest& request, const TextSink& sink,
                                 const std::function<bool()>& cancelled) {
  return guard([&] { return impl_->generate(request, sink, cancelled); });
}

Result<std::vector<std::optional<float>>> Llm::score(const std::vector<TokenId>& ids,
                                                     const std::string& adapter) {
  return impl_->score(ids, adapter);
}

Result<std::vector<std::vector<float>>> Llm::embed(const std::vector<TextRequest>& texts,
                                                   int64_t dimensions) {
  return guard([&] { return impl_->embed(texts, dimensions); });
}
Result<Pooling> Llm::pooling() const {
  return impl_->embedding.pooling;
}
bool Llm::is_embedding_model() const {
  return impl_->embedding.intended || !impl_->info.generates;
}

Result<GenerateRequest> Llm::to_tokens(const TextRequest& request) const {
  return guard([&] { return impl_->to_tokens(request, nullptr); });
}

bool Llm::has_tokenizer() const {
  return impl_->tokenizer != nullptr;
}
Result<std::vector<TokenId>> Llm::encode(std::string_view text, bool add_special_tokens) const {
  return guard([&] { return impl_->encode(text, add_special_tokens); });
}

Result<std::string> Llm::apply_chat_template(const std::vector<ChatMessage>& messages,
                                             std::string_view variables_json) const {
  ChatPrompt prompt{.messages = Json::array()};
  for (const ChatMessage& message : messages) {
    prompt.messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  if (!variables_json.empty()) {
    prompt.variables = TRY(parse_json(variables_json, "chat template variables"));
  }
  return render_chat(*this, std::move(prompt));
}

bool Llm::has_chat_template() const {
  return impl_->chat_template.has_value();
}
const SamplingParams& Llm::recommended_sampling() const {
  return impl_->recommended;
}
const EngineConfig& Llm::config() const {
  return impl_->config;
}
Engine& Llm::engine() {
  CHECK(impl_->engine, "the model was loaded without an engine");
  return *impl_->engine;
}
const EngineInfo& Llm::info() const {
  return impl_->info;
}
GrammarStats Llm::grammar_stats() const {
  return impl_->grammar_stats();
}
double Llm::load_s() const {
  return impl_->load_s;
}

struct LlmAccess {
  static const Llm::Impl& impl(const Llm& llm) { return *llm.impl_; }
  static Result<std::unique_ptr<Llm>> load(const EngineConfig& config, const LoadProgress& progress,
                                           EngineAssembly::Storage storage) {
    auto impl = TRY(Llm::Impl::load(config, progress, std::move(storage)));
    return std::unique_ptr<Llm>(new Llm(std::move(impl)));
  }
};

Result<std::unique_ptr<Llm>> load_with_storage(const EngineConfig& config,
                                               const LoadProgress& progress,
                                               EngineAssembly::Storage storage) {
  return guard([&] { return LlmAccess::load(config, progress, std::move(storage)); });
}

const Tokenizer* tokenizer_of(const Llm& llm) {
  return LlmAccess::impl(llm).tokenizer.get();
}
Result<const ChatTemplate*> chat_template_of(const Llm& llm) {
  return LlmAccess::impl(llm).find_chat_template();
}
Result<std::shared_ptr<const ChatTemplate>> request_template(const Llm& llm,
                                                             const std::string& source) {
  return guard([&] { return LlmAccess::impl(llm).request_template(source); });
}
Result<CompiledGrammarPtr> compile_grammar(const Llm& llm, const GrammarSource& grammar) {
  return guard([&] { return LlmAccess::impl(llm).compile(grammar); });
}
CompiledGrammarPtr find_compiled(const Llm& llm, const GrammarSource& grammar) {
  return LlmAccess::impl(llm).compiled(grammar);
}
std::shared_ptr<TokenConstraint> constraint_of(const Llm& llm, const GenerationOptions& options,
                                               CompiledGrammarPtr compiled) {
  return LlmAccess::impl(llm).constraint(options, std::move(compiled));
}
Result<GenerateRequest> to_tokens(const Llm& llm, const TextRequest& request,
                                  CompiledGrammarPtr compiled) {
  return guard([&] { return LlmAccess::impl(llm).to_tokens(request, std::move(compiled)); });
}

}  // namespace banyan
