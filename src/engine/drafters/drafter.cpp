#include "engine/drafters/drafter.h"

#include "engine/sequence.h"

namespace banyan {

void DraftTask::clear() {
  tokens.clear();
  confidences.clear();
  chances.clear();
  joint = 1;
  branch_count = 0;
}

DraftTask::Branch* DraftTask::add_branch(int64_t after) {
  if (branch_count == branches_max) return nullptr;
  if (branch_count == std::ssize(branches)) branches.emplace_back();
  Branch& branch = at(branches, branch_count++);
  branch.after = after;
  branch.tokens.clear();
  branch.confidences.clear();
  return &branch;
}

bool DraftTask::add(TokenId token, float confidence) {
  double accepted = confidence;
  joint *= confidence;
  if (acceptance != nullptr) {
    const OwnAcceptance& own = at(sequence->draft.sources, source);
    accepted = acceptance->chance(source, {std::ssize(tokens), confidence, joint}, own);
  }
  chances.push_back(chance() * accepted);
  tokens.push_back(token);
  confidences.push_back(confidence);
  return std::ssize(tokens) < tokens_max && chance() >= chance_min;
}

}  // namespace banyan
