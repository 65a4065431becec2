// llama.cpp's POST /embedding and /embeddings: [{"index": 0, "embedding": [[...]]}, ...], where the
// inner list has the vectors of a prompt, of which there is one with pooling.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "server/adapters/request.h"
#include "server/embed/embeddings.h"
#include "server/json/writer.h"
#include "server/llamacpp/endpoints.h"

namespace banyan {

Parsed<GenerationPlan> plan_llama_embedding(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  // 2: Euclidean, -1: none; llama.cpp also has the largest value (0) and other norms.
  int64_t norm = fields.integer("embd_normalize", 2, -1, 2);
  if (norm != 2 && norm != -1) {
    fields.fail("embd_normalize", fmt::format(" is {}; -1 and 2 are supported", norm),
                ErrorCode::kUnsupported);
  }
  EmbeddingOptions options{.dimensions = read_dimensions(fields, context.llm),
                           .normalise = norm == 2};
  const char* name = fields.find("input") != nullptr ? "input" : "content";
  auto texts = texts_of(read_prompts(fields, name, 1, context.llm.config()),
                        {.adapter = read_adapter(fields, context)});
  fields.accept_only({{"encoding_format", R"(["float"])"}});
  fields.refuse_unsupported();
  TRY(fields.finish());
  return plan_embeddings(context, std::move(texts), options, list_of,
                         [](std::span<const Choice>, std::span<const std::string> embeddings) {
                           std::string body;
                           JsonWriter writer(body);
                           writer.begin_list();
                           for (size_t i = 0; i < embeddings.size(); ++i) {
                             writer.begin_object().field("index", i).key("embedding").begin_list();
                             writer.raw(embeddings[i]).end_list().end_object();
                           }
                           writer.end_list();
                           return body;
                         });
}

void handle_llama_embedding(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_llama_embedding);
}

}  // namespace banyan
