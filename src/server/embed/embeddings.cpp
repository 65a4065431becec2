#include "server/embed/embeddings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/signed.h"
#include "llm/llm_parts.h"
#include "server/openai/format.h"

namespace banyan {
namespace {

// What becomes of an embedding is kept until all are there.
template <class Kept>
class EmbeddingAnswer final : public Answer {
 public:
  using Keep = std::function<Kept(std::span<const float>)>;
  using Write = std::function<std::string(std::span<const Choice>, std::span<const Kept>)>;

  EmbeddingAnswer(size_t texts, const EmbeddingOptions& options, Keep keep, Write write)
      : options_(options), keep_(std::move(keep)), write_(std::move(write)), kept_(texts) {}

  void take(const Choice& choice, const TokenEvent& event, TextDelta, std::string&) override {
    std::span<const float> embedding = event.embedding;
    if (embedding.empty()) return;
    if (options_.normalise) {
      kept_[choice.index] = keep_(normalised(embedding, options_.dimensions));
      return;
    }
    if (options_.dimensions > 0) embedding = embedding.first(as_size(options_.dimensions));
    kept_[choice.index] = keep_(embedding);
  }

  void end(std::span<const Choice>, std::string&) override {}  // never streamed

  std::string whole(std::span<const Choice> choices) override { return write_(choices, kept_); }

 private:
  const EmbeddingOptions options_;
  const Keep keep_;
  const Write write_;
  std::vector<Kept> kept_;
};

// Without its answer.
Parsed<GenerationPlan> plan_texts(const RequestContext& context, std::vector<TextRequest> texts) {
  const Llm& llm = context.llm;
  Pooling pooling = TRY(llm.pooling());
  GenerationPlan plan(context.compiled);
  plan.rids = {context.request_id};
  plan.window = prompts_window(llm);
  plan.all_or_nothing = true;
  for (TextRequest& text : texts) {
    PromptRequest prompt{.text = embedding_request(std::move(text), pooling)};
    TRY(plan.add_prompt(llm, prompt));
  }
  return plan;
}

}  // namespace

int64_t read_dimensions(RequestFields& fields, const Llm& llm) {
  return fields.integer("dimensions", 0, 0, llm.info().hidden);
}

std::vector<TextRequest> texts_of(std::vector<GivenPrompt> prompts,
                                  const GenerationOptions& options, bool add_special_tokens) {
  std::vector<TextRequest> texts;
  for (GivenPrompt& prompt : prompts) {
    texts.push_back({.text = std::move(prompt.text),
                     .ids = std::move(prompt.ids),
                     .add_special_tokens = add_special_tokens,
                     .options = options});
  }
  return texts;
}

int64_t prompt_tokens_max(const Llm& llm) {
  const EngineInfo& info = llm.info();
  return std::min(
      {info.context_length_tokens, info.total_tokens_max, llm.config().prompt_tokens_max});
}

size_t prompts_window(const Llm& llm) {
  const EngineConfig& config = llm.config();
  return as_size(std::min(2 * config.running_max + 32, config.queued_max));
}

Status truncate(const Llm& llm, int64_t tokens_max, TextRequest& text) {
  if (text.ids.empty()) text.ids = TRY(llm.encode(text.text, text.add_special_tokens));
  if (std::ssize(text.ids) <= tokens_max) return {};
  const Tokenizer* tokenizer = tokenizer_of(llm);
  TokenId last = text.ids.back();
  text.ids.resize(as_size(tokens_max));
  if (tokenizer != nullptr && tokenizer->is_special(last)) text.ids.back() = last;
  return {};
}

Parsed<GenerationPlan> plan_embeddings(const RequestContext& context,
                                       std::vector<TextRequest> texts,
                                       const EmbeddingOptions& options, WriteEmbedding write_one,
                                       WriteEmbeddings write) {
  GenerationPlan plan = TRY(plan_texts(context, std::move(texts)));
  plan.answer = std::make_unique<EmbeddingAnswer<std::string>>(plan.choices.size(), options,
                                                               write_one, std::move(write));
  return plan;
}

Parsed<GenerationPlan> plan_vectors(const RequestContext& context, std::vector<TextRequest> texts,
                                    UseEmbeddings use) {
  using Vector = std::vector<float>;
  GenerationPlan plan = TRY(plan_texts(context, std::move(texts)));
  auto keep = [](std::span<const float> values) { return Vector(values.begin(), values.end()); };
  plan.answer = std::make_unique<EmbeddingAnswer<Vector>>(plan.choices.size(), EmbeddingOptions(),
                                                          keep, std::move(use));
  return plan;
}

std::string list_of(std::span<const float> values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

void write_prompt_usage(JsonWriter& writer, std::span<const Choice> choices) {
  Usage usage = usage_of(choices, 1);
  writer.key("usage").begin_object();
  writer.field("prompt_tokens", usage.prompt_tokens).field("total_tokens", usage.prompt_tokens);
  writer.key("prompt_tokens_details").begin_object();
  writer.field("cached_tokens", usage.cached_tokens).end_object().end_object();
}

}  // namespace banyan
