// POST /api/embed, and the older /api/embeddings, whose one vector is not normalised.
#include <chrono>
#include <string>
#include <utility>

#include "base/error.h"
#include "server/embed/embeddings.h"
#include "server/json/writer.h"
#include "server/ollama/endpoints.h"
#include "server/ollama/format.h"
#include "server/openai/format.h"

namespace banyan {
namespace {

// The texts under `name`; none if there is no text, which asks to load the model.
std::vector<GivenPrompt> read_ollama_texts(RequestFields& fields, const char* name,
                                           const EngineConfig& limits) {
  const Json* given = fields.find(name);
  if (given == nullptr || given->empty() || *given == "") return {};
  return read_prompts(fields, name, 1, limits);
}

struct OllamaEmbedding {
  std::string model;
  std::vector<TextRequest> texts;
  EmbeddingOptions options;
};

Parsed<OllamaEmbedding> read_ollama_embedding(const RequestContext& context, const Json& body,
                                              const char* name) {
  RequestFields fields(body);
  OllamaEmbedding request{.model = ollama_model(fields, context)};
  PromptRequest options = TRY(read_ollama_options(fields, context));
  request.texts = texts_of(read_ollama_texts(fields, name, context.llm.config()),
                           {.adapter = options.text.options.adapter});
  request.options.dimensions = read_dimensions(fields, context.llm);
  bool truncates = fields.flag("truncate", true);
  TRY(fields.finish());
  for (TextRequest& text : request.texts) {
    if (truncates) TRY(truncate(context.llm, prompt_tokens_max(context.llm), text));
  }
  return request;
}

}  // namespace

Parsed<GenerationPlan> plan_ollama_embed(const RequestContext& context, const Json& body) {
  OllamaEmbedding request = TRY(read_ollama_embedding(context, body, "input"));
  return plan_embeddings(
      context, std::move(request.texts), request.options, list_of,
      [model = request.model, received = context.received](
          std::span<const Choice> choices, std::span<const std::string> embeddings) {
        auto took = std::chrono::steady_clock::now() - received;
        std::string body;
        JsonWriter writer(body);
        writer.begin_object().field("model", model).key("embeddings").begin_list();
        for (const std::string& embedding : embeddings) writer.raw(embedding);
        writer.end_list();
        writer.field("total_duration", std::chrono::nanoseconds(took).count());
        writer.field("load_duration", 0);
        writer.field("prompt_eval_count", usage_of(choices, 1).prompt_tokens).end_object();
        return body;
      });
}

Parsed<GenerationPlan> plan_ollama_embeddings(const RequestContext& context, const Json& body) {
  OllamaEmbedding request = TRY(read_ollama_embedding(context, body, "prompt"));
  request.options.normalise = false;
  return plan_embeddings(context, std::move(request.texts), request.options, list_of,
                         [](std::span<const Choice>, std::span<const std::string> embeddings) {
                           std::string body;
                           JsonWriter writer(body);
                           writer.begin_object().key("embedding");
                           writer.raw(embeddings.empty() ? "[]" : embeddings[0]).end_object();
                           return body;
                         });
}

void handle_ollama_embed(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_ollama_embed);
}

void handle_ollama_embeddings(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_ollama_embeddings);
}

}  // namespace banyan
