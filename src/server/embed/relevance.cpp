#include "server/embed/relevance.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "llm/chat_prompt.h"
#include "llm/llm_parts.h"
#include "server/chat.h"
#include "server/embed/embeddings.h"

namespace banyan {
namespace {

// ---- By asking -------------------------------------------------------------------------------

constexpr std::string_view kQuestion =
    "Judge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. Note that the answer can only be \"yes\" or \"no\".";
constexpr std::string_view kInstruction =
    "Given a web search query, retrieve relevant passages that answer the query";

class AskedAnswer final : public Answer {
 public:
  AskedAnswer(size_t pairs, WriteScores write) : write_(std::move(write)), scores_(pairs) {}

  // The first label is "yes", the second "no".
  void take(const Choice& choice, const TokenEvent& event, TextDelta delta, std::string&) override {
    if (!delta.counted) return;
    double yes = event.chosen[0].logprob, no = event.chosen[1].logprob;
    scores_[choice.index] = 1 / (1 + std::exp(no - yes));
  }
  void end(std::span<const Choice>, std::string&) override {}  // never streamed
  std::string whole(std::span<const Choice> choices) override { return write_(choices, scores_); }

 private:
  const WriteScores write_;
  std::vector<double> scores_;
};

// The tokens that "yes" and "no" begin with; most vocabularies have each as one token.
Result<std::vector<TokenId>> labels_of(const Llm& llm) {
  std::vector<TokenId> labels;
  for (const char* word : {"yes", "no"}) {
    std::vector<TokenId> ids = TRY(llm.encode(word, false));
    if (!ids.empty()) labels.push_back(ids[0]);
  }
  if (labels.size() == 2 && labels[0] != labels[1]) return labels;
  return unsupported(
      "this model cannot be asked for relevance: \"yes\" and \"no\" begin with the same token");
}

// The same up to the document, so that the documents of a query share what is computed of it.
Parsed<std::string> question(const RequestContext& context, const RelevancePair& pair,
                             std::string_view instruction) {
  std::string text = fmt::format("<Instruct>: {}\n<Query>: {}\n<Document>: {}", instruction,
                                 pair.query, pair.document);
  ChatPrompt chat{.messages = Json::array()};
  chat.messages.push_back({{"role", "system"}, {"content", kQuestion}});
  chat.messages.push_back({{"role", "user"}, {"content", std::move(text)}});
  set_thinking(chat.variables, false);
  return render_prompt(context, std::move(chat));
}

Parsed<GenerationPlan> plan_asking(const RequestContext& context,
                                   std::span<const RelevancePair> pairs,
                                   const RelevanceOptions& options, WriteScores write) {
  const Llm& llm = context.llm;
  std::vector<TokenId> labels = TRY(labels_of(llm));
  std::string_view instruction = kInstruction;
  if (!options.instruction.empty()) instruction = options.instruction;
  GenerationPlan plan(context.compiled);
  plan.rids = {context.request_id};
  plan.window = prompts_window(llm);
  plan.all_or_nothing = true;
  for (const RelevancePair& pair : pairs) {
    PromptRequest prompt{
        .text = {.text = TRY(question(context, pair, instruction)), .add_special_tokens = false}};
    prompt.text.sampling.temperature = 0;
    prompt.text.options.max_new_tokens = 1;
    prompt.text.options.ignore_eos = true;
    prompt.text.options.logprob_token_ids = labels;
    prompt.text.options.adapter = options.adapter;
    TRY(plan.add_prompt(llm, prompt));
  }
  plan.answer = std::make_unique<AskedAnswer>(pairs.size(), std::move(write));
  return plan;
}

// ---- By embeddings ---------------------------------------------------------------------------

// Each text is embedded once, however many pairs have it.
Parsed<GenerationPlan> plan_comparing(const RequestContext& context,
                                      std::span<const RelevancePair> pairs,
                                      const std::string& adapter, WriteScores write) {
  std::map<std::string_view, size_t> places;
  std::vector<TextRequest> texts;
  auto place_of = [&](const std::string& text) {
    auto [it, is_new] = places.try_emplace(text, texts.size());
    if (is_new) texts.push_back({.text = text, .options = {.adapter = adapter}});
    return it->second;
  };
  std::vector<std::pair<size_t, size_t>> compared;
  for (const RelevancePair& pair : pairs) {
    size_t query = place_of(pair.query);
    compared.emplace_back(query, place_of(pair.document));
  }
  return plan_vectors(
      context, std::move(texts),
      [compared = std::move(compared), write = std::move(write)](
          std::span<const Choice> choices, std::span<const std::vector<float>> embeddings) {
        std::vector<double> scores;
        for (auto [query, document] : compared) {
          const std::vector<float>&a = embeddings[query], &b = embeddings[document];
          scores.push_back(std::inner_product(a.begin(), a.end(), b.begin(), 0.0));
        }
        return write(choices, scores);
      });
}

}  // namespace

Parsed<GenerationPlan> plan_relevance(const RequestContext& context,
                                      std::span<const RelevancePair> pairs,
                                      const RelevanceOptions& options, WriteScores write) {
  if (!context.llm.is_embedding_model()) {
    return plan_asking(context, pairs, options, std::move(write));
  }
  if (options.instruction.empty()) {
    return plan_comparing(context, pairs, options.adapter, std::move(write));
  }
  return std::unexpected(RequestError(
      {ErrorCode::kUnsupported,
       "instruct is for models that are asked; this one compares embeddings: put the instruction "
       "into the query"},
      "instruct"));
}

}  // namespace banyan
