// POST /v1/embeddings: texts or token ids -> vectors, as numbers or as base64 of their bytes.
#include <bit>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "base/signed.h"
#include "server/adapters/request.h"
#include "server/embed/embeddings.h"
#include "server/json/writer.h"
#include "server/openai/endpoints.h"
#include "server/openai/format.h"

namespace banyan {
namespace {

static_assert(std::endian::native == std::endian::little, "base64 holds little-endian values");

std::string base64_of(std::span<const float> values) {
  std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return '"' + to_base64(bytes) + '"';
}

bool read_encoding(RequestFields& fields) {
  std::string format = fields.string("encoding_format", kNameBytesMax);
  bool base64 = format == "base64";
  if (!format.empty() && !base64 && format != "float") {
    fields.fail("encoding_format", " must be float or base64");
  }
  return base64;
}

// vLLM's and SGLang's names for whether vectors are divided by their length.
bool read_normalise(RequestFields& fields) {
  bool use = fields.flag("use_activation", true);
  return fields.flag("normalize", true) && use;
}

// vLLM's truncate_prompt_tokens; -1: as many as the model takes; nothing: too long is an error.
std::optional<int64_t> read_truncation(RequestFields& fields, const Llm& llm) {
  int64_t most = prompt_tokens_max(llm);
  std::optional<int64_t> tokens = fields.integer_if("truncate_prompt_tokens", -1, most);
  if (tokens == 0) fields.fail("truncate_prompt_tokens", " is 0; it must be -1 or above 0");
  return tokens == -1 ? most : tokens;
}

}  // namespace

Parsed<GenerationPlan> plan_openai_embeddings(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  std::string model = answered_model(fields, context);
  bool base64 = read_encoding(fields);
  EmbeddingOptions options{.dimensions = read_dimensions(fields, context.llm),
                           .normalise = read_normalise(fields)};
  GenerationOptions generation{.adapter = read_adapter(fields, context)};
  read_scheduling(fields, generation);
  std::optional<int64_t> tokens_max = read_truncation(fields, context.llm);
  bool special = fields.flag("add_special_tokens", true);
  fields.refuse({"messages", "return_token_ids"});
  fields.accept_only({{"embed_dtype", R"(["float32"])"}, {"endianness", R"(["native","little"])"}});
  fields.refuse_unsupported();
  auto prompts = read_prompts(fields, "input", 1, context.llm.config());
  auto texts = texts_of(std::move(prompts), generation, special);
  TRY(fields.finish());
  for (TextRequest& text : texts) {
    if (tokens_max) TRY(truncate(context.llm, *tokens_max, text));
  }
  return plan_embeddings(
      context, std::move(texts), options, base64 ? base64_of : list_of,
      [model](std::span<const Choice> choices, std::span<const std::string> embeddings) {
        std::string body;
        JsonWriter writer(body);
        writer.begin_object().field("object", "list").key("data").begin_list();
        for (size_t i = 0; i < embeddings.size(); ++i) {
          writer.begin_object().field("object", "embedding").field("index", i);
          writer.key("embedding").raw(embeddings[i]).end_object();
        }
        writer.end_list().field("model", model);
        write_prompt_usage(writer, choices);
        writer.end_object();
        return body;
      });
}

void handle_embeddings(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_openai_embeddings);
}

}  // namespace banyan
