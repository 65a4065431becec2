#include "engine/draws/draw_builder.h"

#include <algorithm>

#include "base/divide.h"
#include "base/signed.h"

namespace banyan {
namespace {

bool has_bit(std::span<const uint32_t> mask, TokenId token) {
  auto t = as_size(token);
  return ((mask[t / 32] >> (t % 32)) & 1u) != 0;
}

bool is_stop(const Sequence& s, TokenId token) {
  return std::ranges::find(s.request.options.stop_token_ids, token) !=
         s.request.options.stop_token_ids.end();
}

// The last `count` of an array.
template <class T>
ArrayPart part_at_end(const std::vector<T>& array, size_t count) {
  return {.begin = narrow<int32_t>(array.size() - count), .count = narrow<int32_t>(count)};
}

// The logit rows of one span of a sequence, in position order.
class SequenceDraws {
 public:
  SequenceDraws(Sequence& s, int path, int64_t vocabulary, DrawBatch& draws)
      : s_(s),
        path_(path),
        tokens_(s.draft_path(path)),
        vocabulary_(vocabulary),
        words_(divide_up(vocabulary, 32)),
        draws_(draws) {
    if (path > 0) follow_trunk(at(s.draft.branches, path - 1).shared);
    biases_ = add_biases(s.request.sampling, vocabulary, draws);
    const std::vector<TokenId>& chosen = s.request.options.logprob_token_ids;
    draws.chosen.insert(draws.chosen.end(), chosen.begin(), chosen.end());
    chosen_ = part_at_end(draws.chosen, chosen.size());
  }
  SequenceDraws(const SequenceDraws&) = delete;
  SequenceDraws& operator=(const SequenceDraws&) = delete;
  ~SequenceDraws() {
    if (path_ == 0) s_.draft.reachable = walked_;
    if (s_.request.constraint) s_.request.constraint->rollback(narrow<int>(walked_));
    if (!s_.request.sampling.has_penalties()) return;
    for (int64_t i = walked_; i > 0; --i) {
      s_.counts.remove(at(tokens_, i - 1));
    }
  }

  bool has(const LogitRowUse& use) const { return use.sequence == &s_ && use.path == path_; }

  void add(const LogitRowUse& use) {
    DrawRow row = draw_row(s_.request.sampling, use.position + 1);
    if (use.samples && !reach(use)) {
      row.known = 0;  // unreachable row: its logits are not needed
      draws_.rows.push_back(row);
      return;
    }
    if (use.samples) {
      row.known = s_.recorded_at(use.position + 1);
      row.mask = add_mask(use);
      row.biases = s_.request.sampling.has_dry() ? add_dry() : biases_;
      if (s_.request.sampling.has_penalties()) row.counts = add_counts();
    } else {
      row.known = at(s_.tokens, use.position + 1);
    }
    add(row);
  }

  // The row of a draw that depends on no token before it.
  void add_following(const LogitRowUse& use) {
    DrawRow row = draw_row(s_.request.sampling, use.position + 1);
    row.biases = biases_;
    add(row);
  }

 private:
  void add(DrawRow row) {
    row.top_count = s_.request.options.top_logprobs;
    row.chosen = chosen_;
    row.tops_begin = static_cast<int32_t>(draws_.tops);
    draws_.tops += row.top_count + chosen_.count;
    draws_.rows.push_back(row);
  }

  // A branch begins after so many tokens of the trunk, whose rows have been added.
  void follow_trunk(int64_t tokens) {
    lost_ = tokens > s_.draft.reachable;
    while (!lost_ && walked_ < tokens) walk(at(tokens_, walked_));
  }

  void walk(TokenId token) {
    if (s_.request.constraint) s_.request.constraint->accept(token);
    if (s_.request.sampling.has_penalties()) s_.counts.add(token);
    ++walked_;
  }

  // Advances the constraint and counts past the row's token. False if that token cannot be drawn.
  bool reach(const LogitRowUse& use) {
    if (use.position < s_.length()) return true;
    lost_ = lost_ || forbidden(use.token) || is_stop(s_, use.token);
    if (!lost_) walk(use.token);
    return !lost_;
  }

  // By the mask of the row before. A branch begins with an allowed token (drafters/speculate.h).
  bool forbidden(TokenId token) const {
    if (first_ == std::ssize(draws_.rows)) return false;
    int32_t mask = draws_.rows.back().mask;
    auto words = as_size(words_);
    return mask >= 0 &&
           !has_bit(std::span(draws_.masks).subspan(as_size(mask) * words, words), token);
  }

