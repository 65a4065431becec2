#include "engine/drafters/drafter.h"

#include "engine/sequence.h"

namespace banyan {

void DraftTask::clear() {
  tokens.clear();
  confidences.clear();
  chances.clear();
}

bool DraftTask::add(TokenId token, float confidence) {
  double accepted = confidence;
  if (acceptance != nullptr) {
    const OwnAcceptance& own = at(sequence->draft.sources, source);
    accepted = acceptance->chance(source, std::ssize(tokens), confidence, own);
  }
  chances.push_back(chance() * accepted);
  tokens.push_back(token);
  confidences.push_back(confidence);
  return std::ssize(tokens) < tokens_max && chance() >= chance_min;
}

}  // namespace banyan
