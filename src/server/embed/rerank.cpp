// POST /v1/rerank and /rerank, as Jina, Cohere, vLLM and llama.cpp have it, and in the form of
// Hugging Face's text-embeddings-inference, whose documents are called `texts`.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/signed.h"
#include "server/adapters/request.h"
#include "server/embed/embeddings.h"
#include "server/embed/endpoints.h"
#include "server/embed/relevance.h"
#include "server/json/writer.h"
#include "server/openai/format.h"

namespace banyan {
namespace {

// A string, or an object with a text.
std::string read_text(RequestFields& fields, const char* name, const Json& value) {
  if (value.is_string()) return value;
  if (value.is_object() && value.contains("text") && value["text"].is_string()) {
    return value["text"];
  }
  fields.fail(name, fmt::format(": {} is no text", show(value)));
  return {};
}

struct RerankRequest {
  std::string model;
  std::vector<RelevancePair> pairs;
  bool tei = false;     // its form
  size_t returned = 0;  // the best ones
  bool with_documents = false;
  RelevanceOptions relevance;
};

void read_pairs(RequestFields& fields, const char* name, RerankRequest& request) {
  const Json *query = fields.find("query"), *documents = fields.find(name);
  if (query == nullptr) return fields.fail("query", " is missing");
  if (documents == nullptr) return fields.fail(name, " is missing");
  if (!documents->is_array() || documents->empty() || std::ssize(*documents) > kSequencesMax) {
    return fields.fail(name, fmt::format(" is {}; it must be a list of 1 to {} texts",
                                         show(*documents), kSequencesMax));
  }
  std::string text = read_text(fields, "query", *query);
  for (const Json& document : *documents) {
    request.pairs.push_back({text, read_text(fields, name, document)});
  }
}

RerankRequest read_rerank(RequestFields& fields, const RequestContext& context) {
  RerankRequest request{.model = answered_model(fields, context)};
  request.tei = fields.find("texts") != nullptr;
  read_pairs(fields, request.tei ? "texts" : "documents", request);
  int64_t best = fields.integer("top_n", 0, 0, std::numeric_limits<int32_t>::max());
  size_t all = request.pairs.size();
  request.returned = best > 0 ? std::min(all, as_size(best)) : all;
  request.with_documents =
      fields.flag(request.tei ? "return_text" : "return_documents", !request.tei);
  constexpr size_t kInstructionBytesMax = 16 << 10;
  request.relevance = {.instruction = fields.string("instruct", kInstructionBytesMax),
                       .adapter = read_adapter(fields, context)};
  fields.accept_only({{"raw_scores", "[false]"}});
  fields.refuse({"truncate_prompt_tokens", "max_tokens_per_doc", "rank_fields"});
  fields.refuse_unsupported();
  return request;
}

void write_ranked(JsonWriter& writer, const RerankRequest& request,
                  std::span<const double> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(request.returned);
  writer.begin_list();
  for (size_t i : order) {
    writer.begin_object().field("index", i);
    writer.field(request.tei ? "score" : "relevance_score", scores[i]);
    const std::string& document = request.pairs[i].document;
    if (request.with_documents && request.tei) writer.field("text", document);
    if (request.with_documents && !request.tei) {
      writer.key("document").begin_object().field("text", document).end_object();
    }
    writer.end_object();
  }
  writer.end_list();
}

}  // namespace

Parsed<GenerationPlan> plan_rerank(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  RerankRequest request = read_rerank(fields, context);
  TRY(fields.finish());
  std::vector<RelevancePair> pairs = request.pairs;
  RelevanceOptions relevance = request.relevance;
  return plan_relevance(context, pairs, relevance,
                        [request = std::move(request), id = "rerank-" + context.request_id](
                            std::span<const Choice> choices, std::span<const double> scores) {
                          std::string body;
                          JsonWriter writer(body);
                          if (request.tei) {
                            write_ranked(writer, request, scores);
                            return body;
                          }
                          writer.begin_object().field("id", id).field("model", request.model);
                          writer.field("object", "list");
                          write_prompt_usage(writer, choices);
                          write_ranked(writer.key("results"), request, scores);
                          writer.end_object();
                          return body;
                        });
}

void handle_rerank(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_rerank);
}

}  // namespace banyan
