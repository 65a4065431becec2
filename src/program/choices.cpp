#include "program/choices.h"

#include <algorithm>
#include <numeric>

#include "base/signed.h"

namespace banyan {
namespace {

double mean_logprob(const ScoredText& text) {
  double sum = 0;
  for (const TokenLogprob& token : text.tokens) sum += token.logprob;
  return sum / text.tokens.size();
}

double mean_gain(const ScoredText& text) {
  double sum = 0;
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    sum += text.tokens[i].logprob - text.unconditional[i];
  }
  return sum / text.tokens.size();
}

// Keeps, token by token, the choices whose token is likeliest; a choice that has ended competes
// with its mean.
size_t decide_greedily(const std::vector<ScoredText>& texts, const std::vector<double>& means) {
  size_t tokens = 0;
  for (const ScoredText& text : texts) tokens = std::max(tokens, text.tokens.size());
  std::vector<size_t> left(texts.size());
  std::iota(left.begin(), left.end(), size_t{0});
  for (size_t t = 0; t < tokens && left.size() > 1; ++t) {
    auto at = [&](size_t i) {
      return t < texts[i].tokens.size() ? double{texts[i].tokens[t].logprob} : means[i];
    };
    double best = at(left.front());
    for (size_t i : left) best = std::max(best, at(i));
    std::erase_if(left, [&](size_t i) { return at(i) != best; });
  }
  return left.front();
}

}  // namespace

Decision decide(const std::vector<ScoredText>& texts, ChoiceMethod method) {
  Decision decision;
  bool gain = method == ChoiceMethod::kUnconditionalNormalized;
  for (const ScoredText& text : texts) {
    decision.weights.push_back(gain ? mean_gain(text) : mean_logprob(text));
  }
  if (method == ChoiceMethod::kGreedyTokens) {
    decision.best = decide_greedily(texts, decision.weights);
  } else {
    auto best = std::ranges::max_element(decision.weights);
    decision.best = as_size(best - decision.weights.begin());
  }
  return decision;
}

}  // namespace banyan