  // Appends a mask and returns its index; -1 if every token is allowed.
  int32_t add_mask(const LogitRowUse& use) {
    const GenerateRequest& request = s_.request;
    bool may_stop = use.position + 1 - s_.prompt_tokens >= request.options.min_new_tokens;
    if (!request.constraint && (may_stop || request.options.stop_token_ids.empty())) return -1;
    size_t begin = draws_.masks.size(), words = as_size(words_);
    draws_.masks.resize(begin + words, request.constraint ? 0 : ~0u);
    std::span<uint32_t> mask = std::span(draws_.masks).subspan(begin);
    if (request.constraint) request.constraint->fill_mask(mask);
    if (!may_stop) {
      for (TokenId stop : request.options.stop_token_ids) {
        mask[as_size(stop) / 32] &= ~(1u << (stop % 32));
      }
    }
    if (auto tail = vocabulary_ % 32; tail > 0) mask.back() &= (1u << tail) - 1;
    return static_cast<int32_t>(begin / words);
  }

  ArrayPart add_counts() {
    std::span<const TokenCount> seen = s_.counts.seen();
    draws_.counts.insert(draws_.counts.end(), seen.begin(), seen.end());
    return part_at_end(draws_.counts, seen.size());
  }

  // Appends the request's logit biases and this row's DRY penalties.
  ArrayPart add_dry() {
    size_t begin = draws_.biases.size();
    add_biases(s_.request.sampling, vocabulary_, draws_);
    auto draft = tokens_.first(as_size(walked_));
    s_.dry.append(s_.request.sampling, s_.tokens, draft, draws_.biases);
    return part_at_end(draws_.biases, draws_.biases.size() - begin);
  }

  Sequence& s_;
  const int path_;
  const std::span<const TokenId> tokens_;  // of the draft
  const int64_t vocabulary_, words_;
  DrawBatch& draws_;
  const int64_t first_ = std::ssize(draws_.rows);
  ArrayPart biases_, chosen_;
  int64_t walked_ = 0;  // draft tokens advanced over
  bool lost_ = false;
};

// Reserves for the longest these sequences can grow, so that later steps do not allocate.
void reserve(std::span<const LogitRowUse> uses, DrawBatch& draws) {
  size_t seen = 0, biases = 0;
  for (const LogitRowUse& use : uses) {
    if (!use.samples) continue;
    seen += use.sequence->counts.seen_max();
    biases +=
        2 * use.sequence->request.sampling.logit_bias.size() + use.sequence->dry.penalised_max();
  }
  draws.counts.reserve(seen);
  draws.biases.reserve(biases);
}

}  // namespace

DrawRow draw_row(const SamplingParams& params, int64_t position) {
  return {.noise = {.seed = params.seed, .position = position, .sample_index = params.sample_index},
          .temperature = params.temperature,
          .top_p = params.top_p,
          .min_p = params.min_p,
          .typical_p = params.typical_p,
          .xtc_probability = params.xtc_probability,
          .xtc_threshold = params.xtc_threshold,
          .top_k = params.top_k,
          .frequency_penalty = params.frequency_penalty,
          .presence_penalty = params.presence_penalty,
          .repetition_penalty = params.repetition_penalty};
}

ArrayPart add_biases(const SamplingParams& params, int64_t vocabulary, DrawBatch& draws) {
  size_t begin = draws.biases.size();
  for (auto [token, bias] : params.logit_bias) {
    if (token < vocabulary) draws.biases.push_back({token, bias});
  }
  return part_at_end(draws.biases, draws.biases.size() - begin);
}

void build_following_draws(std::span<const LogitRowUse> uses, int64_t vocabulary,
                           DrawBatch& draws) {
  draws.clear();
  for (size_t i = 0; i < uses.size();) {
    SequenceDraws rows(*uses[i].sequence, 0, vocabulary, draws);
    for (; i < uses.size() && rows.has(uses[i]); ++i) rows.add_following(uses[i]);
  }
}

void build_draft_draws(const StepPlan& plan, int64_t drafts, int64_t logits, DrawBatch& draws) {
  draws.clear();
  for (int64_t i = 0; i < drafts; ++i) {
    for (const PlannedSpan& span : plan.spans) {
      const SamplingParams& params = span.sequence->request.sampling;
      DrawRow row = draw_row(params, 0);
      row.biases = add_biases(params, logits, draws);
      draws.rows.push_back(row);
    }
  }
}

void build_draws(std::span<const LogitRowUse> uses, int64_t vocabulary, DrawBatch& draws) {
  draws.clear();
  reserve(uses, draws);
  for (size_t i = 0; i < uses.size();) {
    SequenceDraws rows(*uses[i].sequence, uses[i].path, vocabulary, draws);
    for (; i < uses.size() && rows.has(uses[i]); ++i) rows.add(uses[i]);
  }
}

}  // namespace banyan
