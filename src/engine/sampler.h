// From a row of logits to a token and its log-probability.
//
// Log-probabilities are of the model's own distribution, before temperature, penalties, bias and
// constraint. Everything is a function of the row, the parameters and (seed, sample_index,
// position): the same whatever else is in the batch. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "banyan/request.h"
#include "engine/logit_scan.h"

namespace banyan {

// Which tokens a sequence has seen; kept only for requests with penalties.
struct TokenCounts {
  std::vector<int32_t> in_output;  // [vocabulary]
  std::vector<uint8_t> in_prompt;  // [vocabulary], 0 or 1
};

// A row of logits with what the logit_stats kernel found in it.
struct LogitRow {
  std::span<const float> logits;  // [vocabulary]
  TokenId argmax = 0;             // lowest id among equals
  float log_sum_exp = 0;
};

// What the draw of one token depends on, beside the row.
struct DrawContext {
  const SamplingParams& params;
  const TokenCounts* counts = nullptr;  // required when params has penalties
  std::span<const uint32_t> mask;       // allowed tokens by bit; empty: all
  int64_t position = 0;                 // absolute, of the token to draw
};

class Sampler {
 public:
  explicit Sampler(int64_t vocabulary);

  // The next token. The mask, if there is one, must allow some token of the vocabulary.
  TokenId draw(const LogitRow& row, const DrawContext& context);

  static float logprob(const LogitRow& row, TokenId token) {
    return row.logits[static_cast<size_t>(token)] - row.log_sum_exp;
  }

  // The `count` most likely tokens, most likely first, lower ids first among equals; less where the
  // others are impossible. Valid until the next call.
  std::span<const TokenLogprob> top(const LogitRow& row, int count);

 private:
  void adjust(const LogitRow& row, const DrawContext& context);
  void find_top_weights(std::span<const float> logits, size_t count, float temperature);
  double total_of_top() const;
  bool keep_top_p(double top_p, double total);
  TokenId draw_from_top(float min_p, double share);
  TokenId draw_from_all(double target) const;

  std::vector<float> adjusted_;     // logits after bias, penalties and mask
  std::vector<float> weights_;      // of all tokens, where those are what is drawn from
  std::vector<double> block_sums_;  // of weights_
  std::vector<float> maxima_, scratch_;
  std::vector<TopLogit> top_;
  std::vector<TokenLogprob> top_logprobs_;
};

}  // namespace banyan
