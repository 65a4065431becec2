// SGLang's POST /encode: texts or token ids -> vectors, with the meta_info of /generate.
#include <chrono>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/signed.h"
#include "server/adapters/request.h"
#include "server/embed/embeddings.h"
#include "server/json/writer.h"
#include "server/sglang/endpoints.h"

namespace banyan {
namespace {

void write_embedding(JsonWriter& writer, const std::string& id, const Choice& choice,
                     double latency_s, const std::string& embedding) {
  writer.begin_object().key("embedding").raw(embedding);
  writer.key("meta_info").begin_object().field("id", id);
  writer.key("finish_reason").begin_object().field("type", "stop").end_object();
  writer.field("prompt_tokens", choice.prompt_tokens);
  writer.field("cached_tokens", choice.stream.cached_tokens());
  writer.field("e2e_latency", latency_s).end_object().end_object();
}

}  // namespace

Parsed<GenerationPlan> plan_encode(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  bool text = fields.find("text") != nullptr, ids = fields.find("input_ids") != nullptr;
  if (text == ids) {
    fields.fail("text", text ? " and input_ids are both given; one of them is the prompt"
                             : " or input_ids must be given");
  }
  TRY(fields.finish());
  const char* name = text ? "text" : "input_ids";
  bool one = holds_one_prompt(*fields.find(name));
  EmbeddingOptions options{.dimensions = read_dimensions(fields, context.llm)};
  GenerationOptions generation;
  read_scheduling(fields, generation);
  auto texts = texts_of(read_prompts(fields, name, 1, context.llm.config()), generation);
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i].options.adapter = read_adapter_of(fields, context, i, one ? 0 : texts.size());
  }
  std::vector<std::string> rids = fields.strings("rid", as_size(kSequencesMax), kNameBytesMax);
  fields.refuse({"sampling_params", "embed_overrides", "embed_override_token_id"});
  fields.refuse_unsupported();
  TRY(fields.finish());
  bool each_named = rids.size() == texts.size();
  GenerationPlan plan = TRY(plan_embeddings(
      context, std::move(texts), options, list_of,
      [one, each_named, rids, id = context.request_id, received = context.received](
          std::span<const Choice> choices, std::span<const std::string> embeddings) {
        auto waited = std::chrono::steady_clock::now() - received;
        double latency_s = std::chrono::duration<double>(waited).count();
        std::string body;
        JsonWriter writer(body);
        if (!one) writer.begin_list();
        for (size_t i = 0; i < embeddings.size(); ++i) {
          write_embedding(writer, each_named ? rids[i] : id, choices[i], latency_s, embeddings[i]);
        }
        if (!one) writer.end_list();
        return body;
      }));
  if (!rids.empty()) plan.rids = std::move(rids);
  TRY(plan.check_rids());
  return plan;
}

void handle_encode(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_encode);
}

}  // namespace banyan
