#include "engine/drafters/coupled_draws.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/divide.h"
#include "base/signed.h"
#include "engine/draws/draw_builder.h"
#include "engine/sequence.h"

namespace banyan {
namespace {

// How many of the most likely tokens a row may branch into, and how likely they have to be.
constexpr int32_t kChoices = 4;
constexpr float kBranchMin = 0.05f;

template <class T>
ArrayPart part_from(const std::vector<T>& array, size_t begin) {
  return {.begin = narrow<int32_t>(begin), .count = narrow<int32_t>(array.size() - begin)};
}

int64_t mask_words(int64_t vocabulary) {
  return divide_up(vocabulary, 32);
}

}  // namespace

CoupledDraws::CoupledDraws(int64_t logits, int64_t vocabulary)
    : logits_(logits), vocabulary_(vocabulary), mask_(as_size(mask_words(vocabulary))) {}

void CoupledDraws::add(const DraftTask& task) {
  Sequence& s = *task.sequence;
  int64_t ahead = std::ssize(task.forced) + std::ssize(task.tokens);
  DrawRow row = draw_row(s.request.sampling, s.length() + ahead);
  row.biases = add_biases(s.request.sampling, logits_, draws_);
  walk(task);
  if (s.request.constraint && walked_ == ahead) row.mask = add_mask(s);
  if (s.request.sampling.has_penalties()) row.counts = add_counts(s);
  walk_back(task);
  if (task.branch_count < task.branches_max) {
    row.top_count = kChoices;
    row.tops_begin = static_cast<int32_t>(draws_.tops);
    draws_.tops += kChoices;
  }
  draws_.rows.push_back(row);
}

// Advances the constraint and penalty counts along the draft, then rolls them back. Stops at forced
// text that the constraint itself forbids; speculate.h drops what follows it.
void CoupledDraws::walk(const DraftTask& task) {
  Sequence& s = *task.sequence;
  bool constrained = s.request.constraint != nullptr;
  walked_ = 0;
  for (std::span<const TokenId> tokens : {task.forced, std::span<const TokenId>(task.tokens)}) {
    for (TokenId token : tokens) {
      if (s.request.sampling.has_penalties()) s.counts.add(token);
      constrained = constrained && allows(s, token);
      if (!constrained) continue;
      s.request.constraint->accept(token);
      ++walked_;
    }
  }
}

bool CoupledDraws::allows(Sequence& s, TokenId token) {
  const std::vector<TokenId>& stops = s.request.options.stop_token_ids;
  if (std::ranges::find(stops, token) != stops.end()) return false;
  std::ranges::fill(mask_, 0u);
  s.request.constraint->fill_mask(mask_);
  return ((mask_[as_size(token) / 32] >> (token % 32)) & 1u) != 0;
}

void CoupledDraws::walk_back(const DraftTask& task) {
  Sequence& s = *task.sequence;
  if (s.request.constraint) s.request.constraint->rollback(walked_);
  if (!s.request.sampling.has_penalties()) return;
  for (size_t i = task.tokens.size(); i > 0; --i) s.counts.remove(task.tokens[i - 1]);
  for (size_t i = task.forced.size(); i > 0; --i) s.counts.remove(task.forced[i - 1]);
}

ArrayPart CoupledDraws::add_counts(const Sequence& s) {
  size_t begin = draws_.counts.size();
  std::ranges::copy_if(s.counts.seen(), std::back_inserter(draws_.counts),
                       [this](const TokenCount& count) { return count.token < logits_; });
  return part_from(draws_.counts, begin);
}

int32_t CoupledDraws::add_mask(const Sequence& s) {
  auto words = as_size(mask_words(logits_));
  size_t begin = draws_.masks.size();
  std::ranges::fill(mask_, 0u);
  s.request.constraint->fill_mask(mask_);
  draws_.masks.resize(begin + words, 0u);
  auto to = draws_.masks.begin() + begin;
  std::ranges::copy(std::span(mask_).first(std::min(words, mask_.size())), to);
  // Zeroes the bits past the smaller of the two vocabularies.
  if (auto tail = std::min(logits_, vocabulary_) % 32; tail > 0) {
    auto last = static_cast<std::ptrdiff_t>(std::min(logits_, vocabulary_) / 32);
    to[last] &= (1u << tail) - 1;
  }
  return static_cast<int32_t>(begin / words);
}

bool CoupledDraws::may_follow(TokenId token, const DraftTask& task) const {
  const std::vector<TokenId>& stops = task.sequence->request.options.stop_token_ids;
  return token >= 0 && token < std::min(logits_, vocabulary_) &&
         std::ranges::find(stops, token) == stops.end();
}

void CoupledDraws::branch(const DrawResults& results, size_t row, DraftTask& task) const {
  const DrawResult& result = results.rows[row];
  auto tops = slice(results.tops, draws_.rows[row].tops_begin, result.top_count);
  for (const TokenLogprob& top : tops) {
    float confidence = std::exp(top.logprob);
    bool likely = confidence >= kBranchMin && confidence * task.chance() >= task.chance_min;
    if (!likely || top.token == result.token || !may_follow(top.token, task)) continue;
    DraftTask::Branch* branch = task.add_branch(std::ssize(task.tokens));
    if (branch == nullptr) return;
    branch->tokens.push_back(top.token);
    branch->confidences.push_back(confidence);
  }
}

bool CoupledDraws::take(const DrawResults& results, size_t row, DraftTask& task) const {
  const DrawResult& result = results.rows[row];
  branch(results, row, task);
  if (!may_follow(result.token, task)) return false;
  return task.add(result.token, std::exp(result.logprob));
}

}  // namespace banyan
