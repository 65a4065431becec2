// How relevant documents are to queries, from 0 to 1 (embedding models: from -1).
//
// A model made for embeddings compares a text with another by the cosine of their embeddings. Any
// other is asked, in the words that Qwen3-Reranker was trained on and with the model's own chat
// template: the relevance is the probability of "yes" where only "yes" and "no" may follow.
// Planning runs on a worker.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "server/generation.h"

namespace banyan {

struct RelevancePair {
  std::string query, document;
};

// Returns the body of the answer; on the I/O thread. `scores` are those of the pairs.
using WriteScores =
    std::function<std::string(std::span<const Choice> choices, std::span<const double> scores)>;

struct RelevanceOptions {
  std::string instruction = {};  // what makes a document relevant; empty: that it answers a search
  std::string adapter = {};
};

Parsed<GenerationPlan> plan_relevance(const RequestContext& context,
                                      std::span<const RelevancePair> pairs,
                                      const RelevanceOptions& options, WriteScores write);

}  // namespace banyan
