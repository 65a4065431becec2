// SGLang's POST /v1/score: the probability of each label token after query and item.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/signed.h"
#include "server/adapters/request.h"
#include "server/embed/endpoints.h"
#include "server/generation.h"
#include "server/json/writer.h"
#include "server/openai/format.h"
#include "server/sglang/endpoints.h"

namespace banyan {
namespace {

// Probabilities of the labels, normalised over the vocabulary or over the labels.
std::vector<double> scores_of(std::span<const TokenLogprob> labels, bool softmax,
                              double temperature) {
  std::vector<double> scores;
  double highest = -std::numeric_limits<double>::infinity(), total = 0;
  for (const TokenLogprob& label : labels) highest = std::max<double>(highest, label.logprob);
  for (const TokenLogprob& label : labels) {
    double score = softmax ? std::exp((label.logprob - highest) / temperature)
                           : std::exp(static_cast<double>(label.logprob));
    scores.push_back(score);
    total += score;
  }
  if (softmax) {
    for (double& score : scores) score /= total;
  }
  return scores;
}

class ScoreAnswer final : public Answer {
 public:
  ScoreAnswer(std::string model, bool softmax, double temperature, size_t items)
      : model_(std::move(model)), softmax_(softmax), temperature_(temperature), scores_(items) {}

  void take(const Choice& choice, const TokenEvent& event, TextDelta delta, std::string&) override {
    if (delta.counted) scores_[choice.index] = scores_of(event.chosen, softmax_, temperature_);
  }

  void end(std::span<const Choice>, std::string&) override {}

  std::string whole(std::span<const Choice> choices) override {
    Usage usage = usage_of(choices, 1);
    usage.completion_tokens = 0;  // the token drawn after an item is not part of the answer
    std::string body;
    JsonWriter writer(body);
    writer.begin_object().field("object", "scoring").field("model", model_);
    writer.key("scores").begin_list();
    for (const std::vector<double>& one : scores_) {
      writer.begin_list();
      for (double score : one) writer.number(score);
      writer.end_list();
    }
    writer.end_list();
    write_usage(writer, usage);
    writer.end_object();
    return body;
  }

 private:
  const std::string model_;
  const bool softmax_;
  const double temperature_;
  std::vector<std::vector<double>> scores_;
};

// Reads query and items, all as text or all as token ids.
Parsed<std::vector<TextRequest>> read_sequences(RequestFields& fields, const EngineConfig& limits) {
  TRY(fields.finish());
  static const Json kEmptyText = "";
  const Json* given = fields.find("query");
  const Json& query = given == nullptr ? kEmptyText : *given;
  const Json* items = fields.find("items");
  bool item_first = fields.flag("item_first", false);
  if (items == nullptr) fields.fail("items", " is missing");
  TRY(fields.finish());
  Json one = Json::array();
  if (items->is_string()) one.push_back(*items);
  const Json& list = items->is_string() ? one : *items;
  if (!list.is_array() || list.empty() || std::ssize(list) > kSequencesMax) {
    return invalid_argument("items is {}; it must be a text or 1 to {} items", show(*items),
                            kSequencesMax);
  }
  std::vector<TextRequest> sequences;
  auto ids_max = as_size(limits.prompt_tokens_max);
  for (const Json& item : list) {
    TextRequest& sequence = sequences.emplace_back();
    if (item.is_string() && query.is_string()) {
      const auto& a = query.get_ref<const std::string&>();
      const auto& b = item.get_ref<const std::string&>();
      sequence.text = item_first ? b + a : a + b;
      continue;
    }
    std::vector<TokenId> first, second = TRY(read_token_ids(item, "items", ids_max));
    if (given != nullptr) first = TRY(read_token_ids(query, "query", ids_max));
    if (item_first) first.swap(second);
    first.insert(first.end(), second.begin(), second.end());
    if (first.empty()) return invalid_argument("items: query and item together have no tokens");
    sequence.ids = std::move(first);
  }
  return sequences;
}

// The label ids of each item: one list for all, or one per item.
Parsed<std::vector<std::vector<TokenId>>> read_labels(RequestFields& fields, size_t items,
                                                      const EngineConfig& limits) {
  const Json* labels = fields.find("label_token_ids");
  if (labels == nullptr) fields.fail("label_token_ids", " is missing");
  TRY(fields.finish());
  auto count_max = as_size(limits.top_logprobs_max);
  bool each = labels->is_array() && !labels->empty() && labels->front().is_array();
  if (each && labels->size() != items) {
    return invalid_argument("label_token_ids has {} lists for {} items", labels->size(), items);
  }
  std::vector<std::vector<TokenId>> lists;
  for (size_t i = 0; i < items; ++i) {
    const Json& list = each ? (*labels)[i] : *labels;
    lists.push_back(TRY(read_token_ids(list, "label_token_ids", count_max)));
    if (lists.back().empty()) return invalid_argument("label_token_ids is empty");
  }
  return lists;
}

}  // namespace

Parsed<GenerationPlan> plan_score(const RequestContext& context, const Json& body) {
  for (const char* name : {"text_1", "data_1", "queries"}) {
    if (body.is_object() && body.contains(name)) return plan_pair_score(context, body);
  }
  constexpr float kTemperatureMin = 1e-3f, kTemperatureMax = 1e3f;
  const Llm& llm = context.llm;
  RequestFields fields(body);
  std::vector<TextRequest> sequences = TRY(read_sequences(fields, llm.config()));
  auto labels = TRY(read_labels(fields, sequences.size(), llm.config()));
  bool softmax = fields.flag("apply_softmax", false);
  float temperature = fields.number("temperature", 1, kTemperatureMin, kTemperatureMax);
  if (temperature != 1 && !softmax) fields.fail("temperature", " needs apply_softmax to be true");
  fields.refuse({"embed_override_token_id", "query_embed_overrides", "item_embed_overrides",
                 "score_extraction_token", "return_pooled_hidden_states", "return_token_logprobs"});
  std::string model = answered_model(fields, context), adapter = read_adapter(fields, context);
  GenerationPlan plan(context.compiled);
  plan.rids = {context.request_id};
  plan.all_or_nothing = true;
  TRY(fields.finish());
  for (size_t i = 0; i < sequences.size(); ++i) {
    PromptRequest prompt{.text = std::move(sequences[i])};
    prompt.text.options.max_new_tokens = 1;
    prompt.text.sampling.temperature = 0;
    prompt.text.options.ignore_eos = true;
    prompt.text.options.adapter = adapter;
    prompt.text.options.logprob_token_ids = std::move(labels[i]);
    TRY(plan.add_prompt(llm, prompt));
  }
  plan.answer =
      std::make_unique<ScoreAnswer>(std::move(model), softmax, temperature, plan.choices.size());
  return plan;
}

void handle_score(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_score);
}

}  // namespace banyan
