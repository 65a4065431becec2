// vLLM's POST /v1/score: the relevance of one or many texts to one or as many others.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "server/adapters/request.h"
#include "server/embed/embeddings.h"
#include "server/embed/endpoints.h"
#include "server/embed/relevance.h"
#include "server/json/writer.h"
#include "server/openai/format.h"

namespace banyan {
namespace {

// The first of the names that the body has.
std::vector<std::string> read_texts(RequestFields& fields, std::initializer_list<const char*> names,
                                    const char*& name) {
  name = *names.begin();
  for (const char* one : names) {
    if (fields.find(one) == nullptr) continue;
    name = one;
    break;
  }
  const Json* given = fields.find(name);
  if (given == nullptr) {
    fields.fail(name, " is missing");
    return {};
  }
  std::vector<std::string> texts;
  Json one = Json::array();
  if (given->is_string()) one.push_back(*given);
  const Json& list = given->is_string() ? one : *given;
  bool all = list.is_array() && !list.empty() && std::ssize(list) <= kSequencesMax &&
             std::ranges::all_of(list, [](const Json& text) { return text.is_string(); });
  if (!all) {
    fields.fail(name, fmt::format(" is {}; it must be a text or a list of 1 to {} texts",
                                  show(*given), kSequencesMax));
    return {};
  }
  for (const Json& text : list) texts.push_back(text);
  return texts;
}

}  // namespace

Parsed<GenerationPlan> plan_pair_score(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  std::string model = answered_model(fields, context);
  const char *first_name = "", *second_name = "";
  auto first = read_texts(fields, {"text_1", "data_1", "queries"}, first_name);
  auto second = read_texts(fields, {"text_2", "data_2", "documents", "items"}, second_name);
  std::string adapter = read_adapter(fields, context);
  fields.refuse({"truncate_prompt_tokens"});
  fields.refuse_unsupported();
  TRY(fields.finish());
  if (first.size() != 1 && first.size() != second.size()) {
    return std::unexpected(RequestError(
        {ErrorCode::kInvalidArgument,
         fmt::format("{} has {} texts and {} has {}; the first must have one, or as many",
                     first_name, first.size(), second_name, second.size())},
        first_name));
  }
  std::vector<RelevancePair> pairs;
  for (size_t i = 0; i < second.size(); ++i) {
    pairs.push_back({first[first.size() == 1 ? 0 : i], std::move(second[i])});
  }
  return plan_relevance(
      context, pairs, {.adapter = adapter},
      [model, id = "score-" + context.request_id, created = context.created_s](
          std::span<const Choice> choices, std::span<const double> scores) {
        std::string body;
        JsonWriter writer(body);
        writer.begin_object().field("id", id).field("object", "list").field("created", created);
        writer.field("model", model).key("data").begin_list();
        for (size_t i = 0; i < scores.size(); ++i) {
          writer.begin_object().field("index", i).field("object", "score");
          writer.field("score", scores[i]).end_object();
        }
        writer.end_list();
        write_prompt_usage(writer, choices);
        writer.end_object();
        return body;
      });
}

}  // namespace banyan
